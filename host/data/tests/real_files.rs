//! Real sets, as their owners publish them, against the figures that their descriptions state.

mod common;

use common::*;
use slackline_core::manifest::ColumnWant;
use slackline_core::values::{DType, Values};
use slackline_data::{ColumnMap, DataSpec, Partitioning, Source, Split, inspect};
use std::collections::BTreeMap;

struct Expected {
    rows: u64,
    column: &'static str,
    values: u64,
    sum: Option<f64>,
    keys: Option<u64>,
}

fn check(file: &str, vocab: Option<&str>, wants: &[ColumnWant], expected: Expected) {
    let Some(path) = shared(file) else { return };
    let mut spec = spec(&path);
    if let Some(vocab) = vocab {
        spec.datasets.get_mut("train").unwrap().vocab = shared(vocab);
    }
    let data = read(&spec, wants).unwrap();
    let facts = &data.facts(1).datasets["train"];
    assert_eq!(facts.rows, expected.rows, "{file}");
    let column = &facts.columns[expected.column];
    assert_eq!((column.values, column.keys), (expected.values, expected.keys), "{file}");
    if let Some(sum) = expected.sum {
        assert_eq!(column.sum, sum, "{file}");
    }
    assert_eq!(whole(&data, "train").rows() as u64, expected.rows);
}

#[test]
fn bags_of_words_have_the_documents_and_tokens_of_their_description() {
    let tokens = |rows, values, sum| Expected { rows, column: "count", values, sum: Some(sum), keys: None };
    let of = |e: Expected, keys| Expected { keys: Some(keys), ..e };
    let (uci, ldac) = ("ap/docword.train.txt", "ap/corpus.train.ldac");
    for file in [uci, ldac] {
        check(file, Some("ap/vocab.txt"), &bow_wants(), of(tokens(2022, 272_060, 392_769.0), 37));
    }
    let words = Expected { rows: 2022, column: "word", values: 272_060, sum: None, keys: Some(10_473) };
    check(uci, Some("ap/vocab.txt"), &bow_wants(), words);
    let news = Expected { rows: 16_873, column: "word", values: 934_456, sum: None, keys: Some(1995) };
    check("20news-2k/docword.train.txt.gz", Some("20news-2k/vocab.txt"), &bow_wants(), news);
}

#[test]
fn both_formats_of_a_corpus_give_the_same_batches() {
    let (Some(uci), Some(ldac)) = (shared("reuters/docword.train.txt"), shared("reuters/corpus.train.ldac")) else {
        return;
    };
    let [a, b] = [uci, ldac].map(|p| whole(&read(&spec(&p), &bow_wants()).unwrap(), "train"));
    for c in ["word", "count"] {
        assert_eq!(values(&a, c), values(&b, c));
        assert_eq!(offsets(&a, c), offsets(&b, c));
    }
}

#[test]
fn digits_are_the_same_from_csv_npy_and_libsvm() {
    let (Some(csv), Some(npy), Some(svm)) =
        (shared("digits/digits.csv"), shared("digits/digits_X.npy"), shared("digits/digits.libsvm"))
    else {
        return;
    };
    let mut from_csv = spec(&csv);
    let source = from_csv.datasets.get_mut("train").unwrap();
    let pixels = (0..64).map(|i| format!("c{i}")).collect();
    source.columns =
        BTreeMap::from([("x".into(), ColumnMap::Many(pixels)), ("label".into(), ColumnMap::One("c64".into()))]);
    let a = whole(&read(&from_csv, &[want_list("x", DType::F32), want("label", DType::U32)]).unwrap(), "train");
    let b = whole(&read(&spec(&npy), &[want_list("x", DType::F32)]).unwrap(), "train");
    assert_eq!(a.rows(), 1797);
    assert_eq!(values(&a, "x"), values(&b, "x"));
    let mut dense = vec![0f32; 1797 * 64];
    let mut wants = libsvm_wants();
    wants[0] = want_coded("label");
    let c = whole(&read(&spec(&svm), &wants).unwrap(), "train");
    let (Values::U32(index), Values::F32(value)) = (values(&c, "index"), values(&c, "value")) else { panic!() };
    for (row, ends) in offsets(&c, "index").windows(2).enumerate() {
        for i in ends[0] as usize..ends[1] as usize {
            dense[row * 64 + index[i] as usize] = value[i];
        }
    }
    assert_eq!(values(&a, "x"), Values::F32(dense));
    assert_eq!(values(&a, "label"), values(&c, "label"));
}

