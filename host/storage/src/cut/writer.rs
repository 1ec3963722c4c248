//! Writing a cut: parts come from several threads as they become ready, then one record makes them count.

use super::chunk::{
    CHUNK_BYTES, MAX_CHUNK_BYTES, Sum, bytes_of, check_sparse, encode_sparse, rows_key, sparse_chunk_end, worker_key,
};
use super::record::{CutRecord, LocalEntry, RowChunk, TableEntry, WorkerEntry, folder_name};
use super::{CutInfo, CutSpec, WorkerRecord};
use crate::error::{Error, Result};
use crate::stall::patiently;
use crate::state::State;
use crate::tuning;
use rocksdb::{DB, WriteOptions};
use slackline_core::ports::SparseRows;
use slackline_core::{Clock, Layout, TableId, TableSpec, ValuesRef, WorkerId};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cut that is being written. Its methods may be called from several threads at once. Dropped without
/// [`CutWriter::commit`], it never was.
pub struct CutWriter {
    state: State,
    spec: CutSpec,
    attempt: u64,
    path: PathBuf,
    /// `None` once closed.
    db: Option<DB>,
    unlogged: WriteOptions,
    /// What has been written so far. Locked only to note a chunk, never while one is hashed or written.
    written: Mutex<Written>,
    complete: bool,
}

#[derive(Default)]
struct Written {
    tables: Vec<Vec<RowChunk>>,
    workers: BTreeMap<u32, WorkerEntry>,
    /// The first failed write. The cut cannot be completed after it.
    failed: Option<Error>,
}

impl CutWriter {
    pub(crate) fn begin(state: State, spec: CutSpec, attempt: u64) -> Result<Self> {
        for table in &spec.tables {
            if !table.dtype.is_table_type() || table.width == 0 {
                let (name, width, dtype) = (&table.name, table.width, table.dtype);
                return Err(Error::invalid(format!("table {name:?} cannot hold {width} values of {dtype}")));
            }
        }
        let path = state.folder().cuts().join(folder_name(spec.clock, attempt));
        let db = match DB::open(&tuning::cut(true), &path) {
            Ok(db) => db,
            Err(e) => {
                // The folder is removed at the next opening where it cannot be now.
                let _ = fs::remove_dir_all(&path);
                return Err(Error::rocks("begin a cut in", &path, &e));
            }
        };
        let written = Written { tables: spec.tables.iter().map(|_| Vec::new()).collect(), ..Written::default() };
        Ok(Self {
            state,
            spec,
            attempt,
            path,
            db: Some(db),
            unlogged: tuning::unlogged(),
            written: Mutex::new(written),
            complete: false,
        })
    }

    /// The cut's clock.
    pub fn clock(&self) -> Clock {
        self.spec.clock
    }

    /// Adds rows `first..` of a dense table; `values` are whole rows. Rows may come in any order and in pieces of any
    /// size, each row once; they are stored in chunks of about 1 MiB, so pieces of that size or more are best.
    pub fn dense_rows(&self, table: TableId, first: u64, values: ValuesRef<'_>) -> Result<()> {
        let spec = self.table(table, Layout::Dense)?;
        let width = spec.width as usize;
        if values.dtype() != spec.dtype || !values.len().is_multiple_of(width) {
            return Err(Error::invalid(format!(
                "{} values of {} are no rows of table {:?}, which has {width} of {} a row",
                values.len(),
                values.dtype(),
                spec.name,
                spec.dtype
            )));
        }
        within(spec, first, (values.len() / width) as u64)?;
        let row_bytes = width * spec.dtype.size();
        let rows_per_chunk = (CHUNK_BYTES / row_bytes).max(1);
        let mut first = first;
        for bytes in bytes_of(values).chunks(rows_per_chunk * row_bytes) {
            let rows = (bytes.len() / row_bytes) as u64;
            let sum = self.store(&rows_key(table, first), bytes)?;
            self.note_rows(table, RowChunk { first, rows, cells: rows * width as u64, sum });
            first += rows;
        }
        Ok(())
    }

    /// Adds rows `first..` of a sparse table, like [`CutWriter::dense_rows`].
    pub fn sparse_rows(&self, table: TableId, first: u64, rows: &SparseRows) -> Result<()> {
        let spec = self.table(table, Layout::Sparse)?;
        check_sparse(spec, rows).map_err(|why| Error::invalid(format!("rows of table {:?}: {why}", spec.name)))?;
        let count = rows.offsets.len() - 1;
        within(spec, first, count as u64)?;
        let (mut from, mut bytes) = (0, Vec::new());
        while from < count {
            let to = sparse_chunk_end(rows, from);
            encode_sparse(rows, from, to, &mut bytes);
            let at = first + from as u64;
            let sum = self.store(&rows_key(table, at), &bytes)?;
            let cells = u64::from(rows.offsets[to] - rows.offsets[from]);
            self.note_rows(table, RowChunk { first: at, rows: (to - from) as u64, cells, sum });
            from = to;
        }
        Ok(())
    }

