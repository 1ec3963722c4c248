//! What a trained model is good for: predictions, tables in other tools' formats, and data made to try it on.

use serde_json::Value;
use slackline_blackbox::{
    digits_job, done, lines, misfit_job, ratings_job, refused, root, said, say, topics_job, write_job,
};
use std::path::Path;

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The rows of a CSV file as numbers, without its header.
fn csv(dir: &Path, name: &str) -> Vec<Vec<f64>> {
    let text = read(dir, name);
    text.lines().skip(1).map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect()
}

/// A .npy file of f32: its shape as Python writes it, and its values.
fn npy(dir: &Path, name: &str) -> (String, Vec<f32>) {
    let bytes = std::fs::read(dir.join(name)).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = String::from_utf8_lossy(&bytes[10..header]).into_owned();
    assert!(text.contains("'<f4'") && text.contains("'fortran_order': False"), "{text}");
    let shape = text[text.find('(').unwrap()..=text.find(')').unwrap()].to_owned();
    let values = bytes[header..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    (shape, values)
}

#[test]
fn predictions_keep_the_order_of_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    said(dir.path(), &format!("run {job} --json --state s"));
    std::fs::write(dir.path().join("new.csv"), "x\n3\n1\n2\n9\n8\n").unwrap();
    for partition in ["rows", "round-robin"] {
        let set = format!("--set data.partition={partition}");
        said(dir.path(), &format!("predict {job} --state s --input new.csv --output p.csv {set}"));
        assert_eq!(read(dir.path(), "p.csv"), "twice\n6\n2\n4\n18\n16\n", "{partition}");
    }
}

#[test]
fn mlr_predicts_the_digits_it_was_not_shown_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 200\n");
    let error = done(&said(dir.path(), "run job.toml --json --state s"))["metrics"]["test_error"].as_f64().unwrap();
    let test = read(&root(), "examples/digits/data/digits.test.scaled.libsvm");
    let labels: Vec<f64> = test.lines().map(|l| l.split(' ').next().unwrap().parse().unwrap()).collect();
    std::fs::write(dir.path().join("new.libsvm"), &test).unwrap();
    let predict = "predict job.toml --state s --input new.libsvm";
    let told = lines(&said(dir.path(), &format!("{predict} --output p.csv --json")));
    assert_eq!((&told[0]["rows"], &told[0]["clock"]), (&labels.len().into(), &200.into()));
    let rows = csv(dir.path(), "p.csv");
    assert_eq!((rows.len(), rows[0].len()), (labels.len(), 11), "a label and ten probabilities");
    let wrong = rows.iter().zip(&labels).filter(|(row, label)| row[0] != **label).count();
    assert!((wrong as f64 / labels.len() as f64 - error).abs() < 1e-9, "{wrong} wrong, and test_error {error}");
    for row in &rows {
        assert!((row[1..].iter().sum::<f64>() - 1.0).abs() < 1e-4, "{row:?}");
    }
    // The same rows the other way round give the same answers the other way round.
    let backwards: String = test.lines().rev().map(|l| format!("{l}\n")).collect();
    std::fs::write(dir.path().join("new.libsvm"), backwards).unwrap();
    said(dir.path(), &format!("{predict} --output b.csv"));
    assert!(csv(dir.path(), "b.csv").iter().rev().eq(&rows));
}

#[test]
fn mf_predicts_ratings_without_being_told_any() {
    let dir = tempfile::tempdir().unwrap();
    ratings_job(dir.path(), "[clock]\nmax = 20\n");
    let rmse = done(&said(dir.path(), "run job.toml --json --state s"))["metrics"]["test_rmse"].as_f64().unwrap();
    let test = read(dir.path(), "ratings/test.csv");
    let header: Vec<&str> = test.lines().next().unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let (user, item, rating) = (at("user"), at("item"), at("rating"));
    let pick = |l: &str, i: usize| l.split(',').nth(i).unwrap().to_owned();
    let asked: String = test.lines().map(|l| format!("{},{}\n", pick(l, user), pick(l, item))).collect();
    std::fs::write(dir.path().join("new.csv"), asked).unwrap();
    said(dir.path(), "predict job.toml --state s --input new.csv --output p.csv");
    let truth = test.lines().skip(1).map(|l| pick(l, rating).parse::<f64>().unwrap());
    let got = csv(dir.path(), "p.csv");
    assert_eq!(got.len(), test.lines().count() - 1);
    let squares: f64 = got.iter().zip(truth).map(|(p, t)| (p[0] - t).powi(2)).sum();
    let by_hand = (squares / got.len() as f64).sqrt();
    assert!((by_hand - rmse).abs() < 1e-3 * rmse, "{by_hand} by hand, {rmse} as the run said");
}

#[test]
fn lda_gives_new_documents_their_topics() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[clock]\nmax = 60\n");
    said(dir.path(), "run job.toml --json --state s");
    said(dir.path(), "predict job.toml --state s --input corpus/docword.test.txt --output p.csv");
    let documents: usize = read(dir.path(), "corpus/docword.test.txt").lines().next().unwrap().parse().unwrap();
    let rows = csv(dir.path(), "p.csv");
    assert_eq!(rows.len(), documents);
    for row in &rows {
        let (theta, topic) = row.split_at(4);
        assert!((theta.iter().sum::<f64>() - 1.0).abs() < 1e-4, "{row:?}");
        let best = (0..4).max_by(|a, b| theta[*a].total_cmp(&theta[*b])).unwrap();
        assert_eq!(topic, [best as f64]);
    }
}

