//! A dataset at rest, and how some of its rows become a batch: runs of neighbouring rows are found once, then each
//! column copies run by run.

use crate::chunk::Chunk;
use crate::dictionary::UNSEEN;
use crate::intake::Stats;
use slackline_core::each_dtype;
use slackline_core::values::{DType, Element, Values, ValuesRef};
use slackline_core::{Batch, Column};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A column of a dataset.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) list: bool,
    /// For a coded column: from stored codes to final ones.
    pub(crate) recode: Option<Vec<u32>>,
    pub(crate) stats: Stats,
    pub(crate) keys: Option<u64>,
}

/// Rows and columns, read and at rest.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) name: Arc<str>,
    pub(crate) rows: u64,
    /// The columns of batches, in the order of the chunks' columns.
    pub(crate) columns: Vec<Meta>,
    /// The chunks' column that holds the hash by which rows are shared out.
    pub(crate) hash: Option<usize>,
    pub(crate) chunks: Vec<Chunk>,
    /// The first row of each chunk.
    pub(crate) starts: Vec<u64>,
    pub(crate) spilled: bool,
}

/// Neighbouring rows of one chunk.
struct Run {
    chunk: usize,
    at: usize,
    len: usize,
}

impl Dataset {
    fn locate(&self, row: u64, near: usize) -> usize {
        let inside = |c: usize| row >= self.starts[c] && row - self.starts[c] < self.chunks[c].rows as u64;
        if near < self.chunks.len() && inside(near) {
            return near;
        }
        self.starts.partition_point(|s| *s <= row) - 1
    }

    fn runs(&self, rows: impl Iterator<Item = u64>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut next = None;
        for row in rows {
            match (next == Some(row), runs.last_mut()) {
                (true, Some(run)) if run.at + run.len < self.chunks[run.chunk].rows => run.len += 1,
                (_, last) => {
                    let chunk = self.locate(row, last.map_or(0, |r| r.chunk));
                    runs.push(Run { chunk, at: (row - self.starts[chunk]) as usize, len: 1 });
                }
            }
            next = Some(row + 1);
        }
        runs
    }

    /// The batch of `rows` (places in the dataset, all below its row count), known to their worker as `ids`.
    pub(crate) fn gather(&self, ids: Vec<u64>, rows: impl Iterator<Item = u64>) -> Batch {
        let runs = self.runs(rows);
        let columns: BTreeMap<String, Column> = self
            .columns
            .iter()
            .enumerate()
            .map(|(c, meta)| (meta.name.clone(), self.column(c, meta, ids.len(), &runs)))
            .collect();
        Batch { dataset: self.name.clone(), ids: Arc::new(Values::U64(ids)), columns }
    }

    fn column(&self, c: usize, meta: &Meta, rows: usize, runs: &[Run]) -> Column {
        let mut values = Values::zeros(meta.dtype, 0);
        if !meta.list {
            each_dtype!(Values, &mut values, to => self.copy_flat(c, rows, runs, to));
            return Column::flat(self.recoded(meta, values));
        }
        let mut offsets = Vec::with_capacity(rows + 1);
        let mut total = 0u32;
        offsets.push(0);
        for run in runs {
            let ends = self.chunks[run.chunk].columns[c].offsets().unwrap_or_default();
            for w in ends[run.at..=run.at + run.len].windows(2) {
                total += (w[1] - w[0]) as u32;
                offsets.push(total);
            }
        }
        each_dtype!(Values, &mut values, to => self.copy_lists(c, total as usize, runs, to));
        Column::list(self.recoded(meta, values), offsets)
    }

    fn copy_flat<T: Element>(&self, c: usize, rows: usize, runs: &[Run], to: &mut Vec<T>) {
        to.reserve_exact(rows);
        for same in runs.chunk_by(|a, b| a.chunk == b.chunk) {
            let from = T::slice(self.chunks[same[0].chunk].columns[c].values()).unwrap_or_default();
            for run in same {
                // Shuffled rows come alone.
                match run.len {
                    1 => to.push(from[run.at]),
                    n => to.extend_from_slice(&from[run.at..run.at + n]),
                }
            }
        }
    }

    fn copy_lists<T: Element>(&self, c: usize, total: usize, runs: &[Run], to: &mut Vec<T>) {
        to.reserve_exact(total);
        for same in runs.chunk_by(|a, b| a.chunk == b.chunk) {
            let column = &self.chunks[same[0].chunk].columns[c];
            let from = T::slice(column.values()).unwrap_or_default();
            let ends = column.offsets().unwrap_or_default();
            for run in same {
                to.extend_from_slice(&from[ends[run.at] as usize..ends[run.at + run.len] as usize]);
            }
        }
    }

    fn recoded(&self, meta: &Meta, mut values: Values) -> Values {
        if let (Some(recode), Values::U32(codes)) = (&meta.recode, &mut values) {
            for c in codes {
                *c = recode.get(*c as usize).copied().unwrap_or(UNSEEN);
            }
        }
        values
    }

    /// Every row's hash, for sharing rows out.
    pub(crate) fn hashes(&self) -> Option<impl Iterator<Item = u32> + '_> {
        let c = self.hash?;
        Some(self.chunks.iter().flat_map(move |chunk| match chunk.columns[c].values() {
            ValuesRef::U32(v) => v.iter().copied(),
            _ => [].iter().copied(),
        }))
    }
}
