//! Judges a run by the clauses of the consistency contract, from what readers saw and what shards sent.
//!
//! It knows the plan's updates from the [`Ledger`] and asks the engine for nothing but the values at hand.

use crate::ledger::{Ledger, Row, typed};
use crate::plan::{DENSE, FLOAT, Plan, SPARSE};
use slackline_core::messages::RowsAt;
use slackline_core::part::RowDeltas;
use slackline_core::ports::ShardRows;
use slackline_core::{Clock, Element, Model, PartKey, ShardId, ShardMap, TableId, Values, WorkerId};
use slackline_server::{Shard, TableSnapshot};
use std::collections::BTreeMap;
use std::ops::Range;

/// A clause of the contract; `Liveness` stands for "every schedule ends".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Clause {
    C1,
    C2,
    C3,
    C4,
    C5,
    C7,
    C10,
    C11,
    C13,
    Liveness,
}

/// A clause that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub clause: Clause,
    /// When.
    pub at: u64,
    /// What was seen.
    pub what: String,
}

/// A reader in the middle of its script.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Who.
    pub worker: WorkerId,
    /// Its clock.
    pub clock: Clock,
    /// Steps that it has done.
    pub step: u64,
}

/// Enough to say what is wrong.
const MOST: usize = 20;

/// The judge of one run.
pub struct Checker<'p> {
    plan: &'p Plan,
    ledger: &'p Ledger,
    now: u64,
    violations: Vec<Violation>,
    /// Parts of each writer that a reader has seen in a row.
    seen: BTreeMap<(WorkerId, Row), Vec<usize>>,
    /// By shard: the cuts that it took.
    cuts: Vec<Vec<Clock>>,
}

impl<'p> Checker<'p> {
    /// Of a run of `plan`.
    pub fn new(plan: &'p Plan, ledger: &'p Ledger) -> Self {
        let cuts = vec![Vec::new(); plan.shards as usize];
        Self { plan, ledger, now: 0, violations: Vec::new(), seen: BTreeMap::new(), cuts }
    }

