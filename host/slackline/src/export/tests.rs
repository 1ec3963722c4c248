//! Every format read back by a reader that is not ours.

use super::*;
use ::safetensors::SafeTensors;
use arrow::array::*;
use arrow::datatypes::{Float32Type, Int32Type, UInt32Type};
use arrow::ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use slackline_core::Init;
use std::fs::File;

fn spec(layout: Layout, dtype: DType) -> TableSpec {
    TableSpec { name: "w".into(), dtype, layout, rows: 3, width: 4, init: Init::Zero }
}

/// 3 rows of 4 in two chunks.
fn dense_table(path: &Path) -> Result<u64, Error> {
    let mut export = Export::table(path, &spec(Layout::Dense, DType::F32))?;
    export.write(2, &[Cells::Dense(Values::F32((0..8).map(|v| v as f32 + 0.5).collect()))])?;
    export.write(1, &[Cells::Dense(Values::F32(vec![8.5, 9.5, 10.5, f32::NAN]))])?;
    export.finish()
}

/// Rows {1: 10, 3: 30}, {}, {0: −5} in two chunks.
fn sparse_table(path: &Path) -> Result<u64, Error> {
    let mut export = Export::table(path, &spec(Layout::Sparse, DType::I32))?;
    let rows = |offsets: &[u32], columns: &[u32], values: &[i32]| {
        Cells::Sparse(SparseRows {
            offsets: offsets.into(),
            columns: columns.into(),
            values: Values::I32(values.into()),
        })
    };
    export.write(2, &[rows(&[0, 2, 2], &[1, 3], &[10, 30])])?;
    export.write(1, &[rows(&[0, 1], &[0], &[-5])])?;
    export.finish()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap();
    if path.extension().unwrap() == "arrow" {
        FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect()
    } else {
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect()
    }
}

/// Header dictionary and data of an `.npy` file.
fn npy(path: &Path) -> (String, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let len = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    assert!((10 + len).is_multiple_of(64) && bytes[9 + len] == b'\n');
    (String::from_utf8(bytes[10..10 + len].to_vec()).unwrap(), bytes[10 + len..].to_vec())
}

#[test]
fn dense_tables_read_back_from_columnar_files() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["t.arrow", "t.parquet"] {
        let path = dir.path().join(name);
        assert_eq!(dense_table(&path).unwrap(), 3);
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for batch in batches(&path) {
            let lists = batch.column_by_name("w").unwrap().as_fixed_size_list();
            assert_eq!(lists.value_length(), 4);
            values.extend_from_slice(lists.values().as_primitive::<Float32Type>().values());
            ids.extend_from_slice(
                batch.column_by_name("row").unwrap().as_any().downcast_ref::<UInt64Array>().unwrap().values(),
            );
        }
        assert_eq!(ids, [0, 1, 2]);
        assert_eq!(values[..11], (0..11).map(|v| v as f32 + 0.5).collect::<Vec<_>>());
        assert!(values[11].is_nan());
    }
}

#[test]
fn sparse_tables_read_back_from_columnar_files() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["t.arrow", "t.parquet"] {
        let path = dir.path().join(name);
        sparse_table(&path).unwrap();
        let mut rows = Vec::new();
        for batch in batches(&path) {
            let columns = batch.column_by_name("column").unwrap().as_list::<i32>().clone();
            let values = batch.column_by_name("value").unwrap().as_list::<i32>().clone();
            for i in 0..batch.num_rows() {
                let columns = columns.value(i).as_primitive::<UInt32Type>().values().to_vec();
                rows.push((columns, values.value(i).as_primitive::<Int32Type>().values().to_vec()));
            }
        }
        assert_eq!(rows, [(vec![1, 3], vec![10, 30]), (vec![], vec![]), (vec![0], vec![-5])]);
    }
}

#[test]
fn csv_holds_a_line_a_row_or_a_line_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    dense_table(&path).unwrap();
    let want = "row,w_0,w_1,w_2,w_3\n0,0.5,1.5,2.5,3.5\n1,4.5,5.5,6.5,7.5\n2,8.5,9.5,10.5,NaN\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), want);
    sparse_table(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "row,column,value\n0,1,10\n0,3,30\n2,0,-5\n");
}

