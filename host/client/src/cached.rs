//! Reading shards in other processes: a bounded cache of rows, filled by cold misses and, where the model pushes, kept
//! fresh by what shards send (C5).
//!
//! A state machine: reads that cannot be answered say so and leave requests in `out`; messages go in through
//! [`Cached::receive`]. Links keep order (see `slackline_core::link`).

use crate::check;
use crate::log::WorkerLog;
use slackline_core::messages::{RowsAt, ToShard, ToWorker};
use slackline_core::part::RowDeltas;
use slackline_core::ports::SparseRows;
use slackline_core::sparse::SparseRow;
use slackline_core::{
    Clock, Consistency, DType, Element, HostError, Layout, Limit, PartKey, ShardId, TableId, TableSpec, Values,
    ValuesRef, WorkerId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bounds and rules of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// Rows kept at most, beyond those that the read at hand needs.
    pub rows: usize,
    /// The job's consistency.
    pub consistency: Consistency,
}

/// What came of a read of dense rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// Rows × width values, and the widest gap between the reader's clock and what it saw.
    Ready(Values, Clock),
    /// Not yet: rows are missing or not fresh enough. Ask again after a message.
    Blocked,
}

/// What came of a read of sparse rows.
#[derive(Clone, Debug, PartialEq)]
pub enum SparseRead {
    /// The rows in the order asked, and the widest gap between the reader's clock and what it saw.
    Ready(SparseRows, Clock),
    /// Not yet.
    Blocked,
}

/// One worker's tables behind a cache.
pub struct Cached {
    config: CacheConfig,
    log: WorkerLog,
    rows: HashMap<(TableId, u64), Resident>,
    requested: BTreeSet<(TableId, u64)>,
    /// Per shard: the min clock of its newest push.
    pushed: Vec<Clock>,
    /// Resident rows by last use.
    uses: BTreeMap<u64, (TableId, u64)>,
    next_use: u64,
}

struct Resident {
    columns: Vec<u32>,
    values: Values,
    /// The shard's min clock when the row left it.
    clock: Clock,
    /// Everything of this worker before this place is in the values.
    included: PartKey,
    used: u64,
}

impl Cached {
    /// For `worker` at `clock`.
    pub fn new(worker: WorkerId, clock: Clock, tables: &[TableSpec], shards: u32, config: CacheConfig) -> Self {
        let log = WorkerLog::new(worker, clock, tables, shards);
        Self {
            pushed: vec![0; log.shards() as usize],
            log,
            config,
            rows: HashMap::new(),
            requested: BTreeSet::new(),
            uses: BTreeMap::new(),
            next_use: 0,
        }
    }

    /// The worker's clock.
    pub fn clock(&self) -> Clock {
        self.log.clock()
    }

    /// Rows in the cache.
    pub fn resident(&self) -> usize {
        self.rows.len()
    }

    /// Adds to dense rows.
    pub fn inc(&mut self, table: TableId, rows: &[u64], deltas: ValuesRef<'_>) -> Result<(), HostError> {
        let spec = check::table(self.log.tables(), table)?;
        check::layout(spec, Layout::Dense)?;
        check::rows(spec, rows)?;
        check::dense_values(spec, rows.len(), deltas.dtype(), deltas.len())?;
        self.log.inc(table, rows, deltas);
        Ok(())
    }

    /// Adds to sparse rows.
    pub fn inc_sparse(
        &mut self,
        table: TableId,
        rows: &[u64],
        offsets: &[u32],
        columns: &[u32],
        values: ValuesRef<'_>,
    ) -> Result<(), HostError> {
        let spec = check::table(self.log.tables(), table)?;
        check::layout(spec, Layout::Sparse)?;
        check::rows(spec, rows)?;
        check::sparse_values(spec, rows.len(), offsets, columns, values.dtype(), values.len())?;
        self.log.inc_sparse(table, rows, offsets, columns, values);
        Ok(())
    }

    /// Sends what is open; with `last`, ends the clock (the tick).
    pub fn seal(&mut self, last: bool) -> Vec<(ShardId, ToShard)> {
        self.log.seal(last).into_iter().map(|(shard, part)| (shard, ToShard::Part(part))).collect()
    }

