//! The narrow place between readers and datasets: rows come in one by one, sound ones are kept, malformed ones are
//! counted against what the job allows, and full columns move on to where chunks rest.

use crate::builder::{Builder, Taken};
use crate::chunk::{Chunk, ChunkStore};
use crate::error::{DataError, Place};
use crate::load::Progress;
use crate::number::Misfit;
use crate::read::input::Meter;
use crate::spec::Split;
use slackline_core::each_dtype;
use slackline_core::values::{Element, Values};
use std::path::{Path, PathBuf};

/// What is wrong with a row, before it is known where the row is.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Field, from 1; 0 for the row as a whole.
    pub(crate) column: u64,
    pub(crate) name: Option<String>,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    pub(crate) fn new(column: u64, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { column, name: None, expected: expected.into(), found: found.into() }
    }

    /// A value that does not fit its column.
    pub(crate) fn misfit(column: u64, builder: &Builder, why: Misfit, text: &[u8]) -> Self {
        Self::new(column, builder.expects(why), crate::error::shown(text))
    }

    pub(crate) fn at(self, mut place: Place) -> DataError {
        place.column = (self.column > 0).then_some(self.column);
        place.name = self.name;
        DataError::malformed(place, self.expected, self.found)
    }
}

/// Malformed rows that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub rows: u64,
    /// What was wrong with the first few.
    pub examples: Vec<String>,
}

/// How many messages of skipped rows are kept.
const EXAMPLES: usize = 5;

/// What a column holds, over all its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stats {
    pub(crate) values: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) sum: f64,
}

impl Stats {
    /// Takes `n` values in, with these extremes and sum.
    pub(crate) fn add(&mut self, n: u64, min: f64, max: f64, sum: f64) {
        if n == 0 {
            return;
        }
        let first = self.values == 0;
        self.min = if first { min } else { self.min.min(min) };
        self.max = if first { max } else { self.max.max(max) };
        self.sum += sum;
        self.values += n;
    }

    fn of(values: &Values) -> Self {
        fn scan<T: Element>(v: &[T]) -> Stats {
            let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
            for x in v {
                let x = x.to_f64();
                min = min.min(x);
                max = max.max(x);
                sum += x;
            }
            let mut stats = Stats::default();
            stats.add(v.len() as u64, min, max, sum);
            stats
        }
        each_dtype!(Values, values, v => scan(v))
    }
}

/// The rows of one dataset while they come in.
pub(crate) struct Part {
    pub(crate) dataset: String,
    pub(crate) columns: Vec<Builder>,
    pub(crate) stats: Vec<Stats>,
    pub(crate) rows: u64,
    store: ChunkStore,
    pending: u64,
    chunk_bytes: usize,
}

/// The most bytes of one chunk: enough that chunks are few, little enough that one more does not matter.
const CHUNK_BYTES: u64 = 32 << 20;

impl Part {
    pub(crate) fn new(dataset: &str, columns: Vec<Builder>, store: ChunkStore, memory: u64) -> Self {
        let stats = vec![Stats::default(); columns.len()];
        let chunk_bytes = CHUNK_BYTES.min(memory / 8).max(4096) as usize;
        Self { dataset: dataset.into(), columns, stats, rows: 0, store, pending: 0, chunk_bytes }
    }

    fn flush(&mut self) -> Result<(), DataError> {
        if self.pending == 0 {
            return Ok(());
        }
        let taken: Vec<Taken> = self.columns.iter_mut().map(Builder::take).collect();
        for (stats, t) in self.stats.iter_mut().zip(&taken) {
            let new = Stats::of(&t.values);
            stats.add(new.values, new.min, new.max, new.sum);
        }
        self.pending = 0;
        self.store.push(taken)
    }

    /// Everything that came in.
    pub(crate) fn finish(self) -> Result<Settled, DataError> {
        let spilled = self.store.spilled();
        let chunks = self.store.finish()?;
        Ok(Settled { columns: self.columns, stats: self.stats, chunks, spilled })
    }
}

