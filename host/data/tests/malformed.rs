//! Malformed input: each case is a file and the words that its message must have. None may panic, and none may make us
//! allocate by its own word.

mod common;

use common::*;
use slackline_core::manifest::ColumnWant;
use slackline_core::values::DType;
use slackline_data::{DataSpec, inspect};

fn check_bytes(name: &str, bytes: &[u8], wants: &[ColumnWant], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), name, bytes);
    let e = read(&spec(&path), wants).map(|_| ()).unwrap_err().to_string();
    for word in [name].iter().chain(words) {
        assert!(e.contains(word), "{name} {:?}: no {word:?} in: {e}", String::from_utf8_lossy(bytes));
    }
    assert!(!e.ends_with('.') && !e.contains('\n'), "{e}");
}

fn check(name: &str, text: &str, wants: &[ColumnWant], words: &[&str]) {
    check_bytes(name, text.as_bytes(), wants, words);
}

#[test]
fn malformed_libsvm_is_located() {
    let svm = |text: &str, words: &[&str]| check("bad.libsvm", text, &libsvm_wants(), words);
    svm("1 1:0.5 2:1\n0 1:0.5 2:oops\n", &["bad.libsvm:2: column 3: expected index:value, found \"2:oops\""]);
    svm("1 1:0.5\n\n# note\nx 1:1\n", &["bad.libsvm:4: column 1: expected a number (f32), found \"x\""]);
    svm("1 2:1 2:1\n", &[":1: column 3", "above 2", "ascend"]);
    svm("1 3:1 2:1\n", &[":1: column 3", "above 3"]);
    svm("1 0:1\n", &["from 1 up"]);
    svm("1 qid:3 1:1\n", &["ranking groups", "qid:3"]);
    svm("1 1:nan\n", &["finite number"]);
    svm("1 1:1e39\n", &["f32 can hold"]);
    svm("1 1:\n", &["index:value"]);
    svm("1 1\n", &["index:value"]);
    svm("1 :1\n", &["index:value"]);
    svm("1 99999999999:1\n", &["u32 can hold", "99999999999"]);
    svm("1 99999999999999999999999:1\n", &["index:value"]);
    svm("1,2 1:1\n", &["found \"1,2\""]);
    svm("", &["has no rows"]);
}

#[test]
fn malformed_csv_is_located_by_line_and_column() {
    let wants = [want_coded("user"), want("rating", DType::F32)];
    let csv = |text: &str, words: &[&str]| check("bad.csv", text, &wants, words);
    csv("user,rating\n1,3\n2,high\n", &["bad.csv:3: column 2 (rating): expected a number (f32), found \"high\""]);
    csv("user,rating\n1,\n", &[":2: column 2 (rating)", "an empty field"]);
    csv("user,rating\n1\n", &[":2", "expected 2 fields, found 1"]);
    csv("user,rating\n1,2,3\n", &["expected 2 fields, found 3"]);
    csv("user,rating\n\"1\n2\",x\n", &[":2: column 2"]);
    csv("usr,rating\n1,2\n", &["no column \"user\"", "did you mean \"usr\"", "usr, rating"]);
    csv("user,rating,user\n1,2,3\n", &["two columns", "user"]);
    csv("user,rating\n", &["has no rows"]);
    csv("user,rating\n\u{fffd},inf\n", &["finite number"]);
    check_bytes("bad.csv", b"user,rating\n\xff\xfe,1\n", &wants, &["UTF-8"]);
    check("bad.csv", "t\n16777217\n", &[want("t", DType::F32)], &["f32 can hold without loss", "16777217"]);
    check("bad.csv", "t\n3.5\n", &[want("t", DType::I32)], &["i32 can hold without loss"]);
    check("bad.csv", "t\n-1\n", &[want("t", DType::U32)], &["u32"]);
    check("bad.csv", "t\n1\n", &[want_list("x", DType::F32)], &["no column \"x\"", "the file has t"]);
}

#[test]
fn malformed_bags_of_words_are_located() {
    let bow = |text: &str, words: &[&str]| check("docword.bad.txt", text, &bow_wants(), words);
    bow("2\n3\n2\n1 1 1\n2 4 1\n", &[":5: column 2", "a word of 1..=3", "\"4\""]);
    bow("2\n3\n2\n1 0 1\n2 1 1\n", &[":4: column 2"]);
    bow("2\n3\n2\n2 1 1\n1 1 1\n", &[":5: column 1", "ascend"]);
    bow("2\n3\n2\n1 1\n2 1 1\n", &[":4: column 3", "a count"]);
    bow("2\n3\n1\n1 1 1 1\n", &[":4: column 4", "end of the line"]);
    bow("2\n3\n1\n3 1 1\n", &["a document of 1..=2"]);
    bow("2\n3\n5\n1 1 1\n", &[":3", "expected 1, the number of lines", "found 5"]);
    bow("two\n3\n5\n", &[":1", "number of documents", "\"two\""]);
    bow("2\n", &["number of words"]);
    let ldac = |text: &str, words: &[&str]| check("bad.ldac", text, &bow_wants(), words);
    ldac("2 0:1 5:2\n1 1:1 2:1\n", &["bad.ldac:2: column 1: expected 2, the number of pairs", "\"1\""]);
    ldac("1 3\n", &["word:count", "\"3\""]);
    ldac("1 3:0\n", &["a count from 1 up"]);
    ldac("x\n", &["number of pairs"]);
}

