//! Reading a shard in the same process: its rows in place, without a message and without a cache.
//!
//! A read takes the shard's lock once for the whole call, sees there how much of this worker's own updates the shard has
//! applied, copies the rows, and adds the rest from the worker's log (C3). The gate is checked once a clock: a min clock
//! that was enough stays enough.

use crate::check;
use crate::log::WorkerLog;
use slackline_core::oplog::each_place;
use slackline_core::part::SealedPart;
use slackline_core::ports::{ShardRows, SparseRows, Tables};
use slackline_core::sparse::SparseRow;
use slackline_core::{
    Clock, Consistency, DType, Element, HostError, Layout, PartKey, ShardId, TableId, TableSpec, ValuesMut, ValuesRef,
    WorkerId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The shards of a job in this process, and the gate in front of them.
pub trait LocalShards: Send + Sync {
    /// Waits until the shard's min clock is at least `need`; answers the min clock.
    fn wait(&self, shard: ShardId, need: Clock) -> Result<Clock, HostError>;
    /// Calls `read` under the shard's read lock.
    fn read(&self, shard: ShardId, read: &mut dyn FnMut(&dyn ShardRows));
    /// Hands a part to the shard.
    fn send(&self, shard: ShardId, part: SealedPart);
    /// Monotonic nanoseconds, for the account of time.
    fn now(&self) -> u64;
}

/// What a worker read and how fresh it was.
#[derive(Clone, Debug, Default)]
pub struct ReadStats {
    /// Rows read by (reader's clock − min clock of what it saw): the staleness histogram.
    pub staleness: BTreeMap<u32, u64>,
    /// Rows and bytes read.
    pub rows_read: u64,
    /// Bytes of them.
    pub bytes_read: u64,
    /// Rows incremented, before coalescing.
    pub rows_incremented: u64,
    /// Rows of sealed parts: what is left after coalescing.
    pub rows_sealed: u64,
    /// Bytes of them, keys included.
    pub bytes_sealed: u64,
    /// Nanoseconds waiting at the gate.
    pub gate_ns: u64,
    /// Nanoseconds inside table calls, the gate excluded.
    pub table_ns: u64,
    /// Nanoseconds handing parts to shards (applying them, in one process).
    pub apply_ns: u64,
}

/// One worker's tables, read in place.
pub struct InPlace {
    worker: WorkerId,
    consistency: Consistency,
    log: WorkerLog,
    shards: Arc<dyn LocalShards>,
    /// Per shard: the min clock that was last seen, and the worker's clock for which the gate was found open.
    gates: Vec<Gate>,
    stats: ReadStats,
}

#[derive(Clone, Copy)]
struct Gate {
    open_for: Option<Clock>,
    min: Clock,
}

impl InPlace {
    /// For `worker` at `clock`.
    pub fn new(
        worker: WorkerId,
        clock: Clock,
        consistency: Consistency,
        tables: &[TableSpec],
        shards: u32,
        port: Arc<dyn LocalShards>,
    ) -> Self {
        let log = WorkerLog::new(worker, clock, tables, shards);
        let gates = vec![Gate { open_for: None, min: 0 }; log.shards() as usize];
        Self { worker, consistency, log, shards: port, gates, stats: ReadStats::default() }
    }

    /// Ends the clock: seals its updates and hands them to the shards. Never waits for other workers.
    pub fn tick(&mut self) -> Clock {
        self.send(true);
        self.log.clock()
    }

    /// Seals what the clock did so far and hands it to the shards ahead of the tick (C9).
    pub fn flush(&mut self) {
        self.send(false);
    }

    fn send(&mut self, last: bool) {
        let begun = self.shards.now();
        // Each worker begins with another shard, so that they do not queue behind one another.
        let mut parts = self.log.seal(last);
        let n = parts.len().max(1);
        parts.rotate_left(self.worker.index() % n);
        for (shard, part) in parts {
            for block in &part.tables {
                self.stats.rows_sealed += block.rows.len() as u64;
                self.stats.bytes_sealed += block.bytes();
            }
            self.shards.send(shard, part);
            // What the shard has applied by now is memory for the next clock, also for a worker that never reads.
            let (worker, mut applied) = (self.worker, PartKey::default());
            self.shards.read(shard, &mut |s| applied = s.applied(worker));
            self.log.applied(shard, applied);
        }
        self.stats.apply_ns += self.shards.now() - begun;
    }

    /// Waits until every shard may be read at the current clock.
    pub fn wait_at_gate(&mut self) -> Result<(), HostError> {
        (0..self.log.shards()).try_for_each(|s| self.pass(ShardId(s)).map(|_| ()))
    }

    /// Waits until every update stamped below `clock` is in, even if the model asks for less.
    pub fn wait_for(&mut self, clock: Clock) -> Result<(), HostError> {
        // The gate counts as passed afterwards, so it must be.
        let need = clock.max(self.consistency.needs(self.log.clock()));
        for s in 0..self.log.shards() {
            let min = self.shards.wait(ShardId(s), need)?;
            self.gates[s as usize] = Gate { open_for: Some(self.log.clock()), min };
        }
        Ok(())
    }

    /// Reads under another bound from here on; the gate of the clock is asked again.
    pub fn set_consistency(&mut self, consistency: Consistency) {
        if consistency != self.consistency {
            self.consistency = consistency;
            self.gates.iter_mut().for_each(|g| g.open_for = None);
        }
    }

    /// Forgets the updates of the clock that are not sealed, as if they had never been made.
    pub fn discard_open(&mut self) {
        self.log.discard_open();
    }

    /// Whether reads at the worker's clock saw every update stamped below `clock` and none of the others' later ones.
    pub fn saw_all_of(&self, clock: Clock) -> bool {
        self.consistency.ordered() && self.log.clock() == clock
    }

    /// The worker's clock.
    pub fn clock(&self) -> Clock {
        self.log.clock()
    }

    /// What was read so far.
    pub fn stats(&self) -> &ReadStats {
        &self.stats
    }

    /// Passes the gate of a shard (C2); answers its min clock as last seen.
    fn pass(&mut self, shard: ShardId) -> Result<Clock, HostError> {
        let clock = self.log.clock();
        let gate = self.gates[shard.index()];
        if gate.open_for == Some(clock) {
            return Ok(gate.min);
        }
        let begun = self.shards.now();
        let min = self.shards.wait(shard, self.consistency.needs(clock))?;
        self.stats.gate_ns += self.shards.now() - begun;
        self.gates[shard.index()] = Gate { open_for: Some(clock), min };
        Ok(min)
    }

    fn count(&mut self, min: Clock, rows: usize, bytes: usize) {
        let gap = self.log.clock().saturating_sub(min);
        *self.stats.staleness.entry(gap).or_default() += rows as u64;
        self.stats.rows_read += rows as u64;
        self.stats.bytes_read += bytes as u64;
    }

    /// Runs `call` and books its time, less what it waited at the gate.
    fn timed<R>(&mut self, call: impl FnOnce(&mut Self) -> R) -> R {
        let (begun, waited) = (self.shards.now(), self.stats.gate_ns);
        let result = call(self);
        let gate = self.stats.gate_ns - waited;
        self.stats.table_ns += (self.shards.now() - begun).saturating_sub(gate);
        result
    }

    fn get_checked(&mut self, table: TableId, rows: &[u64], mut out: ValuesMut<'_>) -> Result<(), HostError> {
        let spec = check::table(self.log.tables(), table)?;
        check::layout(spec, Layout::Dense)?;
        check::rows(spec, rows)?;
        check::dense_values(spec, rows.len(), out.dtype(), out.len())?;
        let row_bytes = spec.width as usize * spec.dtype.size();
        let (shards, worker) = (self.shards.clone(), self.worker);
        for shard in 0..self.log.shards() {
            self.pass(ShardId(shard))?;
        }
        let mut seen = Vec::with_capacity(1);
        self.log.each_shard(table, rows, |log, shard, places| {
            let (mut min, mut applied) = (0, PartKey::default());
            shards.read(shard, &mut |s| {
                (min, applied) = (s.min_clock(), s.applied(worker));
                s.read_dense(table, rows, places, out.reborrow());
            });
            log.applied(shard, applied);
            log.overlay(shard, table, applied, rows, places, out.reborrow());
            seen.push((min, places.map_or(rows.len(), <[u32]>::len)));
        });
        for (min, n) in seen {
            self.count(min, n, n * row_bytes);
        }
        Ok(())
    }

    fn get_sparse_typed<T: Element>(&mut self, table: TableId, rows: &[u64]) -> Result<SparseRows, HostError> {
        let (shards, worker) = (self.shards.clone(), self.worker);
        for shard in 0..self.log.shards() {
            self.pass(ShardId(shard))?;
        }
        let mut sums = vec![SparseRow::<T>::default(); rows.len()];
        let mut seen = Vec::with_capacity(1);
        self.log.each_shard(table, rows, |log, shard, places| {
            let (mut min, mut applied) = (0, PartKey::default());
            shards.read(shard, &mut |s| {
                (min, applied) = (s.min_clock(), s.applied(worker));
                each_place(rows, places, |place, row| {
                    let (columns, values) = s.read_sparse(table, row);
                    sums[place].add(columns, T::slice(values).unwrap_or(&[]));
                });
            });
            log.applied(shard, applied);
            let (mut n, mut bytes) = (0, 0);
            each_place(rows, places, |place, row| {
                log.overlay_sparse(shard, table, applied, row, &mut |columns, values| {
                    sums[place].add(columns, T::slice(values).unwrap_or(&[]));
                });
                n += 1;
                bytes += sums[place].columns().len() * (size_of::<u32>() + size_of::<T>());
            });
            seen.push((min, n, bytes));
        });
        for (min, n, bytes) in seen {
            self.count(min, n, bytes);
        }
        let (mut offsets, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::<T>::new());
        for sum in &sums {
            columns.extend_from_slice(sum.columns());
            values.extend_from_slice(sum.values());
            let end = u32::try_from(columns.len()).map_err(|_| HostError::Limit(slackline_core::Limit::Rows))?;
            offsets.push(end);
        }
        Ok(SparseRows { offsets, columns, values: T::wrap(values) })
    }
}

impl Tables for InPlace {
    fn open(&mut self, name: &str) -> Result<(TableId, TableSpec), HostError> {
        match self.log.tables().iter().position(|t| t.name == name) {
            Some(at) => Ok((TableId(at as u32), self.log.tables()[at].clone())),
            None => {
                let known: Vec<_> = self.log.tables().iter().map(|t| t.name.as_str()).collect();
                Err(HostError::NotFound(format!("table {name:?}; the plan declares {}", known.join(", "))))
            }
        }
    }

    fn get(&mut self, table: TableId, rows: &[u64], out: ValuesMut<'_>) -> Result<(), HostError> {
        self.timed(|s| s.get_checked(table, rows, out))
    }

    fn inc(&mut self, table: TableId, rows: &[u64], deltas: ValuesRef<'_>) -> Result<(), HostError> {
        self.timed(|s| {
            let spec = check::table(s.log.tables(), table)?;
            check::layout(spec, Layout::Dense)?;
            check::rows(spec, rows)?;
            check::dense_values(spec, rows.len(), deltas.dtype(), deltas.len())?;
            s.stats.rows_incremented += rows.len() as u64;
            s.log.inc(table, rows, deltas);
            Ok(())
        })
    }

    fn get_sparse(&mut self, table: TableId, rows: &[u64]) -> Result<SparseRows, HostError> {
        self.timed(|s| {
            let spec = check::table(s.log.tables(), table)?;
            check::layout(spec, Layout::Sparse)?;
            check::rows(spec, rows)?;
            match spec.dtype {
                DType::F64 => s.get_sparse_typed::<f64>(table, rows),
                DType::I32 => s.get_sparse_typed::<i32>(table, rows),
                DType::I64 => s.get_sparse_typed::<i64>(table, rows),
                _ => s.get_sparse_typed::<f32>(table, rows),
            }
        })
    }

    fn inc_sparse(
        &mut self,
        table: TableId,
        rows: &[u64],
        offsets: &[u32],
        columns: &[u32],
        values: ValuesRef<'_>,
    ) -> Result<(), HostError> {
        self.timed(|s| {
            let spec = check::table(s.log.tables(), table)?;
            check::layout(spec, Layout::Sparse)?;
            check::rows(spec, rows)?;
            check::sparse_values(spec, rows.len(), offsets, columns, values.dtype(), values.len())?;
            s.stats.rows_incremented += rows.len() as u64;
            s.log.inc_sparse(table, rows, offsets, columns, values);
            Ok(())
        })
    }

    fn prefetch(&mut self, table: TableId, rows: &[u64]) {
        let Ok(spec) = check::table(self.log.tables(), table) else { return };
        if check::rows(spec, rows).is_err() {
            return;
        }
        let shards = self.shards.clone();
        self.log.each_shard(table, rows, |_, shard, places| {
            let rows = crate::log::chosen(rows, places);
            shards.read(shard, &mut |s| s.prefetch(table, &rows));
        });
    }
}

impl ReadStats {
    /// Adds another account to this one.
    pub fn add(&mut self, other: &ReadStats) {
        other.staleness.iter().for_each(|(gap, n)| *self.staleness.entry(*gap).or_default() += n);
        self.rows_read += other.rows_read;
        self.bytes_read += other.bytes_read;
        self.rows_incremented += other.rows_incremented;
        self.rows_sealed += other.rows_sealed;
        self.bytes_sealed += other.bytes_sealed;
        self.gate_ns += other.gate_ns;
        self.table_ns += other.table_ns;
        self.apply_ns += other.apply_ns;
    }
}
