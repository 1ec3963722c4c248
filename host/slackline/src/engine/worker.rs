//! One worker's thread: it feeds batches to its instance, ends clocks, and hands in its side of cuts.

use crate::engine::board::{Board, Posted};
use crate::engine::cuts::{CutMessage, CutSchedule};
use crate::engine::error::RunError;
use crate::engine::shards::Shards;
use crate::engine::telemetry::{Sums, WorkerTelemetry};
use crate::job::ClockLength;
use crossbeam_channel::Sender;
use slackline_client::{InPlace, ReadStats};
use slackline_core::ports::{Program, Shared};
use slackline_core::{Clock, HostError, LocalState, PluginError, PluginErrorKind, RandomStream, WorkerId};
use slackline_data::{Cursor, Partition};
use slackline_storage::WorkerRecord;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// What a worker is made of.
pub struct Worker<'a> {
    /// Which one.
    pub id: WorkerId,
    /// Its instance.
    pub program: Box<dyn Program>,
    /// Its side of the tables.
    pub tables: Shared<InPlace>,
    /// Its account of words and numbers.
    pub telemetry: Shared<WorkerTelemetry>,
    /// Its stream.
    pub random: Shared<RandomStream>,
    /// Its partition-local state.
    pub local: LocalState,
    /// Its clock, as its instance sees it.
    pub clock: Arc<AtomicU32>,
    /// Its place in the training data.
    pub cursor: Cursor,
    /// Its share of every dataset, for evaluations.
    pub partitions: BTreeMap<String, Partition>,
    /// The digest of its plugin.
    pub digest: String,
    /// Whether the partition is shown once before the first step.
    pub prepare: bool,
    /// How long a clock is.
    pub length: ClockLength,
    /// Clocks between evaluations.
    pub evaluate_every: Option<u32>,
    /// When cuts are due.
    pub schedule: CutSchedule,
    /// Where cuts go, if there are any.
    pub cuts: Option<Sender<CutMessage>>,
    /// The job's shards, of whose rows the first worker hands in the last cut.
    pub shards: Arc<Shards>,
    /// Where clocks are posted.
    pub board: &'a Board,
    /// Set when the run is being torn down.
    pub cancelled: Arc<AtomicBool>,
}

/// What a worker leaves behind.
#[derive(Debug, Default)]
pub struct WorkerEnd {
    /// What it read.
    pub stats: ReadStats,
    /// In its instance, host calls and all.
    pub inside: Duration,
    /// From its first clock to its last, waits included.
    pub total: Duration,
    /// The final evaluation, if there was one.
    pub evaluation: Option<Sums>,
    /// Bytes of guest memory at the end.
    pub memory: u64,
}

