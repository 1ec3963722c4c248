//! MovieLens against the reference's band, for any number of workers.
//!
//! The files are not in the repository (their licence does not allow it): the tests say so and pass where the shared
//! folder is absent. `SLACKLINE_SHARED` names it; by default it lies beside the repository.

use serde_json::{Value, json};
use slackline_guest::testing::{Dataset, Report, TestHost};
use slackline_mf::Factorisation;
use std::path::PathBuf;

fn shared() -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SLACKLINE_SHARED").map_or_else(beside, PathBuf::from);
    let there = shared.join("data/sets/movielens-100k-2016/train.csv").exists();
    if !there {
        println!("skipped: no MovieLens files under {}", shared.display());
    }
    there.then_some(shared)
}

/// The columns of a CSV file with the header user,item,rating,timestamp; rows in an order of its own, as a shuffled epoch.
fn ratings(path: PathBuf) -> Dataset {
    let text = std::fs::read_to_string(&path).expect("a file that exists");
    let (mut users, mut items, mut values) = (Vec::<u32>::new(), Vec::<u32>::new(), Vec::<f32>::new());
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    slackline_guest::Rng::from_seed(1).shuffle(&mut lines);
    for line in lines {
        let mut fields = line.split(',');
        let mut field = || fields.next().expect("four columns");
        users.push(field().parse().expect("a user"));
        items.push(field().parse().expect("an item"));
        values.push(field().parse().expect("a rating"));
    }
    Dataset::new().column("user", &users).column("item", &items).column("rating", &values)
}

fn train(shared: &std::path::Path, workers: usize, params: Value) -> Report {
    let set = shared.join("data/sets/movielens-100k-2016");
    let host = TestHost::new()
        .seed(1)
        .workers(workers)
        .dataset("train", ratings(set.join("train.csv")))
        .dataset("test", ratings(set.join("test.csv")));
    host.run::<Factorisation>(params, 1024, 30).expect("a run")
}

/// The test error is at most the worst of the reference's ten seeds, plus what was agreed.
fn check(band: &str, slack: f64, params: Value) {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("refs/mf_movielens_band.json")).expect("the reference");
    let bands: Value = serde_json::from_str(&text).expect("the reference's JSON");
    let bands = bands["bands"].as_array().expect("a list of bands");
    let max = bands.iter().find(|b| b["name"] == band).and_then(|b| b["test_rmse"]["max"].as_f64());
    let limit = max.expect("a band") + slack;
    for workers in [1, 2, 4] {
        let report = train(&shared, workers, params.clone());
        let (test, fit) = (report.metric("test_rmse").unwrap(), report.metric("train_rmse").unwrap());
        println!("{band}, {workers} workers: test {test:.4}, train {fit:.4}, limit {limit:.4}");
        assert!(test <= limit, "{band}, {workers} workers: test RMSE {test:.4} > {limit:.4}");
    }
}

#[test]
fn biased_model_is_in_the_band() {
    check("biased_k10", 0.01, json!({"rank": 10, "l2": 0.05, "biases": true}));
}

#[test]
fn plain_model_is_in_the_band() {
    check("plain_k10", 0.01, json!({"rank": 10, "l2": 0.05, "biases": false}));
}