#[test]
fn arrays_and_tensors_hold_rows_by_columns_also_of_sparse_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.npy");
    dense_table(&path).unwrap();
    let (header, data) = npy(&path);
    assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"), "{header}");
    let Some(Values::F32(values)) = Values::from_bytes(DType::F32, &data) else { panic!() };
    assert_eq!((values.len(), values[10]), (12, 10.5));
    sparse_table(&path).unwrap();
    let want = Values::I32(vec![0, 10, 0, 30, 0, 0, 0, 0, -5, 0, 0, 0]);
    assert_eq!(Values::from_bytes(DType::I32, &npy(&path).1), Some(want.clone()));

    let path = dir.path().join("t.safetensors");
    sparse_table(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = tensors.tensor("w").unwrap();
    assert_eq!((tensor.shape(), tensor.dtype()), (&[3, 4][..], ::safetensors::Dtype::I32));
    assert_eq!(Values::from_bytes(DType::I32, tensor.data()), Some(want));
}

#[test]
fn predictions_of_unknown_length_go_to_all_formats_but_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("class".to_owned(), DType::F32, 1), ("p".to_owned(), DType::F32, 2)];
    let write = |name: &str| {
        let path = dir.path().join(name);
        let mut export = Export::predictions(&path, &columns)?;
        for at in 0..2 {
            let class = Cells::Dense(Values::F32(vec![at as f32]));
            export.write(1, &[class, Cells::Dense(Values::F32(vec![0.25, 0.75]))])?;
        }
        export.finish().map(|rows| (path, rows))
    };
    let (csv, rows) = write("p.csv").unwrap();
    assert_eq!(rows, 2);
    assert_eq!(std::fs::read_to_string(csv).unwrap(), "class,p_0,p_1\n0,0.25,0.75\n1,0.25,0.75\n");
    let (header, data) = npy(&write("p.npy").unwrap().0);
    assert!(header.contains("(2, 3)"));
    let want = Values::F32(vec![0.0, 0.25, 0.75, 1.0, 0.25, 0.75]);
    assert_eq!(Values::from_bytes(DType::F32, &data), Some(want));
    for name in ["p.arrow", "p.parquet"] {
        let total: usize = batches(&write(name).unwrap().0).iter().map(RecordBatch::num_rows).sum();
        assert_eq!(total, 2);
    }
    assert!(matches!(write("p.safetensors"), Err(Error::Unfit { .. })));
    let mixed = [("a".to_owned(), DType::F32, 1), ("b".to_owned(), DType::U32, 1)];
    assert!(matches!(Export::predictions(&dir.path().join("m.npy"), &mixed), Err(Error::Unfit { .. })));
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let e = dense_table(&dir.path().join("t.xls")).unwrap_err();
    assert!([".parquet", ".npy", ".csv", ".arrow", ".safetensors"].iter().all(|w| e.to_string().contains(w)), "{e}");
    assert_eq!(Failure::from(e).exit, Exit::Usage);
    assert!(matches!(dense_table(&dir.path().join("no/t.csv")), Err(Error::Io { .. })));

    let path = dir.path().join("t.csv");
    let sparse = |offsets: &[u32], columns: &[u32]| {
        let values = Values::I32(vec![1; columns.len()]);
        Cells::Sparse(SparseRows { offsets: offsets.into(), columns: columns.into(), values })
    };
    for (layout, cells) in [
        (Layout::Dense, vec![Cells::Dense(Values::I32(vec![0; 7]))]),
        (Layout::Dense, vec![Cells::Dense(Values::F32(vec![0.0; 8]))]),
        (Layout::Dense, vec![]),
        (Layout::Dense, vec![sparse(&[0, 0, 0], &[])]),
        (Layout::Sparse, vec![sparse(&[0, 1], &[0])]),
        (Layout::Sparse, vec![sparse(&[0, 2, 1], &[0])]),
        (Layout::Sparse, vec![sparse(&[0, 1, 1], &[4])]),
        (Layout::Sparse, vec![sparse(&[1, 1, 1], &[0])]),
    ] {
        let mut export = Export::table(&path, &spec(layout, DType::I32)).unwrap();
        assert!(matches!(export.write(2, &cells), Err(Error::Mismatch { .. })), "{cells:?}");
    }
    let short = Export::table(&path, &spec(Layout::Dense, DType::I32)).unwrap();
    assert!(short.finish().unwrap_err().to_string().contains("3 rows"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