    /// Reads dense rows under the job's consistency.
    pub fn read(&mut self, table: TableId, rows: &[u64], out: &mut Vec<(ShardId, ToShard)>) -> Result<Read, HostError> {
        let spec = check::table(self.log.tables(), table)?;
        check::layout(spec, Layout::Dense)?;
        check::rows(spec, rows)?;
        let (width, dtype) = (spec.width as usize, spec.dtype);
        let Some(gap) = self.fresh(table, rows, out) else { return Ok(Read::Blocked) };
        let mut values = Values::zeros(dtype, rows.len() * width);
        for (place, row) in rows.iter().enumerate() {
            let Some(resident) = self.rows.get(&(table, *row)) else { return Ok(Read::Blocked) };
            if let Some(mut to) = values.as_mut().window(place * width, width) {
                to.reborrow().copy_from(resident.values.as_ref());
                let shard = self.log.owner(table, *row);
                self.log.overlay(shard, table, resident.included, &[*row], None, to);
            }
        }
        self.touch(table, rows, out);
        Ok(Read::Ready(values, gap))
    }

    /// Reads sparse rows under the job's consistency: all at once, or a read of more rows than the cache keeps would push
    /// out the first ones while it waits for the last.
    pub fn read_sparse(
        &mut self,
        table: TableId,
        rows: &[u64],
        out: &mut Vec<(ShardId, ToShard)>,
    ) -> Result<SparseRead, HostError> {
        let spec = check::table(self.log.tables(), table)?;
        check::layout(spec, Layout::Sparse)?;
        check::rows(spec, rows)?;
        let dtype = spec.dtype;
        let Some(gap) = self.fresh(table, rows, out) else { return Ok(SparseRead::Blocked) };
        let read = match dtype {
            DType::F64 => self.sum_sparse::<f64>(table, rows)?,
            DType::I32 => self.sum_sparse::<i32>(table, rows)?,
            DType::I64 => self.sum_sparse::<i64>(table, rows)?,
            _ => self.sum_sparse::<f32>(table, rows)?,
        };
        self.touch(table, rows, out);
        Ok(SparseRead::Ready(read, gap))
    }

    /// Takes a message from a shard.
    pub fn receive(&mut self, from: ShardId, message: ToWorker) {
        if from.0 >= self.log.shards() {
            return;
        }
        match message {
            ToWorker::Ack { applied } => {
                self.fold(from, applied);
                self.log.applied(from, applied);
            }
            ToWorker::Rows(at) => self.store(at, true),
            ToWorker::Push { min_clock, changed } => {
                changed.into_iter().for_each(|at| self.store(at, false));
                if let Some(pushed) = self.pushed.get_mut(from.index()) {
                    *pushed = min_clock.max(*pushed);
                }
            }
        }
    }

    /// Whether all rows may be read now; else asks for what is missing. Answers the widest gap.
    fn fresh(&mut self, table: TableId, rows: &[u64], out: &mut Vec<(ShardId, ToShard)>) -> Option<Clock> {
        let (clock, need) = (self.log.clock(), self.config.consistency.needs(self.log.clock()));
        let pushes = self.config.consistency.pushes();
        let mut missing: BTreeMap<ShardId, BTreeSet<u64>> = BTreeMap::new();
        let (mut ready, mut oldest) = (true, clock);
        for &row in rows {
            let shard = self.log.owner(table, row);
            let resident = self.rows.get(&(table, row));
            let sees = resident.map(|r| if pushes { r.clock.max(self.pushed[shard.index()]) } else { r.clock });
            match sees {
                Some(sees) if sees >= need => oldest = oldest.min(sees),
                // A pushed row that is not fresh yet: the push that makes it so is on its way.
                Some(_) if pushes => ready = false,
                _ => {
                    ready = false;
                    if self.requested.insert((table, row)) {
                        missing.entry(shard).or_default().insert(row);
                    }
                }
            }
        }
        for (shard, rows) in missing {
            let rows = rows.into_iter().collect();
            out.push((shard, ToShard::Read { table, rows, need, subscribe: pushes }));
        }
        ready.then(|| clock - oldest)
    }

    /// Marks rows as used, then evicts the longest unused beyond the bound.
    fn touch(&mut self, table: TableId, rows: &[u64], out: &mut Vec<(ShardId, ToShard)>) {
        for &row in rows {
            if let Some(resident) = self.rows.get_mut(&(table, row)) {
                self.uses.remove(&resident.used);
                resident.used = self.next_use;
                self.uses.insert(self.next_use, (table, row));
                self.next_use += 1;
            }
        }
        while self.rows.len() > self.config.rows.max(rows.len()) {
            let Some((_, (table, row))) = self.uses.pop_first() else { return };
            self.rows.remove(&(table, row));
            if self.config.consistency.pushes() {
                out.push((self.log.owner(table, row), ToShard::Unsubscribe { table, rows: vec![row] }));
            }
        }
    }