#[test]
fn predictions_for_what_cannot_be_read_or_written_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    said(dir.path(), &format!("run {job} --json --state s"));
    let predict = |words: &str| say(dir.path(), &format!("predict {job} --state s {words}"));
    refused(&predict("--input none.csv --output p.csv"), 3, &["none.csv"]);
    refused(&predict("--input x.csv --output p.xls"), 2, &["p.xls", ".parquet"]);
    refused(&predict("--input x.csv --output no/such/p.csv"), 3, &["no/such/p.csv"]);
    std::fs::write(dir.path().join("y.csv"), "y\n1\n").unwrap();
    refused(&predict("--input y.csv --output p.csv"), 3, &["y.csv", "\"x\""]);
}

#[test]
fn a_dense_table_is_the_same_in_all_five_formats() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 3\n");
    let tables = done(&said(dir.path(), "run job.toml --json --state s"))["tables"].clone();
    let (rows, width) = (tables["weights"]["rows"].as_u64().unwrap(), tables["weights"]["width"].as_u64().unwrap());
    for ending in ["npy", "csv", "parquet", "arrow", "safetensors"] {
        let words = format!("table export weights --state s --to w.{ending} --json");
        assert_eq!(lines(&said(dir.path(), &words))[0]["rows"], rows, "{ending}");
    }
    let (shape, values) = npy(dir.path(), "w.npy");
    assert_eq!((shape, values.len() as u64), (format!("({rows}, {width})"), rows * width));
    assert!(values.iter().any(|v| *v != 0.0) && values.iter().all(|v| v.is_finite()));
    // CSV prints every digit that a float needs.
    let text: Vec<f32> = csv(dir.path(), "w.csv").iter().flat_map(|r| r[1..].iter().map(|v| *v as f32)).collect();
    assert_eq!(text, values);
    let tensors = std::fs::read(dir.path().join("w.safetensors")).unwrap();
    let header = 8 + u64::from_le_bytes(tensors[..8].try_into().unwrap()) as usize;
    let facts: Value = serde_json::from_slice(&tensors[8..header]).unwrap();
    assert_eq!(facts["weights"]["shape"], serde_json::json!([rows, width]));
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(&tensors[header..], raw);
    // The columnar files are read back by our own reader.
    let sum: f64 = values.iter().map(|v| f64::from(*v)).sum();
    for ending in ["parquet", "arrow"] {
        let seen = &lines(&said(dir.path(), &format!("data inspect w.{ending} --json")))[0];
        assert_eq!((&seen["format"], &seen["rows"]), (&ending.into(), &rows.into()));
        let columns = seen["columns"].as_array().unwrap();
        let column = columns.iter().find(|c| c["name"] == "weights").expect("the table's column");
        assert_eq!(column["values"], rows * width);
        let mean = column["mean"].as_f64().unwrap();
        assert!((mean * values.len() as f64 - sum).abs() < 1e-6, "{ending}: {mean}");
    }
    refused(&say(dir.path(), "table export wieghts --state s --to w.csv"), 2, &["wieghts", "weights"]);
    refused(&say(dir.path(), "table export weights --state s --to w.xls"), 2, &["w.xls", ".npy"]);
    refused(&say(dir.path(), "table export weights --state s --to w.csv --cut 77"), 6, &["clock 77"]);
}

#[test]
fn every_format_can_be_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, format, rows) in [
        ("a.csv", "x,y\n1,a\n2,b\n", "csv", 2),
        ("a.libsvm", "1 1:0.5 3:1\n0 2:1\n1 1:2\n", "libsvm", 3),
        ("docword.a.txt", "2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n", "uci-bow", 2),
        ("a.ldac", "2 0:1 4:2\n1 3:1\n", "ldac", 2),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 0.5\n2 3 1\n", "mtx", 2),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
        let seen = &lines(&said(dir.path(), &format!("data inspect {name} --format {format} --json")))[0];
        assert_eq!((&seen["format"], &seen["rows"], &seen["bad_rows"]), (&format.into(), &rows.into(), &0.into()));
        assert!(
            String::from_utf8_lossy(&said(dir.path(), &format!("data inspect {name} --format {format}")).stdout)
                .contains(format)
        );
    }
    std::fs::write(dir.path().join("bad.csv"), "x,y\n1,2\n3\n").unwrap();
    let seen = &lines(&said(dir.path(), "data inspect bad.csv --json"))[0];
    assert_eq!((&seen["rows"], &seen["bad_rows"]), (&1.into(), &1.into()));
    refused(&say(dir.path(), "data inspect none.csv"), 3, &["none.csv"]);
}

#[test]
fn generated_data_can_be_learned() {
    let dir = tempfile::tempdir().unwrap();
    let words = "--rows 1500 --columns 20 --classes 3 --row-values 8 --signal 6 --test-every 5 --seed 3";
    said(dir.path(), &format!("data generate classes --to data {words}"));
    write_job(
        dir.path(),
        "[job]\nname = \"made\"\nplugin = \"mlr\"\nworkers = 2\n[data]\ntrain = \"data/train.libsvm\"\n\
         test = \"data/test.libsvm\"\n[clock]\nmax = 60\n[params]\nl2 = 0.0001\n",
    );
    let error = done(&said(dir.path(), "run job.toml --json --state s"))["metrics"]["test_error"].as_f64().unwrap();
    assert!(error < 0.45, "a guess is wrong in two of three cases, the model in {error}");
    refused(
        &say(dir.path(), "data generate ratings --users 2 --items 2 --ratings 100 --to bad"),
        2,
        &["quarter of all pairs"],
    );
}
