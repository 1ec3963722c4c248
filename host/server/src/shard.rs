//! The shard: who has sent what, what may be applied now, and what follows from it.

use crate::rows::{TableRows, TableSnapshot, initial_rows, restored_rows};
use crate::subscribers::Subscribers;
use slackline_core::messages::{RowsAt, ToShard, ToWorker};
use slackline_core::part::{PartKey, SealedPart, TableDeltas};
use slackline_core::ports::ShardRows;
use slackline_core::{Clock, Consistency, ShardId, ShardMap, TableId, TableSpec, ValuesMut, ValuesRef, WorkerId};
use std::collections::BTreeMap;

/// What a shard is made from.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// Which shard of the job.
    pub id: ShardId,
    /// Of how many.
    pub shards: u32,
    /// The job's tables.
    pub tables: Vec<TableSpec>,
    /// The job's workers.
    pub workers: u32,
    /// The job's consistency.
    pub consistency: Consistency,
    /// The job's seed, for initial rows.
    pub seed: u64,
    /// The clock that everyone starts at: 0, or that of the cut that is restored.
    pub start: Clock,
}

/// What became of a part that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// New; it is applied, or held until its turn comes.
    Taken,
    /// Had it before (C10).
    Repeated,
    /// Not something that this worker can send here: a forged or damaged message. Nothing was changed, and the worker's
    /// clock will not go on: the driver ends the job.
    Refused,
}

/// What a shard wants done, in order.
#[derive(Debug)]
pub enum Output {
    /// Send to a worker.
    Send(WorkerId, ToWorker),
    /// The min clock is now this.
    MinClock(Clock),
    /// The rows hold exactly the updates stamped below the clock: take the cut, then call [`Shard::release_cut`].
    CutDue(Clock),
}

/// A shard of a job's tables.
pub struct Shard {
    config: ShardConfig,
    tables: Vec<Box<dyn TableRows>>,
    /// Per worker: everything before this place is applied.
    applied: Vec<PartKey>,
    /// Parts that arrived and wait for their turn. Bounded by the gate: no worker runs more than staleness + 1 clocks
    /// ahead of the min clock (async jobs never hold parts but for a cut).
    held: BTreeMap<(PartKey, WorkerId), SealedPart>,
    min_clock: Clock,
    /// Parts stamped at or above this wait until the cut is taken (C11).
    cut_at: Option<Clock>,
    subscribers: Subscribers,
    waiting: Vec<WaitingRead>,
    parts_applied: u64,
    rows_applied: u64,
}

struct WaitingRead {
    worker: WorkerId,
    table: TableId,
    rows: Vec<u64>,
    need: Clock,
    subscribe: bool,
}

impl Shard {
    /// A shard with initial rows.
    pub fn new(config: ShardConfig) -> Self {
        let tables = config
            .tables
            .iter()
            .map(|t| initial_rows(t, config.seed, ShardMap::new(t, config.shards).range(config.id)))
            .collect();
        Self::with_rows(config, tables)
    }

