//! Cuts while training goes on (C11): shards and workers hand in their parts as they reach the clock, one thread writes
//! them, and a cut counts once everything is in.

use crate::engine::board::Board;
use crate::engine::error::RunError;
use crate::engine::versions::History;
use crate::events::HistoryPoint;
use crossbeam_channel::Receiver;
use serde_json::{Value, json};
use slackline_core::ports::SparseRows;
use slackline_core::{Clock, RowDeltas, ShardId, TableId, TableSpec, WorkerId};
use slackline_server::TableSnapshot;
use slackline_storage::{CutInfo, CutSpec, CutWriter, State, WorkerRecord};
use std::collections::BTreeMap;
use std::time::Instant;

/// At which clocks cuts are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSchedule {
    every: Option<u32>,
}

impl CutSchedule {
    /// Every so many clocks, or never.
    pub fn every(every: Option<u32>) -> Self {
        Self { every: every.filter(|n| *n > 0) }
    }

    /// The first cut after `clock`.
    pub fn after(self, clock: Clock) -> Option<Clock> {
        self.every.and_then(|n| (clock / n).checked_add(1)?.checked_mul(n))
    }

    /// Whether a cut is due at `clock`.
    pub fn is_due(self, clock: Clock) -> bool {
        clock > 0 && self.every.is_some_and(|n| clock.is_multiple_of(n))
    }
}

/// A part of a cut.
pub enum CutMessage {
    /// A shard's rows, exactly as of `at`.
    Shard {
        /// The cut.
        at: Clock,
        /// Whose rows.
        shard: ShardId,
        /// All its tables.
        tables: Vec<TableSnapshot>,
    },
    /// A worker's side, as of its tick into `at`.
    Worker {
        /// The cut.
        at: Clock,
        /// Whose side.
        worker: WorkerId,
        /// The side.
        record: Box<WorkerRecord>,
    },
}

/// A cut that became complete.
#[derive(Clone, Debug)]
pub struct CutDone {
    /// What it is.
    pub info: CutInfo,
    /// From its first part to the disk.
    pub seconds: f64,
}

/// Writes cuts until all senders are gone.
pub struct CutKeeper<'a> {
    state: &'a State,
    board: &'a Board,
    tables: Vec<TableSpec>,
    workers: u32,
    shards: u32,
    open: BTreeMap<Clock, OpenCut>,
}

struct OpenCut {
    writer: CutWriter,
    begun: Instant,
    parts: u32,
}

impl<'a> CutKeeper<'a> {
    /// For a job with these tables, workers and shards.
    pub fn new(state: &'a State, board: &'a Board, tables: &[TableSpec], workers: u32, shards: u32) -> Self {
        Self { state, board, tables: tables.to_vec(), workers, shards, open: BTreeMap::new() }
    }

    /// Takes parts as they come; calls `done` for each complete cut. An error abandons the cut at hand and ends the
    /// keeper; cuts that were complete stay.
    pub fn run(mut self, parts: &Receiver<CutMessage>, mut done: impl FnMut(CutDone)) -> Result<(), RunError> {
        for part in parts {
            if let Some(cut) = self.take(part)? {
                done(cut);
            }
        }
        Ok(())
    }