    /// Adds a worker's record.
    pub fn worker(&self, worker: WorkerId, record: &WorkerRecord) -> Result<()> {
        if worker.0 >= self.spec.workers {
            return Err(Error::invalid(format!("worker {worker} of a job with {} workers", self.spec.workers)));
        }
        let saved = self.store_part(worker, 0, &record.saved)?;
        let mut local = Vec::with_capacity(record.local.len());
        for (part, (name, values)) in (1..).zip(&record.local) {
            let chunks = self.store_part(worker, part, values.bytes())?;
            local.push(LocalEntry { name: name.clone(), dtype: values.dtype(), chunks });
        }
        let entry = WorkerEntry {
            digest: record.digest.clone(),
            random: record.random.to_string(),
            cursor: record.cursor,
            metrics: record.metrics.clone(),
            saved,
            local,
        };
        if self.written().workers.insert(worker.0, entry).is_some() {
            return Err(self.fail(Error::invalid(format!("worker {worker} is twice in the cut"))));
        }
        Ok(())
    }

    /// Makes the cut complete, once everything that was given is on disk; refuses when a row or a worker is missing or
    /// occurs twice. `note` is the caller's, given back by [`CutReader::note`](super::CutReader::note). Cuts beyond the
    /// number that is kept go afterwards.
    pub fn commit(mut self, note: serde_json::Value) -> Result<CutInfo> {
        let record =
            self.finish(note).map_err(|e| e.within(format!("the cut at clock {} is abandoned", self.clock())))?;
        self.complete = true;
        Ok(record.info())
    }

    fn finish(&mut self, note: serde_json::Value) -> Result<CutRecord> {
        let written = std::mem::take(&mut *self.written());
        if let Some(e) = written.failed {
            return Err(e);
        }
        let missing = (0..self.spec.workers).find(|w| !written.workers.contains_key(w));
        if let Some(worker) = missing {
            return Err(Error::invalid(format!("it lacks worker {worker}")));
        }
        let tables = std::iter::zip(&self.spec.tables, written.tables).map(|(spec, mut chunks)| {
            chunks.sort_by_key(|c| c.first);
            TableEntry { spec: spec.clone(), chunks }
        });
        let workers = written.workers.into_values().collect();
        let mut record = CutRecord::new(self.clock(), self.attempt, tables.collect(), workers);
        record.note = note;
        record.check().map_err(Error::invalid)?;
        self.db()?.flush().map_err(|e| Error::rocks("write", &self.path, &e))?;
        self.db = None;
        self.state.commit(&record)?;
        Ok(record)
    }

    fn table(&self, table: TableId, layout: Layout) -> Result<&TableSpec> {
        match self.spec.tables.get(table.index()) {
            Some(spec) if spec.layout == layout => Ok(spec),
            Some(spec) => Err(Error::invalid(format!("table {:?} is not {layout:?}", spec.name))),
            None => Err(Error::invalid(format!("there is no table {table} among {}", self.spec.tables.len()))),
        }
    }

    fn store_part(&self, worker: WorkerId, part: u32, bytes: &[u8]) -> Result<Vec<Sum>> {
        (0..)
            .zip(bytes.chunks(CHUNK_BYTES))
            .map(|(i, chunk)| self.store(&worker_key(worker.0, part, i), chunk))
            .collect()
    }

    fn store(&self, key: &[u8], bytes: &[u8]) -> Result<Sum> {
        if bytes.len() as u64 > MAX_CHUNK_BYTES {
            return Err(self.fail(Error::invalid(format!("a row of {} bytes is over the limit", bytes.len()))));
        }
        if let Some(e) = &self.written().failed {
            return Err(e.clone());
        }
        let sum = Sum::of(bytes);
        let db = self.db()?;
        match patiently(db, || db.put_opt(key, bytes, &self.unlogged)) {
            Ok(()) => Ok(sum),
            Err(e) => Err(self.fail(Error::rocks("write", &self.path, &e))),
        }
    }

    fn note_rows(&self, table: TableId, chunk: RowChunk) {
        if let Some(chunks) = self.written().tables.get_mut(table.index()) {
            chunks.push(chunk);
        }
    }

    fn fail(&self, e: Error) -> Error {
        self.written().failed.get_or_insert(e).clone()
    }

    fn db(&self) -> Result<&DB> {
        self.db.as_ref().ok_or_else(|| Error::invalid("the cut is closed"))
    }

    /// A poisoned lock means that a thread died between two whole notes: what is missing, `commit` finds.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CutWriter {
    fn drop(&mut self) {
        if !self.complete {
            self.db = None;
            // What cannot be removed now is removed when the state is opened next.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn within(spec: &TableSpec, first: u64, rows: u64) -> Result<()> {
    match first.checked_add(rows) {
        Some(end) if end <= spec.rows => Ok(()),
        _ => Err(Error::invalid(format!("rows {first}+{rows} of table {:?}, which has {}", spec.name, spec.rows))),
    }
}