    /// A shard with the rows of a cut; `None` when they do not fit the tables.
    pub fn restore(config: ShardConfig, snapshots: Vec<TableSnapshot>) -> Option<Self> {
        if snapshots.len() != config.tables.len() {
            return None;
        }
        let tables = config
            .tables
            .iter()
            .zip(snapshots)
            .map(|(t, s)| {
                (s.range == ShardMap::new(t, config.shards).range(config.id)).then(|| restored_rows(t, s)).flatten()
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self::with_rows(config, tables))
    }

    fn with_rows(config: ShardConfig, tables: Vec<Box<dyn TableRows>>) -> Self {
        let workers = config.workers as usize;
        Self {
            applied: vec![PartKey::start_of(config.start); workers],
            min_clock: config.start,
            held: BTreeMap::new(),
            cut_at: None,
            subscribers: Subscribers::new(workers),
            waiting: Vec::new(),
            parts_applied: 0,
            rows_applied: 0,
            config,
            tables,
        }
    }

    /// Asks for a cut at clock `at`: from now on parts stamped ≥ `at` wait, and [`Output::CutDue`] comes when everything
    /// below is applied. Another cut that was asked for and is not due yet gives way. `false`, and nothing is changed,
    /// when a part stamped ≥ `at` has been applied already or a cut is due and not released. Holding never closes a gate:
    /// a worker at `at` + k with k ≤ s needs updates stamped ≤ `at` − 1 only.
    pub fn request_cut(&mut self, at: Clock, out: &mut Vec<Output>) -> bool {
        if self.cut_is_due() || self.applied.iter().any(|a| *a > PartKey::start_of(at)) {
            return false;
        }
        self.set_cut(Some(at), out);
        true
    }

    /// The cut is taken: held parts go on, up to the next cut if there is one. Naming it here, before anything held is
    /// applied, is what keeps it exact when cuts are closer than the staleness bound. A `next` that is not above the min
    /// clock has passed and counts as none.
    pub fn release_cut(&mut self, next: Option<Clock>, out: &mut Vec<Output>) {
        self.cut_at = None;
        self.set_cut(next.filter(|at| *at > self.min_clock), out);
    }

    fn set_cut(&mut self, at: Option<Clock>, out: &mut Vec<Output>) {
        self.cut_at = at;
        self.announce_cut(out);
        // What a cut that gave way held back goes on.
        self.advance(out);
    }

    /// Takes a message.
    pub fn receive(&mut self, from: WorkerId, message: ToShard, out: &mut Vec<Output>) -> Received {
        match message {
            ToShard::Part(part) if part.worker == from => self.receive_part(part, out),
            ToShard::Part(_) => Received::Refused,
            ToShard::Read { table, rows, need, subscribe } => {
                if !self.owns(from, table, &rows) {
                    return Received::Refused;
                }
                self.waiting.push(WaitingRead { worker: from, table, rows, need, subscribe });
                self.answer_reads(out);
                Received::Taken
            }
            ToShard::Unsubscribe { table, rows } => {
                if !self.owns(from, table, &rows) {
                    return Received::Refused;
                }
                self.subscribers.unsubscribe(from, table, &rows);
                Received::Taken
            }
        }
    }

    /// Takes a sealed part: C10 here, C4 and C13 in the order in which parts are applied.
    pub fn receive_part(&mut self, part: SealedPart, out: &mut Vec<Output>) -> Received {
        let Some(&applied) = self.applied.get(part.worker.index()) else { return Received::Refused };
        if part.key < applied || self.held.contains_key(&(part.key, part.worker)) {
            // The worker may ask again because the acknowledgement got lost.
            out.push(Output::Send(part.worker, ToWorker::Ack { applied }));
            return Received::Repeated;
        }
        let fits = |b: &TableDeltas| self.tables.get(b.table.index()).is_some_and(|t| t.fits(b));
        if !part.tables.iter().all(|b| fits(b)) {
            return Received::Refused;
        }
        self.held.insert((part.key, part.worker), part);
        self.advance(out);
        Received::Taken
    }

    /// The min clock (C1).
    pub fn min_clock(&self) -> Clock {
        self.min_clock
    }

    /// What the shard was made from.
    pub fn config(&self) -> &ShardConfig {
        &self.config
    }

    /// Copies of all tables' rows.
    pub fn snapshot(&self) -> Vec<TableSnapshot> {
        self.tables.iter().map(|t| t.snapshot()).collect()
    }

    /// Bytes that the rows take.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|t| t.bytes()).sum()
    }

    /// Parts and rows applied since the start.
    pub fn applied_counts(&self) -> (u64, u64) {
        (self.parts_applied, self.rows_applied)
    }

    fn owns(&self, worker: WorkerId, table: TableId, rows: &[u64]) -> bool {
        worker.index() < self.applied.len()
            && self.tables.get(table.index()).is_some_and(|t| rows.iter().all(|r| t.range().contains(r)))
    }

    fn advance(&mut self, out: &mut Vec<Output>) {
        loop {
            let progressed =
                if self.config.consistency.ordered() { self.apply_clock(out) } else { self.apply_next(out) };
            let min = self.applied.iter().map(|a| a.clock).min().unwrap_or(self.min_clock);
            if min > self.min_clock {
                self.min_clock = min;
                out.push(Output::MinClock(min));
                self.push_changes(out);
                self.answer_reads(out);
                self.announce_cut(out);
            }
            if !progressed {
                return;
            }
        }
    }