/// A part that has come to rest.
pub(crate) struct Settled {
    /// Empty of rows; coders still know their values.
    pub(crate) columns: Vec<Builder>,
    pub(crate) stats: Vec<Stats>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) spilled: bool,
}

/// Where a reader puts rows.
pub(crate) struct Intake<'a> {
    path: PathBuf,
    /// One part or, when the file is split, the training part and the test part.
    parts: Vec<Part>,
    split: Option<Split>,
    current: usize,
    accepted: u64,
    allowed: u64,
    skipped: Skipped,
    /// Bytes that a reader may hold where its format cannot be streamed.
    pub(crate) memory: u64,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        path: &Path,
        parts: Vec<Part>,
        split: Option<Split>,
        allowed: u64,
        memory: u64,
        meter: Meter,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let skipped = Skipped::default();
        let mut intake = Self {
            path: path.into(),
            parts,
            split,
            current: 0,
            accepted: 0,
            allowed,
            skipped,
            memory,
            meter,
            progress,
        };
        intake.choose();
        intake
    }

    fn choose(&mut self) {
        self.current = usize::from(self.split.is_some_and(|s| s.is_test(self.accepted)));
    }

    /// The columns that the next row goes to, in the order of what was bound.
    #[inline]
    pub(crate) fn columns(&mut self) -> &mut [Builder] {
        &mut self.parts[self.current].columns
    }

    /// Accepts the row.
    #[inline]
    pub(crate) fn commit(&mut self) -> Result<(), DataError> {
        let part = &mut self.parts[self.current];
        let mut bytes = 0;
        for (i, b) in part.columns.iter_mut().enumerate() {
            if !b.commit() {
                let place = Place::row(&self.path, self.accepted + self.skipped.rows + 1).column(i as u64 + 1);
                return Err(DataError::malformed(place, "a row of bounded length", "one of more than 2^31 values"));
            }
            bytes += b.bytes();
        }
        part.rows += 1;
        part.pending += 1;
        if part.rows > u64::from(u32::MAX) {
            let advice = "split the file; a dataset has at most 4,294,967,295 rows";
            return Err(DataError::Memory { dataset: part.dataset.clone(), limit: self.memory, advice: advice.into() });
        }
        if bytes >= part.chunk_bytes {
            part.flush()?;
        }
        self.accepted += 1;
        if self.accepted.is_multiple_of(1 << 16) {
            self.report();
        }
        if self.split.is_some() {
            self.choose();
        }
        Ok(())
    }

    /// Refuses the row: counts it, or fails when there were too many.
    #[cold]
    pub(crate) fn reject(&mut self, error: DataError) -> Result<(), DataError> {
        for b in self.columns() {
            b.rollback();
        }
        self.skip(error)
    }

    /// Counts something malformed that is no row of its own (a line of a document, say), and keeps the row being read.
    #[cold]
    pub(crate) fn skip(&mut self, error: DataError) -> Result<(), DataError> {
        if self.skipped.rows == self.allowed {
            return Err(match self.allowed {
                0 => error,
                allowed => {
                    let dataset = self.parts[self.current].dataset.clone();
                    DataError::TooManyBadRows { dataset, allowed, last: Box::new(error) }
                }
            });
        }
        self.skipped.rows += 1;
        if self.skipped.examples.len() < EXAMPLES {
            self.skipped.examples.push(error.to_string());
        }
        Ok(())
    }

    /// Malformed rows so far.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.rows
    }

    fn report(&mut self) {
        let (bytes, total) = self.meter.read();
        let dataset = self.parts[0].dataset.clone();
        (self.progress)(Progress { dataset, rows: self.accepted, bytes, total });
    }

    /// Ends the reading.
    pub(crate) fn finish(mut self) -> Result<(Vec<Part>, Skipped), DataError> {
        for part in &mut self.parts {
            part.flush()?;
        }
        self.report();
        Ok((self.parts, self.skipped))
    }
}

/// The most rows without entries that a sparse file may claim, given the entries it showed: a header's word alone must
/// not fill memory.
pub(crate) fn too_many_empty_rows(empty: u64, entries: u64) -> bool {
    empty > 1_000_000 + 16 * entries
}
