//! A cut's record: every part with its length and checksum. Its being there is what makes the cut complete.

use super::chunk::{MAX_CHUNK_BYTES, Sum, dense_bytes, sparse_bytes};
use super::{Cursor, CutInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::folder::Folder;
use serde::{Deserialize, Serialize};
use slackline_core::{Clock, DType, Layout, TableSpec};
use std::collections::BTreeSet;
use std::path::PathBuf;

const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CutRecord {
    pub(crate) version: u32,
    pub(crate) clock: Clock,
    /// Which attempt wrote it, and so in which folder it is.
    pub(crate) attempt: u64,
    pub(crate) tables: Vec<TableEntry>,
    /// By worker.
    pub(crate) workers: Vec<WorkerEntry>,
    /// The caller's own words on the job as a whole.
    pub(crate) note: serde_json::Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TableEntry {
    pub(crate) spec: TableSpec,
    /// By first row, without gaps.
    pub(crate) chunks: Vec<RowChunk>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RowChunk {
    pub(crate) first: u64,
    pub(crate) rows: u64,
    /// Values stored.
    pub(crate) cells: u64,
    pub(crate) sum: Sum,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerEntry {
    pub(crate) digest: String,
    /// In decimal: JSON numbers do not hold 128 bits everywhere.
    pub(crate) random: String,
    pub(crate) cursor: Cursor,
    pub(crate) metrics: serde_json::Value,
    pub(crate) saved: Vec<Sum>,
    /// By name.
    pub(crate) local: Vec<LocalEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LocalEntry {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) chunks: Vec<Sum>,
}

/// `clock.attempt`, with zeros before, so that folders sort as cuts do.
pub(crate) fn folder_name(clock: Clock, attempt: u64) -> String {
    format!("{clock:010}.{attempt:06}")
}

pub(crate) fn parse_folder_name(name: &str) -> Option<(Clock, u64)> {
    let (clock, attempt) = name.split_once('.')?;
    let parsed = (clock.parse().ok()?, attempt.parse().ok()?);
    (folder_name(parsed.0, parsed.1) == name).then_some(parsed)
}

impl CutRecord {
    pub(crate) fn new(clock: Clock, attempt: u64, tables: Vec<TableEntry>, workers: Vec<WorkerEntry>) -> Self {
        Self { version: VERSION, clock, attempt, tables, workers, note: serde_json::Value::Null }
    }

    pub(crate) fn path(&self, folder: &Folder) -> PathBuf {
        folder.cuts().join(folder_name(self.clock, self.attempt))
    }

    pub(crate) fn info(&self) -> CutInfo {
        let sums = |sums: &[Sum]| sums.iter().map(|s| s.bytes).sum::<u64>();
        let tables: u64 = self.tables.iter().flat_map(|t| &t.chunks).map(|c| c.sum.bytes).sum();
        let workers: u64 =
            self.workers.iter().map(|w| sums(&w.saved) + w.local.iter().map(|l| sums(&l.chunks)).sum::<u64>()).sum();
        CutInfo {
            clock: self.clock,
            bytes: tables + workers,
            workers: self.workers.len() as u32,
            tables: self.tables.len(),
        }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::invalid(format!("the record of the cut at {}: {e}", self.clock)))
    }

    /// Reads and checks the record that was stored for `clock`.
    pub(crate) fn from_bytes(clock: Clock, bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |why: String| Error::damaged(format!("the record of the cut at clock {clock} is damaged: {why}"));
        // The version first: another version need not have the other fields.
        let found: Versioned = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if found.version != VERSION {
            let newer = found.version > VERSION;
            let kind = if newer { ErrorKind::NewerVersion } else { ErrorKind::OlderVersion };
            let v = found.version;
            return Err(Error::new(
                kind,
                format!("the cut at clock {clock} has record version {v}, this release reads {VERSION}"),
            ));
        }
        let record: Self = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if record.clock != clock {
            return Err(damaged(format!("it says clock {}", record.clock)));
        }
        record.check().map_err(damaged)?;
        Ok(record)
    }

    /// What keeps the record from being that of a complete and readable cut, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for table in &self.tables {
            if !names.insert(&table.spec.name) {
                return Err(format!("there are two tables {:?}", table.spec.name));
            }
            table.check().map_err(|why| format!("table {:?} {why}", table.spec.name))?;
        }
        for (w, worker) in self.workers.iter().enumerate() {
            worker.check().map_err(|why| format!("worker {w} {why}"))?;
        }
        // So that totals are sums that do not overflow.
        let sums = self
            .tables
            .iter()
            .flat_map(|t| t.chunks.iter().map(|c| &c.sum))
            .chain(self.workers.iter().flat_map(|w| w.saved.iter().chain(w.local.iter().flat_map(|l| &l.chunks))));
        match sums.map(|s| s.bytes).find(|bytes| *bytes > MAX_CHUNK_BYTES) {
            Some(bytes) => Err(format!("a part of {bytes} bytes is over the limit of {MAX_CHUNK_BYTES}")),
            None => Ok(()),
        }
    }
}

impl TableEntry {
    /// The table's type, and that its chunks hold every row once.
    fn check(&self) -> Result<(), String> {
        let spec = &self.spec;
        if !spec.dtype.is_table_type() || spec.width == 0 {
            return Err(format!("cannot hold {} values of {}", spec.width, spec.dtype));
        }
        let mut next = 0u64;
        for chunk in &self.chunks {
            if chunk.first < next {
                return Err(format!("has row {} twice", chunk.first));
            }
            if chunk.first > next {
                return Err(format!("lacks rows {next}..{}", chunk.first));
            }
            let bytes = match spec.layout {
                Layout::Dense => dense_bytes(spec, chunk.rows),
                Layout::Sparse => sparse_bytes(spec, chunk.rows, chunk.cells),
            };
            if bytes != Some(chunk.sum.bytes) || chunk.rows == 0 {
                return Err(format!("has a part of {} rows and {} bytes", chunk.rows, chunk.sum.bytes));
            }
            next = match next.checked_add(chunk.rows) {
                Some(end) if end <= spec.rows => end,
                _ => return Err(format!("has rows beyond its {}", spec.rows)),
            };
        }
        if next != spec.rows {
            return Err(format!("lacks rows {next}..{}", spec.rows));
        }
        Ok(())
    }
}

impl WorkerEntry {
    fn check(&self) -> Result<(), String> {
        if self.random.parse::<u128>().is_err() {
            return Err(format!("has random position {:?}", self.random));
        }
        for pair in self.local.windows(2) {
            if pair[0].name >= pair[1].name {
                return Err(format!("has local state {:?} out of order", pair[1].name));
            }
        }
        for local in &self.local {
            let size = local.dtype.size() as u64;
            if local.chunks.iter().any(|c| c.bytes % size != 0) {
                return Err(format!("has local state {:?} that is no whole number of {}", local.name, local.dtype));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn record() -> Value {
        let sum = |bytes: u64| json!({"bytes": bytes, "blake3": "00"});
        json!({
            "version": 1, "clock": 5, "attempt": 0, "note": null,
            "tables": [
                {"spec": {"name": "d", "dtype": "f32", "layout": "dense", "rows": 10, "width": 2},
                 "chunks": [{"first": 0, "rows": 4, "cells": 8, "sum": sum(32)},
                            {"first": 4, "rows": 6, "cells": 12, "sum": sum(48)}]},
                {"spec": {"name": "s", "dtype": "i64", "layout": "sparse", "rows": 2, "width": 9},
                 "chunks": [{"first": 0, "rows": 2, "cells": 3, "sum": sum(48)}]},
            ],
            "workers": [{"digest": "d", "random": "0", "cursor": {"epoch": 0, "position": 0}, "metrics": null,
                         "saved": [sum(3)], "local": [{"name": "a", "dtype": "u32", "chunks": [sum(8)]},
                                                      {"name": "b", "dtype": "u32", "chunks": []}]}],
        })
    }

    /// That the record with `value` at `pointer` is refused with this class, for a reason that says `words`.
    fn check(pointer: &str, value: Value, kind: ErrorKind, words: &str) {
        let mut changed = record();
        *changed.pointer_mut(pointer).unwrap() = value;
        let e = CutRecord::from_bytes(5, changed.to_string().as_bytes()).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().contains(words) && e.to_string().contains("clock 5"), "{e}");
    }

    #[test]
    fn records_that_cannot_be_true_are_refused() {
        let sound = CutRecord::from_bytes(5, record().to_string().as_bytes()).unwrap();
        assert_eq!(sound.info().bytes, 32 + 48 + 48 + 3 + 8);
        let d = ErrorKind::Damaged;
        check("/version", json!(2), ErrorKind::NewerVersion, "version 2");
        check("/version", json!(0), ErrorKind::OlderVersion, "version 0");
        check("/version", json!(-1), d, "damaged");
        check("/clock", json!(6), d, "clock 6");
        check("/tables/0/chunks/1/first", json!(3), d, "has row 3 twice");
        check("/tables/0/chunks/1/first", json!(5), d, "lacks rows 4..5");
        check("/tables/0/chunks/1/rows", json!(u64::MAX), d, "rows and 48 bytes");
        check("/tables/0/spec/rows", json!(11), d, "lacks rows 10..11");
        check("/tables/0/spec/rows", json!(9), d, "rows beyond its 9");
        check("/tables/0/spec/width", json!(0), d, "0 values");
        check("/tables/0/spec/width", json!(u32::MAX), d, "rows and 32 bytes");
        check("/tables/0/spec/dtype", json!("u8"), d, "u8");
        check("/tables/0/spec/dtype", json!("f16"), d, "damaged");
        check("/tables/0/spec/name", json!("s"), d, "two tables");
        check("/tables/1/chunks/0/cells", json!(4), d, "48 bytes");
        check("/tables/1/chunks/0/cells", json!(u64::MAX), d, "48 bytes");
        check("/workers/0/random", json!("-1"), d, "random position");
        check("/workers/0/saved/0/bytes", json!(u64::MAX), d, "over the limit");
        check("/workers/0/local/0/chunks/0/bytes", json!(7), d, "whole number");
        check("/workers/0/local/1/name", json!("a"), d, "out of order");
    }

    #[test]
    fn folder_names_are_read_back_and_others_left_alone() {
        assert_eq!(folder_name(20, 3), "0000000020.000003");
        assert_eq!(parse_folder_name("0000000020.000003"), Some((20, 3)));
        assert_eq!(parse_folder_name(&folder_name(u32::MAX, u64::MAX)), Some((u32::MAX, u64::MAX)));
        for other in ["20.3", "0000000020", "0000000020.000003.old", "thesis.tex", ""] {
            assert_eq!(parse_folder_name(other), None, "{other}");
        }
    }
}
