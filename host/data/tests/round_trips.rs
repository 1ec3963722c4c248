//! What is written in a format comes back from it, whatever the values, plain and compressed; and damage to any byte of
//! a file ends in rows or in an error, never in a panic.

mod common;

use arrow::array::{ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int64Array, LargeListArray, ListArray};
use arrow::array::{RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema};
use common::*;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use slackline_core::manifest::ColumnWant;
use slackline_core::values::{DType, Values};
use slackline_data::inspect;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows of (label, ascending indices, values).
type Rows = Vec<(f32, Vec<(u32, f32)>)>;

fn rows() -> impl Strategy<Value = Rows> {
    let finite = || any::<f32>().prop_filter("finite", |v| v.is_finite());
    let entries = prop::collection::btree_map(0u32..1000, finite(), 0..8).prop_map(|m| m.into_iter().collect());
    prop::collection::vec((finite(), entries), 1..20)
}

fn compressed(text: &[u8], how: usize) -> (&'static str, Vec<u8>) {
    match how {
        0 => ("", text.to_vec()),
        1 => {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(text).unwrap();
            (".gz", gz.finish().unwrap())
        }
        _ => (".zst", zstd::encode_all(text, 1).unwrap()),
    }
}

fn same_rows(path: &Path, wants: &[ColumnWant], rows: &Rows) {
    let batch = whole(&read(&spec(path), wants).unwrap(), "train");
    assert_eq!(batch.rows(), rows.len());
    if batch.columns.contains_key("label") {
        assert_eq!(values(&batch, "label"), Values::F32(rows.iter().map(|r| r.0).collect()));
    }
    let flat: Vec<(u32, f32)> = rows.iter().flat_map(|r| r.1.clone()).collect();
    assert_eq!(values(&batch, "index"), Values::U32(flat.iter().map(|e| e.0).collect()));
    assert_eq!(values(&batch, "value"), Values::F32(flat.iter().map(|e| e.1).collect()));
    let mut end = 0;
    let ends = rows.iter().map(|r| {
        end += r.1.len() as u32;
        end
    });
    assert_eq!(offsets(&batch, "value")[1..], ends.collect::<Vec<_>>());
}

fn list(rows: &Rows, index: bool) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|r| r.1.len()));
    let flat: Vec<(u32, f32)> = rows.iter().flat_map(|r| r.1.clone()).collect();
    if index {
        let values = Arc::new(Int64Array::from_iter_values(flat.iter().map(|e| e.0.into())));
        let field = Arc::new(Field::new("item", DataType::Int64, true));
        return Arc::new(ListArray::new(field, offsets, values, None));
    }
    let values = Arc::new(Float32Array::from_iter_values(flat.iter().map(|e| e.1)));
    let field = Arc::new(Field::new("item", DataType::Float32, true));
    let offsets = OffsetBuffer::new(offsets.iter().map(|o| i64::from(*o)).collect::<Vec<_>>().into());
    Arc::new(LargeListArray::new(field, offsets, values, None))
}

fn batch(rows: &Rows) -> RecordBatch {
    let label: ArrayRef = Arc::new(Float32Array::from_iter_values(rows.iter().map(|r| r.0)));
    RecordBatch::try_from_iter([("label", label), ("index", list(rows, true)), ("value", list(rows, false))]).unwrap()
}

fn arrow_bytes(batch: &RecordBatch, as_file: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if as_file {
        let mut w = arrow::ipc::writer::FileWriter::try_new(&mut out, &batch.schema()).unwrap();
        w.write(batch).unwrap();
        w.write(batch).unwrap();
        w.finish().unwrap();
    } else {
        let mut w = arrow::ipc::writer::StreamWriter::try_new(&mut out, &batch.schema()).unwrap();
        w.write(batch).unwrap();
        w.write(batch).unwrap();
        w.finish().unwrap();
    }
    out
}

fn parquet_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
    w.write(batch).unwrap();
    w.write(batch).unwrap();
    w.close().unwrap();
    out
}

fn libsvm_text(rows: &Rows) -> String {
    let row = |(label, entries): &(f32, Vec<(u32, f32)>)| {
        let entries: String = entries.iter().map(|(i, v)| format!(" {}:{v:?}", i + 1)).collect();
        format!("{label:?}{entries}\n")
    };
    rows.iter().map(row).collect()
}

