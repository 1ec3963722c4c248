//! One worker's thread: it feeds batches to its instance, ends clocks, and hands in its side of cuts.

use crate::engine::board::{Board, Posted};
use crate::engine::cuts::{CutMessage, CutSchedule};
use crate::engine::error::RunError;
use crate::engine::rehearsal::HandedOver;
use crate::engine::shards::Shards;
use crate::engine::telemetry::{Sums, WorkerTelemetry};
use crate::engine::turns::Turn;
use crate::engine::versions::Version;
use crate::job::ClockLength;
use crossbeam_channel::Sender;
use slackline_client::{InPlace, ReadStats};
use slackline_core::ports::{Program, Shared, WorkerHost};
use slackline_core::{Clock, HostError, LocalState, PluginError, PluginErrorKind, RandomStream, WorkerId};
use slackline_data::{Cursor, Partition};
use slackline_storage::WorkerRecord;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a worker is made of.
pub struct Worker<'a> {
    /// Which one.
    pub id: WorkerId,
    /// The version that it runs.
    pub version: Arc<Version>,
    /// Its instance.
    pub program: Box<dyn Program>,
    /// What an instance is given, so that another can be made.
    pub host: WorkerHost,
    /// The seed of the job, for its stream.
    pub seed: u64,
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
    /// What the instance saved last, and at the beginning of which clock: a cut and a swap there take the same.
    pub saved: Option<(Clock, Vec<u8>)>,
    /// An instance of another version that waits for the verdict.
    pub next: Option<Prepared>,
}

/// An instance of another version, with state of its own: it is all of the worker's or nothing.
pub struct Prepared {
    version: Arc<Version>,
    program: Box<dyn Program>,
    random: Shared<RandomStream>,
    local: LocalState,
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
        while self.may_begin()? {
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

    /// Takes its turns until it may begin its clock, or is to stop.
    fn may_begin(&mut self) -> Result<bool, RunError> {
        loop {
            match self.board.turn(self.id, self.now()) {
                Turn::Begin => return Ok(true),
                Turn::Stop => {
                    if self.next.is_some() {
                        self.keep();
                    }
                    return Ok(false);
                }
                Turn::HandOver => {
                    let copy = self.copy()?;
                    self.board.handed_over(self.id, copy);
                }
                Turn::Prepare(version) => {
                    let done = self.prepare(version)?;
                    self.board.prepared(self.id, done);
                }
                Turn::Adopt => self.adopt(),
                Turn::Keep => self.keep(),
                // The board waits by itself.
                Turn::Wait => {}
            }
        }
    }

    /// What its instance is remade from.
    fn copy(&mut self) -> Result<HandedOver, RunError> {
        let saved = self.save()?;
        Ok(HandedOver {
            clock: self.now(),
            digest: self.version.record.digest.clone(),
            saved,
            local: self.local.snapshot(),
            random: lock(&self.random).position(),
            rows: self.host.run.partition_rows.clone(),
        })
    }

    /// What the instance saves at this clock's beginning, once.
    fn save(&mut self) -> Result<Vec<u8>, RunError> {
        let now = self.now();
        if let Some((at, saved)) = &self.saved
            && *at == now
        {
            return Ok(saved.clone());
        }
        let saved = self.program.save().map_err(RunError::of_plugin)?;
        self.saved = Some((now, saved.clone()));
        Ok(saved)
    }

    /// Makes an instance of `version` over the same tables, with copies of all else, so that whatever it does before the
    /// verdict can be taken back.
    fn prepare(&mut self, version: Arc<Version>) -> Result<Result<(), String>, RunError> {
        let saved = self.save()?;
        let local = LocalState::restore(self.local.snapshot());
        let mut random = RandomStream::new(self.seed, u64::from(self.id.0) + 1);
        random.seek(lock(&self.random).position());
        let random = Arc::new(Mutex::new(random));
        let host = WorkerHost { local: local.clone(), random: random.clone(), ..self.host.clone() };
        lock(&self.tables).set_consistency(version.consistency);
        lock(&self.telemetry).expect(version.plugin.manifest().metrics.clone().into());
        let (writer, params) = (&self.version.record.digest, &version.record.params);
        match version.plugin.restore(host, writer, &saved, params) {
            Ok(program) => {
                self.next = Some(Prepared { version, program, random, local });
                Ok(Ok(()))
            }
            Err(e) => {
                self.keep();
                Ok(Err(e.message))
            }
        }
    }

    /// Goes on with what was prepared.
    fn adopt(&mut self) {
        let Some(Prepared { version, program, random, local }) = self.next.take() else { return };
        (self.host.random, self.host.local) = (random.clone(), local.clone());
        (self.version, self.program, self.random, self.local) = (version, program, random, local);
        self.saved = None;
    }

    /// Goes on with what it has: nothing of what was prepared stays.
    fn keep(&mut self) {
        self.next = None;
        let mut tables = lock(&self.tables);
        tables.discard_open();
        tables.set_consistency(self.version.consistency);
        let mut telemetry = lock(&self.telemetry);
        telemetry.expect(self.version.plugin.manifest().metrics.clone().into());
        drop(telemetry.take());
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
        if self.cuts.is_none() {
            return Ok(());
        }
        let record = WorkerRecord {
            digest: self.version.record.digest.clone(),
            saved: self.save()?,
            local: self.local.snapshot(),
            random: lock(&self.random).position(),
            cursor: slackline_storage::Cursor { epoch: self.cursor.epoch(), position: self.cursor.position() },
            metrics: serde_json::Value::Null,
        };
        if let Some(cuts) = &self.cuts {
            // When the keeper has ended, it has reported why.
            let _ = cuts.send(CutMessage::Worker { at, worker: self.id, record: Box::new(record) });
        }
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