    fn take(&mut self, part: CutMessage) -> Result<Option<CutDone>, RunError> {
        let at = match &part {
            CutMessage::Shard { at, .. } | CutMessage::Worker { at, .. } => *at,
        };
        if !self.open.contains_key(&at) {
            let spec = CutSpec { clock: at, workers: self.workers, tables: self.tables.clone() };
            let cut = OpenCut { writer: self.state.begin_cut(spec)?, begun: Instant::now(), parts: 0 };
            self.open.insert(at, cut);
        }
        let Some(cut) = self.open.get_mut(&at) else { return Ok(None) };
        match part {
            CutMessage::Shard { tables, .. } => {
                for (id, snapshot) in (0..).map(TableId).zip(tables) {
                    write_rows(&cut.writer, id, snapshot)?;
                }
            }
            CutMessage::Worker { worker, record, .. } => cut.writer.worker(worker, &record)?,
        }
        cut.parts += 1;
        if cut.parts < self.workers + self.shards {
            return Ok(None);
        }
        let Some(cut) = self.open.remove(&at) else { return Ok(None) };
        // A worker hands in its side after posting its metrics, so the history below `at` is complete by now. A model
        // that diverged in it must not become the newest cut; what failed later takes nothing from this one.
        if !self.board.sound_below(at) {
            return Ok(None);
        }
        let info = cut.writer.commit(note(&self.board.history_below(at), &self.board.versions().before(at)))?;
        Ok(Some(CutDone { info, seconds: cut.begun.elapsed().as_secs_f64() }))
    }
}

fn write_rows(cut: &CutWriter, table: TableId, snapshot: TableSnapshot) -> Result<(), RunError> {
    if snapshot.range.is_empty() {
        return Ok(());
    }
    match snapshot.rows {
        RowDeltas::Dense(values) => cut.dense_rows(table, snapshot.range.start, values.as_ref())?,
        RowDeltas::Sparse { offsets, columns, values } => {
            cut.sparse_rows(table, snapshot.range.start, &SparseRows { offsets, columns, values })?;
        }
    }
    Ok(())
}

/// What a cut says of the run before it.
fn note(history: &[HistoryPoint], versions: &History) -> Value {
    let points: Vec<Value> = history
        .iter()
        .map(|p| {
            // As bits: JSON has no infinities, and a restored stop rule must see the very same numbers.
            let metrics: BTreeMap<&String, u64> = p.metrics.iter().map(|(k, v)| (k, v.to_bits())).collect();
            json!({"clock": p.clock, "seconds": p.seconds, "metrics": metrics})
        })
        .collect();
    json!({ "history": points, "versions": versions.to_json() })
}

/// The history out of a cut's note; what does not parse is left out, as only reports and patience are the poorer for it.
pub fn history(note: &Value) -> Vec<HistoryPoint> {
    let points = note.get("history").and_then(Value::as_array);
    points
        .into_iter()
        .flatten()
        .filter_map(|p| {
            let metrics = p.get("metrics")?.as_object()?;
            Some(HistoryPoint {
                clock: Clock::try_from(p.get("clock")?.as_u64()?).ok()?,
                seconds: p.get("seconds")?.as_f64()?,
                metrics: metrics.iter().filter_map(|(k, v)| Some((k.clone(), f64::from_bits(v.as_u64()?)))).collect(),
            })
        })
        .collect()
}

/// The versions that made a cut, out of its note; `None` when it says nothing that can be read.
pub fn versions(note: &Value) -> Option<History> {
    History::of_json(note.get("versions")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_on_multiples_of_the_interval() {
        let s = CutSchedule::every(Some(5));
        assert_eq!((s.after(0), s.after(4), s.after(5)), (Some(5), Some(5), Some(10)));
        assert!(s.is_due(10) && !s.is_due(11) && !s.is_due(0));
        assert_eq!(CutSchedule::every(None).after(3), None);
        assert_eq!(CutSchedule::every(Some(0)).after(3), None);
        assert_eq!(CutSchedule::every(Some(u32::MAX)).after(u32::MAX), None);
    }

    #[test]
    fn a_history_comes_back_from_a_note_bit_for_bit() {
        let point = HistoryPoint {
            clock: 7,
            seconds: 0.25,
            metrics: [("a".to_owned(), 0.1 + 0.2), ("b".to_owned(), f64::NEG_INFINITY)].into(),
        };
        assert_eq!(history(&note(std::slice::from_ref(&point), &History::default())), [point]);
        assert_eq!(history(&json!({"history": [{"clock": -1}, 3]})), []);
    }
}
