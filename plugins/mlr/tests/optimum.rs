//! Training ends at the optimum, whatever the number of workers and however rows lie in partitions.

mod digits;

use serde_json::{Value, json};
use slackline_guest::testing::{Report, TestHost};
use slackline_mlr::Mlr;

/// Optima of (1/n) Σ −log softmax(W·xᵢ [+ b])_yᵢ + (l2/2)·‖W‖² on the digits, by Newton's method in double precision.
const OPTIMA: [(f64, bool, f64); 4] = [
    (0.001, false, 0.2631175678253105),
    (0.001, true, 0.2598994219059377),
    (0.01, false, 0.7412386524276969),
    (0.01, true, 0.7378056368899317),
];

fn train(host: TestHost, params: Value, clocks: u32) -> Report {
    host.run::<Mlr>(params, 64, clocks).unwrap()
}

fn check(report: &Report, optimum: f64) {
    let gap = report.metric("train_objective").unwrap() / optimum - 1.0;
    assert!((-1e-6..=1e-3).contains(&gap), "gap {gap:e} to {optimum}");
}

#[test]
fn the_default_reaches_the_optimum_of_digits_with_any_number_of_workers() {
    let (train_rows, test_rows) = (digits::load("train"), digits::load("test"));
    for (l2, intercept, optimum) in OPTIMA {
        // A clock is an epoch, and workers share its rows: P workers take 1/P of the steps each.
        let epochs = if l2 < 0.01 { 900 } else { 200 };
        for workers in [1, 2, 4] {
            let host = TestHost::new().workers(workers).recreate_each_clock();
            let host = host.dataset("train", train_rows.dataset()).dataset("test", test_rows.dataset());
            let params = json!({"classes": 10, "l2": l2, "intercept": intercept});
            let report = train(host, params, epochs * workers as u32);
            check(&report, optimum);
            assert!(report.metric("test_error").unwrap() < 0.07);
            assert!(report.metric("train_loss").unwrap() < report.metric("train_objective").unwrap());
            assert!(report.metric("test_loss").unwrap() < 0.5);
        }
    }
}

#[test]
fn partitions_of_different_classes_reach_the_same_optimum() {
    let host = TestHost::new().workers(4).dataset("train", by_label(&digits::load("train")).dataset());
    check(&train(host, json!({"l2": 0.001, "intercept": false}), 1000), OPTIMA[0].2);
}

fn by_label(rows: &digits::Rows) -> digits::Rows {
    let mut order: Vec<usize> = (0..rows.labels.len()).collect();
    order.sort_by_key(|i| rows.labels[*i]);
    digits::Rows {
        labels: order.iter().map(|i| rows.labels[*i]).collect(),
        indices: order.iter().map(|i| rows.indices[*i].clone()).collect(),
        values: order.iter().map(|i| rows.values[*i].clone()).collect(),
    }
}

#[test]
fn sgd_and_adagrad_come_near_it() {
    for (optimizer, within) in [("sgd", 0.2), ("adagrad", 0.005)] {
        let host = TestHost::new().dataset("train", digits::load("train").dataset());
        let report = train(host, json!({"l2": 0.001, "intercept": false, "optimizer": optimizer}), 300);
        let gap = report.metric("train_objective").unwrap() / OPTIMA[0].2 - 1.0;
        assert!((-1e-6..within).contains(&gap), "{optimizer}: gap {gap:e}");
    }
}

#[test]
fn two_classes_are_binary_logistic_regression_with_half_the_penalty() {
    // With W = (−w/2, w/2), softmax is the sigmoid of w·x, and (l2/2)·‖W‖² is (l2/4)·‖w‖².
    let rows = digits::load("train");
    let mut two = digits::Rows::default();
    for i in (0..rows.labels.len()).filter(|i| matches!(rows.labels[*i], 3 | 8)) {
        two.labels.push(rows.labels[i]);
        two.indices.push(rows.indices[i].clone());
        two.values.push(rows.values[i].clone());
    }
    let l2 = 0.01;
    let host = TestHost::new().workers(2).dataset("train", two.dataset());
    let report = train(host.clone(), json!({"l2": l2, "intercept": false}), 1000);
    let (w, objective) = binary(&two, l2 / 2.0);
    check(&report, objective);
    let got = host.values::<f32>("weights").unwrap();
    for (row, w) in got.chunks(2).zip(&w) {
        assert!((f64::from(row[1] - row[0]) - w).abs() < 0.02, "{row:?} against {w}");
    }
}

/// Binary logistic regression of label 8 against 3 by plain gradient descent in double precision.
fn binary(rows: &digits::Rows, l2: f64) -> (Vec<f64>, f64) {
    let n = rows.labels.len() as f64;
    let features = rows.indices.iter().flatten().max().map_or(0, |i| *i as usize + 1);
    let mut w = vec![0.0; features];
    let mut objective = 0.0;
    for _ in 0..20_000 {
        let mut g: Vec<f64> = w.iter().map(|w| l2 * w).collect();
        objective = 0.5 * l2 * w.iter().map(|w| w * w).sum::<f64>();
        for (i, label) in rows.labels.iter().enumerate() {
            let entries =
                || rows.indices[i].iter().map(|i| *i as usize).zip(rows.values[i].iter().map(|v| f64::from(*v)));
            let score: f64 = entries().map(|(j, v)| v * w[j]).sum();
            let sign = if *label == 8 { 1.0 } else { -1.0 };
            objective += (-sign * score).exp().ln_1p() / n;
            let slope = -sign / (1.0 + (sign * score).exp()) / n;
            entries().for_each(|(j, v)| g[j] += slope * v);
        }
        w.iter_mut().zip(&g).for_each(|(w, g)| *w -= 0.3 * g);
    }
    (w, objective)
}
