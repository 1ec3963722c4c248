//! Reading a cut: rows by range, chunk by chunk, each checked before it is believed.

use super::chunk::{Sum, check_sparse, decode_sparse, rows_key, worker_key};
use super::record::{CutRecord, RowChunk, TableEntry};
use super::{CutInfo, WorkerRecord};
use crate::error::{Error, ErrorKind, Result};
use crate::folder::Folder;
use crate::tuning;
use rocksdb::{DB, DBPinnableSlice};
use slackline_core::ports::SparseRows;
use slackline_core::{Clock, Layout, TableId, TableSpec, Values, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;

/// A complete cut, open for reading. Several threads may read at once, each its own range of rows.
pub struct CutReader {
    record: CutRecord,
    db: DB,
    dir: String,
}

/// Some rows of a dense table.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseRows {
    /// The first row.
    pub first: u64,
    /// Whole rows.
    pub values: Values,
}

/// Some rows of a sparse table.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseChunk {
    /// The first row.
    pub first: u64,
    /// The rows.
    pub rows: SparseRows,
}

impl CutReader {
    pub(crate) fn open(folder: &Folder, record: CutRecord) -> Result<Self> {
        let path = record.path(folder);
        let dir = folder.root.display().to_string();
        if !path.is_dir() {
            return Err(Error::new(
                ErrorKind::Missing,
                format!(
                    "the cut at clock {} in {dir} is gone: there is no {}; if a run is going on it has made newer ones",
                    record.clock,
                    path.display()
                ),
            ));
        }
        let db = DB::open_for_read_only(&tuning::cut(false), &path, false).map_err(|e| {
            let e = Error::rocks("open", &path, &e);
            Error::damaged(format!("the cut at clock {} in {dir} is damaged: {e}", record.clock))
        })?;
        Ok(Self { record, db, dir })
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.record.clock
    }

    /// Its size.
    pub fn info(&self) -> CutInfo {
        self.record.info()
    }

    /// What `commit` was given.
    pub fn note(&self) -> &serde_json::Value {
        &self.record.note
    }

    /// Number of workers.
    pub fn workers(&self) -> u32 {
        self.record.workers.len() as u32
    }