fn mtx_text(rows: &Rows, backwards: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        lines.extend(row.1.iter().map(|(j, v)| format!("{} {} {v:?}\n", i + 1, j + 1)));
    }
    if backwards {
        lines.reverse();
    }
    let head = "%%MatrixMarket matrix coordinate real general\n% made by a test\n";
    format!("{head}{} 1000 {}\n{}", rows.len(), lines.len(), lines.concat())
}

fn npy_bytes(width: usize, values: &[f32]) -> Vec<u8> {
    let shape = format!("({}, {width})", values.len() / width);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    values.iter().for_each(|v| out.extend(v.to_le_bytes()));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn libsvm_comes_back(rows in rows(), how in 0usize..3, ends in prop_oneof![Just("\n"), Just("\r\n")]) {
        let folder = tempfile::tempdir().unwrap();
        let (ending, bytes) = compressed(libsvm_text(&rows).replace('\n', ends).as_bytes(), how);
        same_rows(&write(folder.path(), &format!("t.libsvm{ending}"), bytes), &libsvm_wants(), &rows);
    }

    #[test]
    fn a_coordinate_matrix_comes_back_in_any_order(rows in rows(), backwards: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "t.mtx", mtx_text(&rows, backwards));
        same_rows(&path, &libsvm_wants()[1..], &rows);
    }

    #[test]
    fn arrow_and_parquet_come_back_with_lists_of_every_kind(rows in rows(), how in 0usize..3) {
        let folder = tempfile::tempdir().unwrap();
        let twice: Rows = rows.iter().chain(&rows).cloned().collect();
        let batch = batch(&rows);
        for as_file in [true, false] {
            let (ending, bytes) = compressed(&arrow_bytes(&batch, as_file), how);
            same_rows(&write(folder.path(), &format!("t.arrow{ending}"), bytes), &libsvm_wants(), &twice);
        }
        same_rows(&write(folder.path(), "t.parquet", parquet_bytes(&batch)), &libsvm_wants(), &twice);
    }

    #[test]
    fn a_matrix_comes_back_from_csv_and_npy(width in 1usize..6, n in 1usize..20, v in prop::collection::vec(-1e6f32..1e6, 100)) {
        let folder = tempfile::tempdir().unwrap();
        let v = &v[..width * n];
        let wants = [want_list("x", DType::F32)];
        let npy = write(folder.path(), "t.npy", npy_bytes(width, v));
        let header: Vec<String> = (0..width).map(|i| format!("f{i}")).collect();
        let lines = v.chunks(width).map(|r| r.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(","));
        let csv = write(folder.path(), "t.csv", [header.join(",")].into_iter().chain(lines).collect::<Vec<_>>().join("\n"));
        for path in [npy, csv] {
            let mut spec = spec(&path);
            if path.ends_with("t.csv") {
                let map = slackline_data::ColumnMap::One("f*".into());
                spec.datasets.get_mut("train").unwrap().columns.insert("x".into(), map);
            }
            let batch = whole(&read(&spec, &wants).unwrap(), "train");
            prop_assert_eq!(values(&batch, "x"), Values::F32(v.to_vec()));
            prop_assert_eq!(batch.rows(), n);
        }
    }

    #[test]
    fn a_corpus_comes_back_with_its_empty_documents(
        docs in prop::collection::vec(prop::collection::btree_map(0u32..50, 1u32..9, 0..5), 1..20), how in 0usize..3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let entries: usize = docs.iter().map(|d| d.len()).sum();
        let mut uci = format!("{}\n50\n{entries}\n", docs.len());
        let mut ldac = String::new();
        for (i, doc) in docs.iter().enumerate() {
            ldac.push_str(&doc.len().to_string());
            for (w, c) in doc {
                uci.push_str(&format!("{} {} {c}\n", i + 1, w + 1));
                ldac.push_str(&format!(" {w}:{c}"));
            }
            ldac.push('\n');
        }
        for (name, text) in [("docword.t.txt", uci), ("t.ldac", ldac)] {
            let (ending, bytes) = compressed(text.as_bytes(), how);
            let batch = whole(&read(&spec(&write(folder.path(), &format!("{name}{ending}"), bytes)), &bow_wants()).unwrap(), "train");
            prop_assert_eq!(batch.rows(), docs.len());
            let words = docs.iter().flat_map(|d| d.keys().copied()).collect();
            let counts = docs.iter().flat_map(|d| d.values().copied()).collect();
            prop_assert_eq!(values(&batch, "word"), Values::U32(words));
            prop_assert_eq!(values(&batch, "count"), Values::U32(counts));
        }
    }

    #[test]
    fn damage_ends_in_rows_or_in_an_error(rows in rows(), which in 0usize..7, at: prop::sample::Index, byte: u8, cut: bool) {
        let folder = tempfile::tempdir().unwrap();
        let (name, mut bytes) = match which {
            0 => ("t.libsvm", libsvm_text(&rows).into_bytes()),
            1 => ("t.mtx", mtx_text(&rows, false).into_bytes()),
            2 => ("t.npy", npy_bytes(1, &[1.0, 2.0, 3.0])),
            3 => ("t.arrow", arrow_bytes(&batch(&rows), true)),
            4 => ("t.arrow", arrow_bytes(&batch(&rows), false)),
            5 => ("t.parquet", parquet_bytes(&batch(&rows))),
            _ => ("t.libsvm.gz", compressed(libsvm_text(&rows).as_bytes(), 1).1),
        };
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let path = write(folder.path(), name, bytes);
        let wants = if which == 2 { vec![want_list("x", DType::F32)] } else { libsvm_wants() };
        if let Ok(data) = read(&spec(&path), &wants) {
            whole(&data, "train");
        }
        let _ = inspect(&path, None);
    }
}

