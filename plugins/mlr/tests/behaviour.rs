//! What a job may give, what it gets for it, and what it is told when it errs.

mod digits;

use serde_json::{Value, json};
use slackline_guest::testing::{Dataset, TestHost};
use slackline_mlr::Mlr;

fn weights(data: Dataset, params: Value) -> Vec<u32> {
    let host = TestHost::new().seed(7).workers(2).dataset("train", data);
    host.run::<Mlr>(params, 5, 20).unwrap();
    host.values::<f32>("weights").unwrap().iter().map(|w| w.to_bits()).collect()
}

/// Rows of three features without zeros; the label is the sign of the first.
fn small() -> (Vec<u32>, Vec<Vec<f32>>) {
    let row = |i: u32| vec![if i.is_multiple_of(2) { 1.0 } else { -1.0 }, (i % 7) as f32 - 2.5, 0.25];
    let rows: Vec<Vec<f32>> = (0..23).map(row).collect();
    (rows.iter().map(|r| u32::from(r[0] > 0.0)).collect(), rows)
}

fn sparse(labels: &[u32], rows: &[Vec<f32>]) -> Dataset {
    let indices: Vec<Vec<u32>> = rows.iter().map(|r| (0..r.len() as u32).collect()).collect();
    Dataset::new().column("label", labels).list("index", &indices).list("value", rows)
}

#[test]
fn dense_rows_give_the_same_bits_as_sparse_rows_without_zeros() {
    let (labels, rows) = small();
    for optimizer in ["saga", "sgd", "adagrad"] {
        let params = json!({"optimizer": optimizer});
        let dense = Dataset::new().column("label", &labels).list("x", &rows);
        assert_eq!(weights(dense, params.clone()), weights(sparse(&labels, &rows), params));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let train = digits::load("train");
    for optimizer in ["saga", "sgd", "adagrad"] {
        let params = json!({"optimizer": optimizer});
        assert_eq!(weights(train.dataset(), params.clone()), weights(train.dataset(), params));
    }
}

#[test]
fn predictions_are_codes_and_probabilities_and_ignore_unknown_features() {
    // Labels 5 and 9 are coded 0 and 1.
    let (labels, rows) = small();
    let labels: Vec<u32> = labels.iter().map(|l| if *l == 1 { 9 } else { 5 }).collect();
    let new = Dataset::new()
        .list("index", &[vec![0u32, 2], vec![0, 3, 40], vec![]])
        .list("value", &[vec![1f32, 0.25], vec![-1.0, 1e9, 1e9], vec![]]);
    let host = TestHost::new().dataset("train", sparse(&labels, &rows));
    host.run::<Mlr>(json!({}), 5, 50).unwrap();
    let host = host.dataset("new", new);
    let got = host.predict::<Mlr>(json!({}), "new", 2).unwrap();
    let probability = got.column::<f32>("probability").unwrap();
    assert_eq!(got.column::<u32>("label").unwrap()[..2], [1, 0]);
    assert_eq!(probability.len(), 6);
    assert!(probability.chunks(2).all(|p| (p[0] + p[1] - 1.0).abs() < 1e-6), "{probability:?}");
    assert!(probability[1] > 0.9 && probability[2] > 0.9, "{probability:?}");
}

#[test]
fn a_test_label_that_training_lacks_is_an_error_outside_the_loss() {
    let (labels, rows) = small();
    let test = sparse(&[1, 7], &[rows[0].clone(), rows[0].clone()]);
    let host = TestHost::new().dataset("train", sparse(&labels, &rows)).dataset("test", test);
    let report = host.run::<Mlr>(json!({}), 5, 50).unwrap();
    assert_eq!(report.metric("test_error").unwrap(), 0.5);
    assert!(report.metric("test_loss").unwrap() < 0.2);
    assert!(host.logs().iter().any(|(_, line)| line.contains("1 rows have a label that training lacks")));
}

#[test]
fn features_of_very_different_frequency_and_empty_rows_train() {
    let indices: Vec<Vec<u32>> =
        (0..60u32).map(|i| if i == 7 { vec![0, 9] } else { vec![0; usize::from(i != 3)] }).collect();
    let values: Vec<Vec<f32>> = indices.iter().map(|r| vec![1.0; r.len()]).collect();
    let labels: Vec<u32> = (0..60).map(|i| u32::from(i == 7)).collect();
    let data = Dataset::new().column("label", &labels).list("index", &indices).list("value", &values);
    let host = TestHost::new().workers(3).dataset("train", data);
    let report = host.run::<Mlr>(json!({"l2": 0.001}), 8, 500).unwrap();
    assert_eq!(report.metric("train_error").unwrap(), 0.0);
    let weights = host.values::<f32>("weights").unwrap();
    assert_eq!(weights.len(), (10 + 1) * 2);
    assert!(weights[2..18].iter().all(|w| *w == 0.0), "features that no row has moved: {weights:?}");
}

#[test]
fn wrong_jobs_are_refused_with_the_reason() {
    let (labels, rows) = small();
    let refused = |data: Dataset, params: Value| {
        TestHost::new().dataset("train", data).run::<Mlr>(params, 5, 1).unwrap_err().to_string()
    };
    let both = || sparse(&labels, &rows).list("x", &rows);
    let uneven = Dataset::new().column("label", &[0u32, 1]).list("index", &[vec![0u32], vec![1, 2]]);
    let uneven = uneven.list("value", &[vec![1f32, 2.0], vec![3.0]]);
    let cases: [(Dataset, Value, &str); 9] = [
        (sparse(&[4; 23], &rows), json!({}), "1 distinct values; classes need 2 or more"),
        (sparse(&labels, &rows), json!({"classes": 3}), "classes = 3, but column \"label\""),
        (sparse(&labels, &rows), json!({"l2": -1}), "l2 = -1"),
        (sparse(&labels, &rows), json!({"learning_rate": 0}), "learning_rate = 0"),
        (sparse(&labels, &rows), json!({"optimizer": "adam"}), "adam"),
        (both(), json!({}), "exactly one of these forms"),
        (Dataset::new().column("label", &labels), json!({}), "exactly one of these forms"),
        (sparse(&labels, &vec![Vec::new(); 23]), json!({}), "the training data has no features"),
        (uneven, json!({}), "lists of different lengths"),
    ];
    for (data, params, reason) in cases {
        let told = refused(data, params);
        assert!(told.contains(reason), "{told:?} lacks {reason:?}");
    }
}