    /// The tables, in the order of their ids.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = &TableSpec> {
        self.record.tables.iter().map(|t| &t.spec)
    }

    /// Rows `rows` of a dense table, in order, about 1 MiB at a time.
    pub fn dense_rows(&self, table: TableId, rows: Range<u64>) -> Result<impl Iterator<Item = Result<DenseRows>>> {
        let entry = self.table(table, Layout::Dense, &rows)?;
        Ok(overlapping(entry, rows).map(move |(chunk, keep)| {
            let bytes = self.rows(table, entry, chunk)?;
            let row_bytes = entry.spec.width as usize * entry.spec.dtype.size();
            let values = bytes.get(keep.start * row_bytes..keep.end * row_bytes);
            let values = values.and_then(|b| Values::from_bytes(entry.spec.dtype, b));
            let values =
                values.ok_or_else(|| self.damaged(&rows_name(entry, chunk), "it is no whole number of rows"))?;
            Ok(DenseRows { first: chunk.first + keep.start as u64, values })
        }))
    }

    /// Rows `rows` of a sparse table, like [`CutReader::dense_rows`].
    pub fn sparse_rows(&self, table: TableId, rows: Range<u64>) -> Result<impl Iterator<Item = Result<SparseChunk>>> {
        let entry = self.table(table, Layout::Sparse, &rows)?;
        Ok(overlapping(entry, rows).map(move |(chunk, keep)| {
            let bytes = self.rows(table, entry, chunk)?;
            let damaged = |why: &str| self.damaged(&rows_name(entry, chunk), why);
            let all = decode_sparse(entry.spec.dtype, chunk.rows, chunk.cells, &bytes)
                .ok_or_else(|| damaged("its length does not fit its rows"))?;
            check_sparse(&entry.spec, &all).map_err(|why| damaged(&why))?;
            let first = chunk.first + keep.start as u64;
            Ok(SparseChunk { first, rows: trim(all, keep) })
        }))
    }

    /// A worker's record.
    pub fn worker(&self, worker: WorkerId) -> Result<WorkerRecord> {
        let entry = self.record.workers.get(worker.index()).ok_or_else(|| {
            let (clock, workers) = (self.clock(), self.workers());
            Error::invalid(format!("worker {worker} of the cut at clock {clock}, which has {workers} workers"))
        })?;
        let mut local = BTreeMap::new();
        for (part, buffer) in (1..).zip(&entry.local) {
            let what = format!("local state {:?} of worker {worker}", buffer.name);
            let bytes = self.part(worker, part, &what, &buffer.chunks)?;
            let values = Values::from_bytes(buffer.dtype, &bytes)
                .ok_or_else(|| self.damaged(&what, "it is no whole number of values"))?;
            local.insert(buffer.name.clone(), values);
        }
        let what = format!("saved state of worker {worker}");
        Ok(WorkerRecord {
            digest: entry.digest.clone(),
            saved: self.part(worker, 0, &what, &entry.saved)?,
            local,
            random: entry.random.parse().map_err(|_| self.damaged(&what, "its random position is no number"))?,
            cursor: entry.cursor,
            metrics: entry.metrics.clone(),
        })
    }

    /// Reads everything and checks it against the record.
    pub fn verify(&self) -> Result<()> {
        for (id, entry) in (0..).map(TableId).zip(&self.record.tables) {
            for chunk in &entry.chunks {
                self.rows(id, entry, chunk)?;
            }
        }
        for (w, entry) in (0..).zip(&self.record.workers) {
            let parts = std::iter::once(("saved state", &entry.saved));
            let parts = parts.chain(entry.local.iter().map(|l| (l.name.as_str(), &l.chunks)));
            for (part, (name, chunks)) in (0..).zip(parts) {
                for (i, sum) in (0..).zip(chunks) {
                    self.chunk(&worker_key(w, part, i), &format!("{name} of worker {w}"), sum)?;
                }
            }
        }
        Ok(())
    }

    fn table(&self, table: TableId, layout: Layout, rows: &Range<u64>) -> Result<&TableEntry> {
        let entry = self.record.tables.get(table.index());
        let entry = entry.ok_or_else(|| Error::invalid(format!("there is no table {table} in the cut")))?;
        let spec = &entry.spec;
        if spec.layout != layout {
            return Err(Error::invalid(format!("table {:?} is not {layout:?}", spec.name)));
        }
        if rows.start > rows.end || rows.end > spec.rows {
            let (name, has) = (&spec.name, spec.rows);
            return Err(Error::invalid(format!("rows {rows:?} of table {name:?}, which has {has}")));
        }
        Ok(entry)
    }

    fn rows(&self, table: TableId, entry: &TableEntry, chunk: &RowChunk) -> Result<DBPinnableSlice<'_>> {
        self.chunk(&rows_key(table, chunk.first), &rows_name(entry, chunk), &chunk.sum)
    }

    /// Grows with what is really there, not with what the record says.
    fn part(&self, worker: WorkerId, part: u32, what: &str, sums: &[Sum]) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        for (i, sum) in (0..).zip(sums) {
            all.extend_from_slice(&self.chunk(&worker_key(worker.0, part, i), what, sum)?);
        }
        Ok(all)
    }

    fn chunk(&self, key: &[u8], what: &str, sum: &Sum) -> Result<DBPinnableSlice<'_>> {
        let stored = self.db.get_pinned_opt(key, &tuning::read_once());
        let stored = stored.map_err(|e| self.damaged(what, &e.into_string()))?;
        let bytes = stored.ok_or_else(|| self.damaged(what, "it is missing"))?;
        sum.check(&bytes).map_err(|why| self.damaged(what, &why))?;
        Ok(bytes)
    }

    fn damaged(&self, what: &str, why: &str) -> Error {
        Error::damaged(format!("the cut at clock {} in {} is damaged: {what}: {why}", self.clock(), self.dir))
    }
}

fn rows_name(entry: &TableEntry, chunk: &RowChunk) -> String {
    // The record is checked: the end is within the table.
    format!("rows {}..{} of table {:?}", chunk.first, chunk.first + chunk.rows, entry.spec.name)
}

/// The chunks that hold some of `rows`, each with the places within it of those rows.
fn overlapping(entry: &TableEntry, rows: Range<u64>) -> impl Iterator<Item = (&RowChunk, Range<usize>)> {
    let begin = entry.chunks.partition_point(|c| c.first + c.rows <= rows.start);
    let end = entry.chunks.partition_point(|c| !rows.is_empty() && c.first < rows.end).max(begin);
    entry.chunks[begin..end].iter().map(move |c| {
        let from = rows.start.max(c.first) - c.first;
        let to = rows.end.min(c.first + c.rows) - c.first;
        // A chunk's rows fit in memory, since its bytes do.
        (c, from as usize..to as usize)
    })
}

/// The rows at `keep`, of rows that are sound.
fn trim(all: SparseRows, keep: Range<usize>) -> SparseRows {
    if keep.start == 0 && keep.end + 1 == all.offsets.len() {
        return all;
    }
    let base = all.offsets[keep.start];
    let cells = base as usize..all.offsets[keep.end] as usize;
    let values = all.values.as_ref().window(cells.start, cells.len()).map(|v| v.to_values());
    SparseRows {
        offsets: all.offsets[keep.start..=keep.end].iter().map(|o| o - base).collect(),
        columns: all.columns[cells].to_vec(),
        values: values.unwrap_or_else(|| Values::zeros(all.values.dtype(), 0)),
    }
}