    /// The plan's updates.
    pub fn ledger(&self) -> &'p Ledger {
        self.ledger
    }

    /// Sets the time.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// Whether there is more to say than anybody reads.
    pub fn is_full(&self) -> bool {
        self.violations.len() >= MOST
    }

    /// Writes down that a clause did not hold.
    pub fn violated(&mut self, clause: Clause, what: String) {
        if !self.is_full() {
            self.violations.push(Violation { clause, at: self.now, what });
        }
    }

    /// What did not hold.
    pub fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    /// A worker read a row of exact sums; `claimed` is the min clock that it was told it saw.
    pub fn read_exact(&mut self, reader: Reader, row: Row, values: &[i64], claimed: Option<Clock>) {
        let Reader { worker, clock, step } = reader;
        let need = self.plan.consistency.needs(clock);
        for writer in 0..self.plan.scripts.len() {
            let value = values.get(writer).copied().unwrap_or_default();
            if writer == worker.index() {
                self.own_column(reader, row, value, self.ledger.own(writer, row, step));
                continue;
            }
            let Some(parts) = self.prefix(writer, row, value, &|| format!("{reader:?} read {row:?}")) else { continue };
            let below = |clock| self.ledger.below(writer, row, clock);
            let (least, claimed_least, exact) = (below(need), claimed.map_or(0, below), below(clock));
            if parts < least {
                let what = format!("{reader:?} read {row:?} with {parts} parts of worker {writer}, of {least} due");
                self.violated(Clause::C2, what);
            }
            if parts < claimed_least {
                let what = format!("{reader:?} read {row:?} as of {claimed:?} with {parts} parts of worker {writer}");
                self.violated(Clause::C1, what);
            }
            if self.plan.consistency.model == Model::Bsp && parts != exact {
                let what = format!("{reader:?} read {row:?} with {parts} parts of worker {writer}, not {exact}");
                self.violated(Clause::C13, what);
            }
            let workers = self.plan.scripts.len();
            let seen = &mut self.seen.entry((worker, row)).or_insert_with(|| vec![0; workers])[writer];
            let before = std::mem::replace(seen, parts);
            if parts < before {
                let what = format!("{reader:?} read {row:?} with {parts} parts of worker {writer}, after {before}");
                self.violated(Clause::C4, what);
            }
        }
    }

    /// A worker read rows of exact sums in place, in one call: those of one shard are of one moment, so that no part is
    /// seen without those before it (C4).
    pub fn read_at_once(&mut self, reader: Reader, table: usize, rows: &[u64], values: &[Vec<i64>]) {
        let map = ShardMap::new(&self.plan.tables[table], self.plan.shards);
        for writer in (0..self.plan.scripts.len()).filter(|w| *w != reader.worker.index()) {
            let mut moments: BTreeMap<ShardId, (PartKey, PartKey)> = BTreeMap::new();
            for (&row, values) in rows.iter().zip(values) {
                let value = values.get(writer).copied().unwrap_or_default();
                let Some(parts) = self.ledger.prefix(writer, (table, row), value) else { continue };
                let (from, to) = self.ledger.bounds(writer, (table, row), parts);
                let moment = moments.entry(map.owner(row)).or_insert((from, to));
                *moment = (moment.0.max(from), moment.1.min(to));
            }
            if let Some((shard, moment)) = moments.iter().find(|(_, (from, to))| from > to) {
                let what =
                    format!("{reader:?} read {rows:?} of table {table} at shard {shard} with {moment:?} torn apart");
                self.violated(Clause::C4, what);
            }
        }
    }

    fn own_column(&mut self, reader: Reader, row: Row, value: i64, own: i64) {
        if value != own {
            let clause = if value < own { Clause::C3 } else { Clause::C10 };
            self.violated(clause, format!("{reader:?} read {row:?} with {value} of its own, not {own}"));
        }
    }

    /// A worker read a row of floats.
    pub fn read_floats(&mut self, reader: Reader, row: u64, values: &[f32]) {
        if self.plan.consistency.model == Model::Bsp {
            let want = self.ledger.floats(reader.worker.index(), row, reader.clock, reader.step);
            if !same_bits(&want, values) {
                self.violated(Clause::C13, format!("{reader:?} read {values:?} in row {row}, not {want:?}"));
            }
        }
    }

    /// How many parts of `writer` are in a value: C4 and C10.
    fn prefix(&mut self, writer: usize, row: Row, value: i64, at: &dyn Fn() -> String) -> Option<usize> {
        let parts = self.ledger.prefix(writer, row, value);
        if parts.is_none() {
            let (clause, how) = match self.ledger.some_of(writer, row, value) {
                true => (Clause::C4, "a part before one that is missing"),
                false => (Clause::C10, "a part twice, or in pieces"),
            };
            self.violated(clause, format!("{}: {how} of worker {writer}", at()));
        }
        parts
    }

    /// Somebody is shown the min clock `min` of a shard: its rows hold everything stamped below (C1).
    pub fn clock_shown(&mut self, id: ShardId, shard: &Shard, min: Clock) {
        for (row, values) in self.exact_rows(shard) {
            self.holds_below(row, &values, min, &|| format!("shard {id} at min clock {min} has {row:?}"));
        }
    }

    fn holds_below(&mut self, row: Row, values: &[i64], min: Clock, at: &dyn Fn() -> String) {
        for writer in 0..self.plan.scripts.len() {
            let value = values.get(writer).copied().unwrap_or_default();
            let Some(parts) = self.prefix(writer, row, value, at) else { continue };
            let least = self.ledger.below(writer, row, min);
            if parts < least {
                self.violated(Clause::C1, format!("{}: {parts} parts of worker {writer}, of {least} due", at()));
            }
        }
    }

    /// A shard sends rows as of a min clock (C1).
    pub fn rows_sent(&mut self, id: ShardId, at: &RowsAt) {
        if at.table.index() == FLOAT {
            return;
        }
        let width = self.plan.tables[at.table.index()].width as usize;
        for (&row, values) in at.rows.iter().zip(rows_of::<i64>(&at.values, width)) {
            let row = (at.table.index(), row);
            let min = at.min_clock;
            self.holds_below(row, &values, min, &|| format!("shard {id} sends {row:?} as of {min}"));
        }
    }

    /// A shard's rows, copied for a cut: exactly the updates stamped below it (C11).
    pub fn cut(&mut self, shard: ShardId, at: Clock, snapshots: &[TableSnapshot]) {
        self.cuts[shard.index()].push(at);
        for (table, snapshot) in snapshots.iter().enumerate() {
            self.rows_are_exactly_below(Clause::C11, table, snapshot, at);
        }
    }

    fn rows_are_exactly_below(&mut self, clause: Clause, table: usize, snapshot: &TableSnapshot, at: Clock) {
        let width = self.plan.tables[table].width as usize;
        if table == FLOAT {
            for (row, values) in snapshot.range.clone().zip(rows_of::<f32>(&snapshot.rows, width)) {
                self.floats_are(clause, row, &values, at);
            }
            return;
        }
        for (row, values) in snapshot.range.clone().zip(rows_of::<i64>(&snapshot.rows, width)) {
            for (writer, &value) in values.iter().enumerate() {
                let want = self.ledger.sum_below(writer, (table, row), at);
                if value != want {
                    let what =
                        format!("at {at}, row {row} of table {table} has {value} of worker {writer}, not {want}");
                    self.violated(clause, what);
                }
            }
        }
    }

    fn floats_are(&mut self, clause: Clause, row: u64, values: &[f32], at: Clock) {
        let want = self.ledger.state(row, at);
        if self.plan.consistency.model == Model::Bsp {
            if !same_bits(want, values) {
                self.violated(Clause::C13, format!("at {at}, row {row} of floats is {values:?}, not {want:?}"));
            }
        } else if want.iter().zip(values).any(|(a, b)| (a - b).abs() > 1e-4) {
            // Additions come in another order, which moves a few of the last bits of sums of a few dozen numbers.
            self.violated(clause, format!("at {at}, row {row} of floats is {values:?}, not near {want:?}"));
        }
    }

    /// Everything has come to rest: every update is there once, clocks are counted, and every cut was taken.
    pub fn finished(&mut self, id: ShardId, shard: &Shard) {
        let end = self.plan.end();
        for (table, snapshot) in shard.snapshot().iter().enumerate() {
            self.rows_are_exactly_below(Clause::C10, table, snapshot, end);
        }
        let clocks = (0..self.plan.workers()).map(|w| shard.applied(WorkerId(w)));
        if shard.min_clock() != end || clocks.into_iter().any(|a| a != PartKey::start_of(end)) {
            let clause = if self.plan.consistency.model == Model::Async { Clause::C7 } else { Clause::C1 };
            self.violated(clause, format!("shard {id} rests at min clock {}, not {end}", shard.min_clock()));
        }
        let want: Vec<Clock> = self.plan.cuts_after(self.plan.start).collect();
        if self.cuts[id.index()] != want {
            self.violated(Clause::C11, format!("shard {id} took cuts {:?}, not {want:?}", self.cuts[id.index()]));
        }
    }

    fn exact_rows(&self, shard: &Shard) -> Vec<(Row, Vec<i64>)> {
        let width = self.plan.tables[DENSE].width as usize;
        let rows = self.range(shard);
        let mut all = Vec::with_capacity(2 * (rows.end - rows.start) as usize);
        for row in rows {
            let mut values = vec![0; width];
            shard.read_dense(TableId(DENSE as u32), &[row], None, i64::wrap_mut(&mut values));
            all.push(((DENSE, row), values));
            let (columns, values) = shard.read_sparse(TableId(SPARSE as u32), row);
            all.push(((SPARSE, row), wide(columns, i64::slice(values).unwrap_or(&[]), width)));
        }
        all
    }

    fn range(&self, shard: &Shard) -> Range<u64> {
        ShardMap::new(&self.plan.tables[DENSE], self.plan.shards).range(shard.config().id)
    }
}