impl Worker<'_> {
    /// Runs to the stopping clock. Answers what it leaves; errors are for the board.
    pub fn run(mut self, evaluate_at_end: impl Fn() -> bool) -> Result<WorkerEnd, RunError> {
        let (begun, start) = (Instant::now(), self.now());
        let mut end = WorkerEnd::default();
        if self.prepare {
            let train = self.partitions.get("train").cloned();
            for batch in train.iter().flat_map(Partition::in_order) {
                self.checkpoint()?;
                timed(&mut end.inside, || self.program.prepare(&batch)).map_err(RunError::of_plugin)?;
            }
        }
        let mut evaluated = None;
        while self.board.begin(self.id, self.now()) {
            let clock = self.now();
            self.steps(&mut end)?;
            // A worker that reads nothing must still not run away from the others: what it sends would pile up.
            lock(&self.tables).wait_at_gate().map_err(|e| host_failed(&e))?;
            timed(&mut end.inside, || self.program.end_clock(clock)).map_err(RunError::of_plugin)?;
            let steps = lock(&self.telemetry).take();
            let next = lock(&self.tables).tick();
            self.clock.store(next, Ordering::Relaxed);
            let due = self.evaluate_every.is_some_and(|n| n > 0 && next.is_multiple_of(n));
            let evaluation = if due { self.evaluate(&mut end)? } else { Sums::new() };
            evaluated = due.then(|| (next, evaluation.clone()));
            self.board.ended(self.id, clock, Posted { steps, evaluation });
            if self.schedule.is_due(next) {
                self.hand_in(next)?;
            }
        }
        let (stop, _) = self.board.ending();
        if self.now() < stop {
            return Err(cancelled());
        }
        if stop > start && !self.schedule.is_due(stop) {
            self.hand_in(stop)?;
            if self.id == WorkerId(0) {
                // Before the final evaluation: should that fail, the model is safe.
                lock(&self.tables).wait_for(stop).map_err(|e| host_failed(&e))?;
                self.shards.hand_in(stop);
            }
        }
        if evaluate_at_end() {
            // The final model: every worker's last clock is in.
            lock(&self.tables).wait_for(stop).map_err(|e| host_failed(&e))?;
            end.evaluation = Some(match evaluated {
                // Under a gate that showed exactly this model already, what it said holds.
                Some((at, sums)) if at == stop && lock(&self.tables).saw_all_of(stop) => sums,
                _ => self.evaluate(&mut end)?,
            });
        }
        end.total = begun.elapsed();
        end.memory = self.program.memory_bytes();
        end.stats = lock(&self.tables).stats().clone();
        Ok(end)
    }

    fn now(&self) -> Clock {
        self.clock.load(Ordering::Relaxed)
    }

    fn steps(&mut self, end: &mut WorkerEnd) -> Result<(), RunError> {
        let mut left = match self.length {
            ClockLength::Epoch => u32::MAX,
            ClockLength::Batches(n) => n,
        };
        // A worker that a hash gave no rows has clocks without steps.
        if self.partitions.get("train").is_none_or(|p| p.rows() == 0) {
            return Ok(());
        }
        while left > 0 {
            self.checkpoint()?;
            match self.cursor.next() {
                Some(batch) => {
                    timed(&mut end.inside, || self.program.step(&batch)).map_err(RunError::of_plugin)?;
                    left -= 1;
                }
                None if self.length == ClockLength::Epoch => return Ok(()),
                None => {}
            }
        }
        Ok(())
    }

    /// Shows every dataset to `evaluate` under the job's consistency.
    fn evaluate(&mut self, end: &mut WorkerEnd) -> Result<Sums, RunError> {
        lock(&self.tables).wait_at_gate().map_err(|e| host_failed(&e))?;
        for partition in self.partitions.values() {
            for batch in partition.in_order() {
                self.checkpoint()?;
                timed(&mut end.inside, || self.program.evaluate(&batch)).map_err(RunError::of_plugin)?;
            }
        }
        Ok(lock(&self.telemetry).take())
    }

    fn hand_in(&mut self, at: Clock) -> Result<(), RunError> {
        let Some(cuts) = &self.cuts else { return Ok(()) };
        let record = WorkerRecord {
            digest: self.digest.clone(),
            saved: self.program.save().map_err(RunError::of_plugin)?,
            local: self.local.snapshot(),
            random: lock(&self.random).position(),
            cursor: slackline_storage::Cursor { epoch: self.cursor.epoch(), position: self.cursor.position() },
            metrics: serde_json::Value::Null,
        };
        // When the keeper has ended, it has reported why.
        let _ = cuts.send(CutMessage::Worker { at, worker: self.id, record: Box::new(record) });
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), RunError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(cancelled()) } else { Ok(()) }
    }
}

fn timed<R>(total: &mut Duration, call: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let result = call();
    *total += begun.elapsed();
    result
}

/// These locks are uncontended: the worker's thread and its instance take turns. A poisoned one means that this very
/// thread panicked before, so nobody is left to be misled.
pub fn lock<T: ?Sized>(shared: &Shared<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cancelled() -> RunError {
    RunError::Plugin(PluginError::new(PluginErrorKind::Cancelled, "the run was cancelled"))
}

fn host_failed(error: &HostError) -> RunError {
    match error {
        HostError::Cancelled => cancelled(),
        e => RunError::Internal(format!("a worker could not read its tables: {e}")),
    }
}
