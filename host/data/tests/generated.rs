//! Generated sets: they are read back by our own readers, the same for the same seed, and their truth is stated.

mod common;

use common::*;
use slackline_core::manifest::ColumnWant;
use slackline_core::values::{DType, Values};
use slackline_data::generate::{Classes, Generated, Ratings, Regression, Topics};
use slackline_data::{DataError, Source};
use std::path::Path;

/// Makes a set twice and another seed's once, reads it, and gives the truth.
fn check(
    make: impl Fn(u64, &Path) -> Result<Generated, DataError>,
    names: [&str; 2],
    wants: &[ColumnWant],
    rows: [u64; 2],
) -> (Generated, slackline_data::Data) {
    let folders = [0; 3].map(|_| tempfile::tempdir().unwrap());
    let made = make(7, folders[0].path()).unwrap();
    make(7, folders[1].path()).unwrap();
    make(8, folders[2].path()).unwrap();
    let bytes = |f: usize, name: &str| std::fs::read(folders[f].path().join(name)).unwrap();
    for file in &made.files {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(bytes(0, name), bytes(1, name), "{name}");
    }
    assert_ne!(bytes(0, names[0]), bytes(2, names[0]));
    let mut spec = spec(&folders[0].path().join(names[0]));
    if rows[1] > 0 {
        spec.datasets.insert("test".into(), Source::new(folders[0].path().join(names[1])));
    }
    let data = read(&spec, wants).unwrap();
    assert_eq!([data.rows("train"), data.rows("test")], rows);
    (made, data)
}

#[test]
fn ratings() {
    let wants = [want("user", DType::U32), want("item", DType::U32), want("rating", DType::F32)];
    let make = |seed, folder: &Path| {
        Ratings { ratings: 5000, users: 300, items: 200, seed, ..Default::default() }.write(folder)
    };
    let (made, data) = check(make, ["train.csv", "test.csv"], &wants, [4000, 1000]);
    // The noise has variance 0.25 and rounding to halves adds 1/48.
    let oracle = made.truth["oracle_test_rmse"].as_f64().unwrap();
    assert!((oracle - (0.25f64 + 1.0 / 48.0).sqrt()).abs() < 0.05, "{oracle}");
    let all = whole(&data, "train");
    let (Values::U32(u), Values::U32(i)) = (values(&all, "user"), values(&all, "item")) else { panic!() };
    let mut pairs: Vec<(u32, u32)> = u.into_iter().zip(i).collect();
    pairs.sort_unstable();
    assert!(pairs.windows(2).all(|w| w[0] != w[1]));
    let facts = &data.facts(1).datasets["train"].columns;
    assert!(facts["rating"].min >= 0.5 && facts["rating"].max <= 5.0 && facts["user"].max < 300.0);
}

#[test]
fn topics() {
    let make =
        |seed, folder: &Path| Topics { documents: 300, vocabulary: 400, seed, ..Default::default() }.write(folder);
    let (made, data) = check(make, ["docword.train.txt", "docword.test.txt"], &bow_wants(), [270, 30]);
    let oracle = made.truth["oracle_test_perplexity"].as_f64().unwrap();
    assert!(oracle > 1.0 && oracle < 400.0, "{oracle}");
    let tokens = data.facts(1).datasets["train"].columns["count"].sum;
    assert_eq!(tokens, made.truth["train"]["tokens"].as_f64().unwrap());
    assert!((tokens / 270.0 - 150.0).abs() < 5.0, "{tokens}");
}

#[test]
fn regression() {
    let make = |seed, folder: &Path| {
        Regression { rows: 200, columns: 500, support: 10, test_every: 5, seed, ..Default::default() }.write(folder)
    };
    let (made, data) = check(make, ["train.libsvm", "test.libsvm"], &libsvm_wants(), [160, 40]);
    let truth = &made.truth;
    let [support, beta] = ["support", "beta"].map(|k| truth[k].as_array().unwrap().clone());
    let all = whole(&data, "train");
    let (Values::U32(index), Values::F32(value)) = (values(&all, "index"), values(&all, "value")) else { panic!() };
    let Values::F32(label) = values(&all, "label") else { panic!() };
    let mut squares = 0.0;
    for (row, ends) in offsets(&all, "index").windows(2).enumerate() {
        let mut left = f64::from(label[row]);
        for e in ends[0] as usize..ends[1] as usize {
            if let Some(s) = support.iter().position(|s| s.as_u64() == Some(index[e].into())) {
                left -= beta[s].as_f64().unwrap() * f64::from(value[e]);
            }
        }
        squares += left * left;
    }
    // What the true coefficients leave is the noise.
    let variance = squares / 160.0;
    assert!((variance / truth["noise_variance"].as_f64().unwrap() - 1.0).abs() < 0.4, "{variance}");
}

#[test]
fn classes() {
    let make = |seed, folder: &Path| {
        Classes { rows: 2000, columns: 100, row_values: 10, seed, ..Default::default() }.write(folder)
    };
    let (made, data) = check(make, ["train.libsvm", "test.libsvm"], &libsvm_wants(), [1600, 400]);
    let error = made.truth["bayes_test_error"].as_f64().unwrap();
    assert!(error > 0.05 && error < 0.6, "{error}");
    let facts = &data.facts(1).datasets["train"].columns;
    assert_eq!((facts["label"].min, facts["label"].max, facts["index"].keys), (0.0, 9.0, Some(100)));
}

#[test]
fn options_that_make_no_set_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let full = Ratings { users: 10, items: 10, ratings: 90, ..Default::default() };
    assert!(full.write(folder.path()).unwrap_err().to_string().contains("quarter of all pairs"));
    let wide = Classes { columns: 5, ..Default::default() };
    assert!(wide.write(folder.path()).unwrap_err().to_string().contains("row_values"));
    let none = Topics { topics: 0, ..Default::default() };
    assert!(none.write(folder.path()).unwrap_err().to_string().contains("topics"));
    let long = Regression { rows: 10, column_values: 11, ..Default::default() };
    assert!(long.write(folder.path()).unwrap_err().to_string().contains("column_values"));
}
