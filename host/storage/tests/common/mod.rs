//! What the tests of this crate share: small tables, records, and reading them back.
#![allow(dead_code, reason = "each test file uses its part")]

use slackline_core::{DType, Init, Layout, TableId, TableSpec, Values, WorkerId};
use slackline_storage::{Cursor, CutInfo, CutReader, CutSpec, State, WorkerRecord};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub fn dense(name: &str, dtype: DType, rows: u64, width: u32) -> TableSpec {
    let init = Init::Uniform { low: -100.0, high: 100.0 };
    TableSpec { name: name.into(), dtype, layout: Layout::Dense, rows, width, init }
}

pub fn sparse(name: &str, dtype: DType, rows: u64, width: u32) -> TableSpec {
    TableSpec { layout: Layout::Sparse, init: Init::Zero, ..dense(name, dtype, rows, width) }
}

pub fn worker(n: u64) -> WorkerRecord {
    WorkerRecord {
        digest: "d1".into(),
        saved: vec![n as u8; 3],
        local: BTreeMap::from([("z".to_owned(), Values::U32(vec![n as u32; 10]))]),
        random: u128::from(n) << 70,
        cursor: Cursor { epoch: n, position: n + 1 },
        metrics: serde_json::json!({"loss": 0.1 + n as f64}),
    }
}

/// Rows of the table that [`write_cut`] writes: 1.9 MB, so two chunks.
pub const ROWS: u64 = 30_000;

pub fn table() -> TableSpec {
    dense("weights", DType::F32, ROWS, 16)
}

/// A cut whose table depends on its clock.
pub fn write_cut(state: &State, clock: u32) -> slackline_storage::Result<CutInfo> {
    let spec = table();
    let values = spec.initial(u64::from(clock), 0, ROWS as usize);
    let cut = state.begin_cut(CutSpec { clock, workers: 1, tables: vec![spec] })?;
    cut.dense_rows(TableId(0), 0, values.as_ref())?;
    cut.worker(WorkerId(0), &worker(u64::from(clock)))?;
    cut.commit(serde_json::json!({"clock": clock}))
}

/// That `cut` is what [`write_cut`] wrote.
pub fn assert_whole(cut: &CutReader) {
    let expected = table().initial(u64::from(cut.clock()), 0, ROWS as usize);
    assert!(read_dense(cut, TableId(0), 0..ROWS) == expected.bytes());
    assert_eq!(cut.worker(WorkerId(0)).unwrap(), worker(u64::from(cut.clock())));
}

pub fn clocks(state: &State) -> Vec<u32> {
    state.cuts().unwrap().iter().map(|c| c.clock).collect()
}

pub fn read_dense(cut: &CutReader, table: TableId, rows: Range<u64>) -> Vec<u8> {
    let mut next = rows.start;
    let width = cut.tables().nth(table.index()).unwrap().width as usize;
    let mut all = Vec::new();
    for piece in cut.dense_rows(table, rows.clone()).unwrap() {
        let piece = piece.unwrap();
        assert_eq!(piece.first, next);
        next += (piece.values.len() / width) as u64;
        all.extend_from_slice(piece.values.bytes());
    }
    assert_eq!(next, rows.end);
    all
}

pub fn read_sparse(cut: &CutReader, table: TableId, rows: Range<u64>) -> (Vec<Vec<u32>>, Vec<u8>) {
    let mut next = rows.start;
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    for piece in cut.sparse_rows(table, rows.clone()).unwrap() {
        let piece = piece.unwrap();
        assert_eq!(piece.first, next);
        next += piece.rows.offsets.len() as u64 - 1;
        for w in piece.rows.offsets.windows(2) {
            columns.push(piece.rows.columns[w[0] as usize..w[1] as usize].to_vec());
        }
        cells.extend_from_slice(piece.rows.values.bytes());
    }
    assert_eq!(next, rows.end);
    (columns, cells)
}

/// Folders of cuts, complete or not, oldest first.
pub fn cut_folders(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir.join("cuts")).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Files in `dir` with this ending.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<PathBuf> = all.filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
    all.sort();
    all
}