    /// BSP: once every worker's clock is complete, all of its parts in worker order (C13).
    fn apply_clock(&mut self, out: &mut Vec<Output>) -> bool {
        let clock = self.min_clock;
        if self.cut_at.is_some_and(|at| clock >= at)
            || self.applied.is_empty()
            || !(0..self.config.workers).all(|w| self.complete(WorkerId(w)))
        {
            return false;
        }
        for w in 0..self.config.workers {
            while self.applied[w as usize].clock == clock {
                self.apply_one(WorkerId(w), out);
            }
        }
        true
    }

    /// Whether the rest of a worker's current clock is here.
    fn complete(&self, worker: WorkerId) -> bool {
        let mut key = self.applied[worker.index()];
        while let Some(part) = self.held.get(&(key, worker)) {
            if part.last {
                return true;
            }
            key = key.after(false);
        }
        false
    }

    /// SSP and async: whatever is next of any worker (C4).
    fn apply_next(&mut self, out: &mut Vec<Output>) -> bool {
        for w in 0..self.config.workers {
            let key = self.applied[w as usize];
            let may = self.cut_at.is_none_or(|at| key.clock < at);
            if may && self.held.contains_key(&(key, WorkerId(w))) {
                self.apply_one(WorkerId(w), out);
                return true;
            }
        }
        false
    }

    fn apply_one(&mut self, worker: WorkerId, out: &mut Vec<Output>) {
        let key = self.applied[worker.index()];
        let Some(part) = self.held.remove(&(key, worker)) else { return };
        for block in &part.tables {
            if let Some(table) = self.tables.get_mut(block.table.index()) {
                table.apply(block);
                self.rows_applied += block.rows.len() as u64;
                self.subscribers.note(block);
            }
        }
        self.parts_applied += 1;
        self.applied[worker.index()] = key.after(part.last);
        out.push(Output::Send(worker, ToWorker::Ack { applied: self.applied[worker.index()] }));
    }

    fn announce_cut(&mut self, out: &mut Vec<Output>) {
        if self.cut_is_due() {
            out.push(Output::CutDue(self.min_clock));
        }
    }

    /// Parts stamped at or above the cut wait, so that a min clock there means: everything below, and nothing else.
    fn cut_is_due(&self) -> bool {
        self.cut_at == Some(self.min_clock)
    }

    fn push_changes(&mut self, out: &mut Vec<Output>) {
        if !self.config.consistency.pushes() {
            return;
        }
        for (w, tables) in self.subscribers.take().into_iter().enumerate() {
            let worker = WorkerId(w as u32);
            let changed = tables.into_iter().map(|(table, rows)| self.rows_at(worker, table, rows)).collect();
            out.push(Output::Send(worker, ToWorker::Push { min_clock: self.min_clock, changed }));
        }
    }

    fn answer_reads(&mut self, out: &mut Vec<Output>) {
        let min = self.min_clock;
        for read in self.waiting.extract_if(.., |r| r.need <= min).collect::<Vec<_>>() {
            if read.subscribe {
                self.subscribers.subscribe(read.worker, read.table, &read.rows);
            }
            out.push(Output::Send(read.worker, ToWorker::Rows(self.rows_at(read.worker, read.table, read.rows))));
        }
    }

    fn rows_at(&self, worker: WorkerId, table: TableId, rows: Vec<u64>) -> RowsAt {
        let values = self.tables[table.index()].collect(&rows);
        RowsAt { table, rows, values, min_clock: self.min_clock, included: self.applied[worker.index()] }
    }
}

impl ShardRows for Shard {
    fn min_clock(&self) -> Clock {
        self.min_clock
    }

    fn applied(&self, worker: WorkerId) -> PartKey {
        self.applied[worker.index()]
    }

    fn read_dense(&self, table: TableId, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>) {
        self.tables[table.index()].read_dense(rows, places, out);
    }

    fn read_sparse(&self, table: TableId, row: u64) -> (&[u32], ValuesRef<'_>) {
        self.tables[table.index()].read_sparse(row)
    }

    fn prefetch(&self, table: TableId, rows: &[u64]) {
        self.tables[table.index()].prefetch(rows);
    }
}
