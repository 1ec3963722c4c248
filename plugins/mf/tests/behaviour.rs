//! What the plugin promises, on small data with known answers.

use serde_json::{Value, json};
use slackline_guest::Rng;
use slackline_guest::testing::{Dataset, TestHost};
use slackline_mf::sgd::{Rating, Rows, Rule, pass};
use slackline_mf::{Factorisation, bold};

/// Ratings of a model of this rank with biases, every pair with probability `share`, without noise: training and test.
fn low_rank(users: u32, items: u32, rank: usize, share: f64) -> (Dataset, Dataset) {
    let mut rng = Rng::from_seed(11);
    let mut normals = |n: usize, sd: f64| (0..n).map(|_| sd * rng.normal()).collect::<Vec<f64>>();
    let (p, q) = (normals(users as usize * rank, 0.7), normals(items as usize * rank, 0.7));
    let (bu, bi) = (normals(users as usize, 0.3), normals(items as usize, 0.3));
    let mut pairs: Vec<(u32, u32)> = (0..users).flat_map(|u| (0..items).map(move |i| (u, i))).collect();
    rng.shuffle(&mut pairs);
    let mut sets = [(vec![], vec![], vec![]), (vec![], vec![], vec![])];
    for (u, i) in pairs {
        if rng.f64() < share {
            let (a, b) = (u as usize, i as usize);
            let dot: f64 = (0..rank).map(|k| p[a * rank + k] * q[b * rank + k]).sum();
            let set = &mut sets[usize::from(rng.below(10) == 0)];
            set.0.push(u);
            set.1.push(i);
            set.2.push((3.0 + bu[a] + bi[b] + dot) as f32);
        }
    }
    let [train, test] = sets.map(|s| Dataset::new().column("user", &s.0).column("item", &s.1).column("rating", &s.2));
    (train, test)
}

fn host(workers: usize) -> TestHost {
    let (train, test) = low_rank(120, 80, 3, 0.5);
    TestHost::new().seed(3).workers(workers).recreate_each_clock().dataset("train", train).dataset("test", test)
}