#[test]
fn ratings_are_coded_by_the_training_users_and_items() {
    let (Some(train), Some(test)) = (shared("movielens-100k-2016/train.csv"), shared("movielens-100k-2016/test.csv"))
    else {
        return;
    };
    let mut spec = spec(&train);
    spec.datasets.insert("test".into(), Source::new(test));
    spec.partition = Partitioning::Hash("user".into());
    let data = read(&spec, &[want_coded("user"), want_coded("item"), want("rating", DType::F32)]).unwrap();
    assert_eq!((data.rows("train"), data.rows("test")), (80_004, 20_000));
    let test = whole(&data, "test");
    let (Values::U32(user), Values::U32(item)) = (values(&test, "user"), values(&test, "item")) else { panic!() };
    let unseen = user.iter().zip(&item).filter(|(u, i)| **u == u32::MAX || **i == u32::MAX).count();
    assert_eq!(unseen, 752);
    let facts = &data.facts(2).datasets["train"].columns["user"];
    assert_eq!(facts.max as u64 + 1, facts.keys.unwrap());
}

#[test]
fn a_split_by_rule_gives_the_published_parts() {
    let (Some(all), Some(train), Some(test)) =
        (shared("digits/digits.libsvm"), shared("digits/digits.train.libsvm"), shared("digits/digits.test.libsvm"))
    else {
        return;
    };
    let split = DataSpec { split: Some(Split::Every { every: 5, at: 4 }), ..spec(&all) };
    let data = read(&split, &libsvm_wants()).unwrap();
    for (name, file) in [("train", train), ("test", test)] {
        let published = whole(&read(&spec(&file), &libsvm_wants()).unwrap(), "train");
        let ours = whole(&data, name);
        for c in ["label", "index", "value"] {
            assert_eq!(values(&ours, c), values(&published, c), "{name} {c}");
        }
    }
}

#[test]
fn a_matrix_market_file_gives_lists_of_indices() {
    let Some(path) = shared("strads-lasso500x1k/lasso500by1K.X.mmt") else { return };
    let wants = [want_list("index", DType::U32), want_list("value", DType::F64)];
    let facts = read(&spec(&path), &wants).unwrap().facts(1);
    let train = &facts.datasets["train"];
    assert_eq!((train.rows, train.columns["index"].values, train.columns["index"].keys), (500, 20_000, Some(1000)));
}

#[test]
fn every_set_can_be_inspected() {
    let of = |file: &str| shared(file).map(|p| inspect(&p, None).unwrap());
    if let Some(i) = of("movielens-100k-2016/train.csv") {
        assert_eq!((i.rows, i.bad_rows), (80_004, 0));
        assert_eq!(
            i.columns.iter().map(|c| c.kind.as_str()).collect::<Vec<_>>(),
            ["integer", "integer", "real", "integer"]
        );
        assert_eq!((i.columns[2].min, i.columns[2].max, i.columns[2].distinct), (Some(0.5), Some(5.0), Some(10)));
        assert_eq!(i.first_rows[0], ["383", "21", "3", "789652009"]);
    }
    if let Some(i) = of("mnist10k/mnist10k.test.libsvm.gz") {
        assert_eq!((i.rows, i.compression.to_string().as_str(), i.columns[0].distinct), (2000, "gzip", Some(10)));
    }
    if let Some(i) = of("riboflavin/riboflavin.csv.gz") {
        assert_eq!(i.rows, 71);
    }
    if let Some(i) = of("agaricus/agaricus.train.libsvm") {
        assert_eq!((i.rows, i.columns[1].max), (6513, Some(125.0)));
    }
}