/// A sparse row with its zeros. Columns that repeat, descend or lie beyond `width` come out as a wrong sum.
pub fn wide(columns: &[u32], values: &[i64], width: usize) -> Vec<i64> {
    let mut row = vec![0; width];
    let sound = columns.windows(2).all(|w| w[0] < w[1]) && columns.len() == values.len() && !values.contains(&0);
    for (&column, &value) in columns.iter().zip(values) {
        if let Some(to) = row.get_mut(column as usize).filter(|_| sound) {
            *to = value;
        }
    }
    row
}

/// The rows of a block, sparse ones with their zeros.
fn rows_of<T: Element>(rows: &RowDeltas, width: usize) -> Vec<Vec<T>> {
    let spread = |columns: &[u32], values: &[T]| {
        let mut row = vec![T::default(); width];
        columns.iter().zip(values).for_each(|(&c, &v)| row[c as usize] = v);
        row
    };
    match rows {
        RowDeltas::Dense(values) => typed::<T>(values).chunks(width).map(<[T]>::to_vec).collect(),
        RowDeltas::Sparse { offsets, columns, values } => {
            let (range, values) = (|w: &[u32]| w[0] as usize..w[1] as usize, typed::<T>(values));
            offsets.windows(2).map(|w| spread(&columns[range(w)], &values[range(w)])).collect()
        }
    }
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    Values::F32(a.to_vec()).bytes() == Values::F32(b.to_vec()).bytes()
}