    /// Keeps rows that were asked for, or pushed while resident. A push of a row that was evicted meanwhile is dropped.
    fn store(&mut self, at: RowsAt, asked: bool) {
        let Ok(spec) = check::table(self.log.tables(), at.table) else { return };
        let (dtype, width) = (spec.dtype, spec.width as usize);
        for (i, &row) in at.rows.iter().enumerate() {
            let key = (at.table, row);
            let wanted = if asked { self.requested.remove(&key) } else { self.rows.contains_key(&key) };
            let Some((columns, values)) = row_of(&at.values, i, width).filter(|(_, v)| v.dtype() == dtype) else {
                continue;
            };
            if !wanted {
                continue;
            }
            let used = self.rows.get(&key).map_or(self.next_use, |r| r.used);
            if used == self.next_use {
                self.next_use += 1;
                self.uses.insert(used, key);
            }
            let resident = Resident { columns, values, clock: at.min_clock, included: at.included, used };
            self.rows.insert(key, resident);
        }
    }

    /// Parts before `applied` are about to leave the log: resident rows that do not include them take them in, so that
    /// reads go on seeing them (C3) until the shard's own row comes. A part that left the log is never laid over again.
    fn fold(&mut self, shard: ShardId, applied: PartKey) {
        for (key, logs) in self.log.in_flight(shard).filter(|(key, _)| *key < applied) {
            for (table, oplog) in logs {
                for row in oplog.block().map_or(&[][..], |b| &b.rows) {
                    let Some(resident) = self.rows.get_mut(&(*table, *row)).filter(|r| r.included <= key) else {
                        continue;
                    };
                    oplog.overlay_dense(&[*row], None, resident.values.as_mut());
                    oplog.overlay_sparse(*row, &mut |columns, values| resident.add_sparse(columns, values));
                }
            }
        }
    }

    fn sum_sparse<T: Element>(&self, table: TableId, rows: &[u64]) -> Result<SparseRows, HostError> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::<T>::new());
        for &row in rows {
            let mut sum = SparseRow::<T>::default();
            if let Some(resident) = self.rows.get(&(table, row)) {
                sum.add(&resident.columns, T::slice(resident.values.as_ref()).unwrap_or(&[]));
                let shard = self.log.owner(table, row);
                self.log.overlay_sparse(shard, table, resident.included, row, &mut |columns, values| {
                    sum.add(columns, T::slice(values).unwrap_or(&[]));
                });
            }
            columns.extend_from_slice(sum.columns());
            values.extend_from_slice(sum.values());
            offsets.push(u32::try_from(columns.len()).map_err(|_| HostError::Limit(Limit::Rows))?);
        }
        Ok(SparseRows { offsets, columns, values: T::wrap(values) })
    }
}

impl Resident {
    fn add_sparse(&mut self, columns: &[u32], values: ValuesRef<'_>) {
        match values.dtype() {
            DType::F64 => self.add_typed::<f64>(columns, values),
            DType::I32 => self.add_typed::<i32>(columns, values),
            DType::I64 => self.add_typed::<i64>(columns, values),
            _ => self.add_typed::<f32>(columns, values),
        }
    }

    fn add_typed<T: Element>(&mut self, columns: &[u32], values: ValuesRef<'_>) {
        let (Some(old), Some(new)) = (T::slice(self.values.as_ref()), T::slice(values)) else { return };
        let mut sum = SparseRow::<T>::default();
        sum.add(&self.columns, old);
        sum.add(columns, new);
        (self.columns, self.values) = (sum.columns().to_vec(), T::wrap(sum.values().to_vec()));
    }
}

/// Row `i` out of a message, if the message is sound.
fn row_of(rows: &RowDeltas, i: usize, width: usize) -> Option<(Vec<u32>, Values)> {
    match rows {
        RowDeltas::Dense(values) => {
            Some((Vec::new(), values.as_ref().window(i.checked_mul(width)?, width)?.to_values()))
        }
        RowDeltas::Sparse { offsets, columns, values } => {
            let (from, to) = (*offsets.get(i)? as usize, *offsets.get(i + 1)? as usize);
            let columns = columns.get(from..to)?.to_vec();
            Some((columns, values.as_ref().window(from, to - from)?.to_values()))
        }
    }
}