#[test]
fn a_vocabulary_must_agree() {
    let folder = tempfile::tempdir().unwrap();
    let vocab = write(folder.path(), "vocab.txt", "a\nb\n");
    for (name, text, words) in [
        ("docword.t.txt", "1\n3\n1\n1 1 1\n", ["2 words, as in", "found 3"]),
        ("t.ldac", "1 2:1\n", ["a word below 2", "2:1"]),
        ("t.csv", "word\n1\n", ["vocab belongs to uci-bow", "csv"]),
    ] {
        let mut spec = spec(&write(folder.path(), name, text));
        spec.datasets.get_mut("train").unwrap().vocab = Some(vocab.clone());
        let e = read(&spec, &bow_wants()).unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
    }
}

#[test]
fn malformed_matrices_are_located() {
    let wants = [want_list("index", DType::U32), want_list("value", DType::F32)];
    let head = "%%MatrixMarket matrix coordinate real general\n";
    let mtx = |text: &str, words: &[&str]| check("bad.mtx", &format!("{head}{text}"), &wants, words);
    mtx("% note\n2 2 1\n3 1 1\n", &["bad.mtx:4: column 1", "1..=2"]);
    mtx("2 2 1\n1 1 x\n", &[":3: column 3: expected a number, found \"x\""]);
    mtx("2 2 1\n1 1\n", &["a number"]);
    mtx("2 2 3\n1 1 1\n", &["3 entries", "found 1"]);
    mtx("2 2 2\n1 1 1\n1 1 2\n", &["row 1", "one value for each place"]);
    mtx("2 2\n", &[":2", "rows columns entries"]);
    mtx("", &["a line with the sizes"]);
    check("bad.mtx", "%%MatrixMarket matrix coordinate complex general\n", &wants, &[":1", "real|integer|pattern"]);
    let x = [want("x", DType::F32)];
    check("bad.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n", &x, &["2 values", "found 1"]);
    check("bad.mtx", "%%MatrixMarket matrix array integer general\n1 1\n1.5\n", &x, &[":3: column 1", "an integer"]);
}

fn npy(descr: &str, order: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.resize(out.len() + bytes, 0);
    out
}

#[test]
fn malformed_npy_is_explained() {
    let x = [want_list("x", DType::F32)];
    let check = |bytes: &[u8], words: &[&str]| check_bytes("bad.npy", bytes, &x, words);
    check(b"PK\x03\x04....", &["NUMPY"]);
    check(b"\x93NU", &["end of the file"]);
    check(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", &["64 KiB"]);
    check(&npy("'<f4'", "False", "(2, 3)", 20), &["2 rows of 3 values", "end of the file"]);
    check(&npy("'<f4'", "False", "(2, 3)", 28), &["more bytes"]);
    check(&npy("'<f4'", "True", "(2, 3)", 24), &["ascontiguousarray"]);
    check(&npy("'<c8'", "False", "(2, 3)", 48), &["descr"]);
    check(&npy("[('a', '<f4')]", "False", "(2, 3)", 48), &["descr"]);
    check(&npy("'<f4'", "False", "(2, 3, 4)", 96), &["one or two dimensions"]);
    let mut nan = npy("'<f4'", "False", "(1, 2)", 4);
    nan.extend(f32::NAN.to_le_bytes());
    check(&nan, &["row 1: column 2", "finite", "NaN"]);
    let flat = [want("x", DType::F32)];
    check_bytes("bad.npy", &npy("'<f4'", "False", "(2, 3)", 24), &flat, &["a value a row is wanted", "a list a row"]);
}

#[test]
fn sizes_that_a_file_claims_allocate_nothing() {
    let huge = [
        ("docword.t.txt", b"4000000000\n10\n1\n1 1 1\n".to_vec()),
        ("docword.t.txt", b"4000000000\n10\n1\n3999999999 1 1\n".to_vec()),
        ("docword.t.txt", b"99999999999999\n10\n1\n1 1 1\n".to_vec()),
        ("docword.t.txt", b"1\n10\n18446744073709551615\n1 1 1\n".to_vec()),
        ("t.mtx", b"%%MatrixMarket matrix coordinate real general\n4000000000 4000000000 1\n1 1 1\n".to_vec()),
        ("t.mtx", b"%%MatrixMarket matrix coordinate real general\n1 1 18446744073709551615\n1 1 1\n".to_vec()),
        ("t.mtx", b"%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n".to_vec()),
        ("t.npy", npy("'<f8'", "False", "(18446744073709551615, 1000)", 8)),
        ("t.npy", npy("'<f8'", "False", "(1, 18446744073709551615)", 8)),
        ("t.npy", npy("'<f8'", "False", "(1, 100000000000)", 8)),
        ("t.ldac", b"18446744073709551615 1:1\n".to_vec()),
    ];
    for (name, bytes) in huge {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), name, &bytes);
        let wants = match name {
            "t.npy" => vec![want_list("x", DType::F32)],
            "t.mtx" if bytes.windows(5).any(|w| w == b"array") => vec![want_list("x", DType::F32)],
            "t.mtx" => vec![want_list("index", DType::U32)],
            _ => bow_wants(),
        };
        let e = read(&spec(&path), &wants).unwrap_err();
        assert!(e.to_string().contains(name), "{e}");
        // Inspecting skips malformed rows, and must not believe sizes either.
        let _ = inspect(&path, None);
    }
    assert!(peak_bytes().is_none_or(|peak| peak < 1 << 30), "{:?}", peak_bytes());
}