#[test]
fn arrow_text_and_fixed_size_lists_are_read_and_nulls_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("a"), None]));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let flat = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let x: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, flat, None));
    let batch = RecordBatch::try_from_iter([("name", name), ("x", x)]).unwrap();
    let wants = [want_coded("name"), want_list("x", DType::F64)];
    let path = write(folder.path(), "t.parquet", parquet_bytes(&batch.slice(0, 2)));
    let all = whole(&read(&spec(&path), &wants).unwrap(), "train");
    assert_eq!(values(&all, "name"), Values::U32(vec![1, 0, 1, 0]));
    assert_eq!(values(&all, "x"), Values::F64(vec![1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]));
    let path = write(folder.path(), "t.arrow", arrow_bytes(&batch, true));
    let e = read(&spec(&path), &wants).unwrap_err().to_string();
    assert!(e.contains("row 3: column \"name\": expected a value, found null"), "{e}");
    let e = read(&spec(&path), &[want("name", DType::F32)]).unwrap_err().to_string();
    assert!(e.contains("column \"name\" holds text, but f32 is wanted"), "{e}");
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "b");
}

#[test]
fn integers_are_never_rounded_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, (1 << 24) + 1]));
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let path = write(folder.path(), "t.parquet", parquet_bytes(&RecordBatch::try_new(schema, vec![id]).unwrap()));
    let e = read(&spec(&path), &[want("id", DType::F32)]).unwrap_err().to_string();
    assert!(e.contains("row 2") && e.contains("f32 can hold without loss") && e.contains("16777217"), "{e}");
    let all = whole(&read(&spec(&path), &[want("id", DType::F64)]).unwrap(), "train");
    assert_eq!(values(&all, "id"), Values::F64(vec![1.0, 16_777_217.0, 1.0, 16_777_217.0]));
}

#[test]
fn symmetric_pattern_and_array_matrices_are_filled_in() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n3 1\n3 2\n";
    let path = write(folder.path(), "t.mtx", text);
    let all = whole(&read(&spec(&path), &libsvm_wants()[1..]).unwrap(), "train");
    assert_eq!(values(&all, "index"), Values::U32(vec![0, 2, 2, 0, 1]));
    assert_eq!(offsets(&all, "index"), [0, 2, 3, 5]);
    assert_eq!(values(&all, "value"), Values::F32(vec![1.0; 5]));
    for (head, values_of, want_x) in [
        ("array real general\n2 3\n", "1\n2\n3\n4\n5\n6\n", vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
        ("array integer symmetric\n2 2\n", "1\n2\n3\n", vec![1.0, 2.0, 2.0, 3.0]),
    ] {
        let path = write(folder.path(), "a.mtx", format!("%%MatrixMarket matrix {head}{values_of}"));
        let all = whole(&read(&spec(&path), &[want_list("x", DType::F32)]).unwrap(), "train");
        assert_eq!(values(&all, "x"), Values::F32(want_x));
    }
}