#[test]
fn a_low_rank_matrix_is_found_again() {
    for (workers, params) in [
        (1, json!({"rank": 3, "l2": 0.001, "learning_rate": 0.02, "decay": 0.0})),
        (2, json!({"rank": 3, "l2": 0.001, "learning_rate": 0.02, "decay": 0.0})),
        (1, json!({"rank": 3, "l2": 0.001, "optimizer": "adagrad", "learning_rate": 0.2})),
        (2, json!({"rank": 3, "l2": 0.001, "optimizer": "bold-driver", "learning_rate": 0.02})),
    ] {
        let report = host(workers).run::<Factorisation>(params.clone(), 64, 150).unwrap();
        let test = report.metric("test_rmse").unwrap();
        assert!(test < 0.15, "{workers} workers, {params}: test RMSE {test}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_does_not() {
    let run = |seed, workers, optimizer: &str| {
        let host = host(workers).seed(seed);
        let report = host.run::<Factorisation>(json!({"rank": 5, "optimizer": optimizer}), 64, 5).unwrap();
        (report.metric("test_rmse").unwrap().to_bits(), host.values::<f32>("items").unwrap())
    };
    for (workers, optimizer) in [(1, "sgd"), (3, "sgd"), (3, "bold-driver"), (3, "adagrad")] {
        let once = run(1, workers, optimizer);
        assert_eq!(once, run(1, workers, optimizer));
        assert_ne!(once.0, run(2, workers, optimizer).0);
    }
}

#[test]
fn workers_who_share_popular_items_do_not_overshoot() {
    // 8 items with 1,000 ratings each: within a clock every worker brings them to its optimum.
    let error = |workers: usize, optimizer: &str, biases: bool| {
        let (train, test) = low_rank(2000, 8, 1, 0.5);
        let host = TestHost::new().seed(1).workers(workers).dataset("train", train).dataset("test", test);
        let params = json!({"rank": 2, "l2": 0.01, "optimizer": optimizer, "biases": biases});
        host.run::<Factorisation>(params, 256, 20).unwrap().metric("train_rmse").unwrap()
    };
    for (optimizer, biases) in [("sgd", true), ("sgd", false), ("bold-driver", true), ("adagrad", true)] {
        let (one, eight) = (error(1, optimizer, biases), error(8, optimizer, biases));
        assert!(eight < 1.6 * one, "{optimizer}, biases {biases}: {eight} with eight workers, {one} with one");
    }
}

#[test]
fn a_new_instance_at_each_clock_changes_nothing() {
    for optimizer in ["sgd", "bold-driver", "adagrad"] {
        let run = |recreate: bool| {
            let (train, test) = low_rank(40, 30, 2, 0.6);
            let host = TestHost::new().seed(1).workers(2).dataset("train", train).dataset("test", test);
            let host = if recreate { host.recreate_each_clock() } else { host };
            let report = host.run::<Factorisation>(json!({"rank": 6, "optimizer": optimizer}), 16, 8).unwrap();
            (report.metrics, host.values::<f32>("items").unwrap())
        };
        assert_eq!(run(false), run(true), "{optimizer}");
    }
}

#[test]
fn nonnegative_factors_stay_at_or_above_zero() {
    for (optimizer, biases) in [("sgd", true), ("sgd", false), ("adagrad", false)] {
        let host = host(1);
        let params = json!({"rank": 6, "nonnegative": true, "biases": biases, "optimizer": optimizer});
        let report = host.run::<Factorisation>(params, 64, 30).unwrap();
        let (items, users) = (host.values::<f32>("items").unwrap(), host.local::<f32>(0, "users").unwrap());
        assert!(items.iter().chain(&users).all(|x| *x >= 0.0), "{optimizer}, biases {biases}");
        assert!(users.iter().any(|x| *x > 0.0));
        assert!(report.clocks[29]["train_rmse"] < report.clocks[0]["train_rmse"]);
    }
}

/// ½(e² + λ(|p|² + |q|² + b_u² + b_i²)) of one rating, in double precision.
fn loss(x: &[f64], rank: usize, mean: f64, rating: f64, l2: f64) -> f64 {
    let (p, rest) = x.split_at(rank);
    let (q, biases) = rest.split_at(rank);
    let dot: f64 = p.iter().zip(q).map(|(p, q)| p * q).sum();
    let error = rating - (mean + biases[0] + biases[1] + dot);
    0.5 * (error * error + l2 * x.iter().map(|x| x * x).sum::<f64>())
}

#[test]
fn a_step_is_the_gradient_of_the_regularised_loss() {
    // Lengths that the compiler knows, one with padding, and one beyond them.
    for rank in [4, 10, 37] {
        let mut rng = Rng::from_seed(rank as u64);
        let (mean, rating, l2, rate) = (3.5, 4.5, 0.3, 1e-2);
        let x: Vec<f64> = (0..2 * rank + 2).map(|_| f64::from(0.3 * rng.normal() as f32)).collect();
        let mut sides = [Rows::new(rank), Rows::new(rank)];
        for (s, side) in sides.iter_mut().enumerate() {
            side.push(false);
            side.row_mut(0)[..rank].iter_mut().zip(&x[s * rank..]).for_each(|(to, from)| *to = *from as f32);
            side.biases[0] = x[2 * rank + s] as f32;
        }
        let rule =
            Rule { rate: rate as f32, l2: l2 as f32, biases: Some(mean as f32), nonnegative: false, adagrad: false };
        let [users, items] = &mut sides;
        let met = pass(&rule, &[Rating { user: 0, item: 0, value: rating as f32 }], users, items);
        let error = (2.0 * (loss(&x, rank, mean, rating, 0.0))).sqrt();
        assert!((met.sqrt() - error).abs() < 1e-5, "rank {rank}: error {} not {error}", met.sqrt());
        let after = |i: usize| match i.checked_sub(2 * rank) {
            Some(side) => f64::from(sides[side].biases[0]),
            None => f64::from(sides[i / rank].row(0)[i % rank]),
        };
        for i in 0..x.len() {
            let at = |d: f64| {
                let mut x = x.clone();
                x[i] += d;
                loss(&x, rank, mean, rating, l2)
            };
            let gradient = (at(1e-5) - at(-1e-5)) / 2e-5;
            let stepped = (x[i] - after(i)) / rate;
            assert!((stepped - gradient).abs() < 1e-4, "rank {rank}, place {i}: {stepped} not {gradient}");
        }
        assert!(sides.iter().all(|s| s.row(0)[rank..].iter().all(|x| *x == 0.0)), "padding moved");
    }
}

#[test]
fn the_bold_driver_grows_after_progress_and_halves_after_a_setback() {
    assert!((bold(0.1, 2.0, 1.0) - 0.105).abs() < 1e-12);
    assert_eq!(bold(0.1, 1.0, 1.0), 0.05);
    assert_eq!(bold(0.1, 1.0, f64::NAN), 0.05);
    // All workers drive alike, by the errors that the clocks before the last one showed.
    let host = host(2);
    let params = json!({"rank": 3, "optimizer": "bold-driver", "learning_rate": 0.02});
    let report = host.run::<Factorisation>(params, 64, 20).unwrap();
    assert!(report.clocks[19]["train_rmse"] < 0.5 * report.clocks[0]["train_rmse"], "{:?}", report.clocks);
    let (a, b) = (host.local::<f64>(0, "driver").unwrap(), host.local::<f64>(1, "driver").unwrap());
    assert_eq!(a, b);
    let fell = report.clocks.windows(2).take(18).filter(|c| c[1]["train_rmse"] < c[0]["train_rmse"]).count();
    let expected = 0.02 * 1.05f64.powi(fell as i32) * 0.5f64.powi(18 - fell as i32);
    assert!((a[0] - expected).abs() < 1e-12, "step size {} not {expected}", a[0]);
}

#[test]
fn unseen_users_and_items_get_the_mean_and_predictions_stay_in_range() {
    let (train, _) = low_rank(40, 30, 2, 0.6);
    let host = TestHost::new().dataset("train", train.clone());
    let params = json!({"rank": 4});
    host.run::<Factorisation>(params.clone(), 32, 5).unwrap();
    let mean = host.values::<f64>("rating_mean").unwrap()[0] as f32;
    let (min, max) = (host.values::<f64>("rating_min").unwrap()[0], host.values::<f64>("rating_max").unwrap()[0]);
    let ask = Dataset::new().column("user", &[1u32, 999, 1, 999]).column("item", &[2u32, 2, 777, 777]);
    let got = host.dataset("ask", ask).predict::<Factorisation>(params, "ask", 3).unwrap();
    let got = got.column::<f32>("rating").unwrap();
    assert_eq!(&got[1..], &[mean; 3]);
    assert!(got[0] != mean && f64::from(got[0]) >= min && f64::from(got[0]) <= max);
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    let refused = |params: Value| host(1).run::<Factorisation>(params, 64, 1).unwrap_err().to_string();
    assert!(refused(json!({"rank": 0})).contains("rank must be between 1 and 4096"));
    assert!(refused(json!({"learning_rate": -0.1})).contains("learning_rate"));
    assert!(refused(json!({"l2": -1.0})).contains("l2"));
    assert!(refused(json!({"optimizer": "adam"})).contains("adam"));
    assert!(refused(json!({"factors": 3})).contains("factors"));
}