/// The most memory this process has had, where the system says.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
fn files_that_are_damaged_or_absent_are_named() {
    let wants = libsvm_wants();
    check_bytes("bad.parquet", b"PAR1 this is not one PAR1", &wants, &["parquet"]);
    check_bytes("bad.arrow", b"ARROW1\0\0\xff\xff\xff\xff\xff\xff\xff\x7f", &wants, &["arrow"]);
    check_bytes("bad.arrow", b"", &wants, &["arrow"]);
    check_bytes("bad.libsvm.gz", &[0x1f, 0x8b, 8, 0, 1, 2, 3], &wants, &[]);
    check_bytes("bad.libsvm.zst", &[0x28, 0xb5, 0x2f, 0xfd, 9, 9, 9], &wants, &[]);
    let folder = tempfile::tempdir().unwrap();
    let e = read(&spec(&folder.path().join("no-such.libsvm")), &wants).unwrap_err().to_string();
    assert!(e.contains("no-such.libsvm"), "{e}");
    let dotted = folder.path().join("folder.csv");
    std::fs::create_dir(&dotted).unwrap();
    assert!(read(&spec(&dotted), &wants).unwrap_err().to_string().contains("is a folder"));
    let e = read(&spec(&folder.path().join("words.txt")), &wants).unwrap_err().to_string();
    assert!(e.contains("uci-bow") && e.contains("parquet"), "{e}");
}

#[test]
fn so_many_bad_rows_are_skipped_and_counted_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "t.csv", "user,rating\na,1\nb,bad\nc,3\nd,worse\ne,5\n");
    let wants = [want_coded("user"), want("rating", DType::F32)];
    let allow = |n| read(&DataSpec { skip_bad_rows: n, ..spec(&path) }, &wants);
    let data = allow(2).unwrap();
    assert_eq!(data.rows("train"), 3);
    assert_eq!(data.labels("user").unwrap(), ["a", "c", "e"]);
    let skipped = &data.skipped()["train"];
    assert_eq!(skipped.rows, 2);
    assert!(skipped.examples[1].contains("t.csv:5") && skipped.examples[1].contains("worse"), "{skipped:?}");
    let e = allow(1).unwrap_err().to_string();
    assert!(e.contains("t.csv:5") && e.contains("after 1 malformed"), "{e}");
    assert!(allow(0).unwrap_err().to_string().starts_with(&format!("{}:3", path.display())));
}

#[test]
fn a_slip_in_a_column_map_is_named_and_the_partition_column_may_be_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "t.csv", "userId,stars\n1,2\n");
    let mapped = |from: &str| {
        let mut spec = DataSpec { partition: slackline_data::Partitioning::Hash("user".into()), ..spec(&path) };
        let map = |name: &str| slackline_data::ColumnMap::One(name.into());
        let columns = [(from.to_owned(), map("stars")), ("user".into(), map("userId"))];
        spec.datasets.get_mut("train").unwrap().columns = columns.into();
        read(&spec, &[want("rating", DType::F32)])
    };
    assert_eq!(mapped("rating").unwrap().rows("train"), 1);
    let e = mapped("ratign").unwrap_err().to_string();
    assert!(e.contains("ratign") && e.contains("did you mean \"rating\""), "{e}");
}
