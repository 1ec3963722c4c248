//! What the model must be: a plain, sequential account of a plan's updates, made without the engine's logs, gates and
//! shards.

use crate::plan::{FLOAT, Op, Plan};
use slackline_core::{Clock, Element, PartKey, Values};
use std::collections::BTreeMap;

/// (table, row).
pub type Row = (usize, u64);

/// All updates of a plan.
pub struct Ledger {
    /// By worker: its parts' amounts to exact rows, in order of parts.
    sums: Vec<BTreeMap<Row, Vec<(PartKey, i64)>>>,
    /// By worker: the same, update by update, with the number of the step that made it.
    steps: Vec<BTreeMap<Row, Vec<(u64, i64)>>>,
    /// By worker: coalesced deltas to rows of floats, in order of parts, with the step of every addition.
    floats: Vec<BTreeMap<u64, Vec<FloatPart>>>,
    /// By worker: rows that each part touches.
    touched: Vec<BTreeMap<PartKey, Vec<Row>>>,
    /// Under BSP, rows × width floats at the beginning of each clock.
    states: Vec<Vec<f32>>,
    width: usize,
}

/// One part's deltas to one row.
struct FloatPart {
    key: PartKey,
    /// (step, delta) in the order of calls.
    deltas: Vec<(u64, Vec<f32>)>,
}

impl FloatPart {
    /// Coalesced in the order of calls, of the steps before `until`.
    fn sum(&self, until: u64) -> Option<Vec<f32>> {
        let mut deltas = self.deltas.iter().filter(|(step, _)| *step < until).map(|(_, d)| d);
        let first = deltas.next()?.clone();
        Some(deltas.fold(first, |sum, d| add(sum, d)))
    }
}

fn add(sum: Vec<f32>, delta: &[f32]) -> Vec<f32> {
    sum.iter().zip(delta).map(|(a, b)| a + b).collect()
}

impl Ledger {
    /// Of every update that `plan` makes, from clock 0 on.
    pub fn new(plan: &Plan) -> Self {
        let workers = plan.scripts.len();
        let mut ledger = Self {
            sums: vec![BTreeMap::new(); workers],
            steps: vec![BTreeMap::new(); workers],
            floats: (0..workers).map(|_| BTreeMap::new()).collect(),
            touched: vec![BTreeMap::new(); workers],
            states: Vec::new(),
            width: plan.tables[FLOAT].width as usize,
        };
        for (worker, clocks) in plan.scripts.iter().enumerate() {
            let (mut step, mut key) = (0, PartKey::default());
            for ops in clocks {
                for op in ops {
                    ledger.enter(worker, step, key, op);
                    step += 1;
                    if matches!(op, Op::Flush) {
                        key = PartKey { clock: key.clock, part: key.part + 1 };
                    }
                }
                step += 1;
                key = PartKey { clock: key.clock + 1, part: 0 };
            }
        }
        ledger.run_in_order(plan);
        ledger
    }

    fn enter(&mut self, worker: usize, step: u64, key: PartKey, op: &Op) {
        match op {
            Op::Read { .. } | Op::Flush => {}
            Op::Add { table, rows, amounts } => {
                for (&row, &amount) in rows.iter().zip(amounts) {
                    self.steps[worker].entry((*table, row)).or_default().push((step, amount));
                    let parts = self.sums[worker].entry((*table, row)).or_default();
                    match parts.last_mut().filter(|(k, _)| *k == key) {
                        Some((_, sum)) => *sum += amount,
                        None => parts.push((key, amount)),
                    }
                    self.touched[worker].entry(key).or_default().push((*table, row));
                }
            }
            Op::AddFloats { rows, deltas } => {
                for (&row, delta) in rows.iter().zip(deltas.chunks(self.width)) {
                    let parts = self.floats[worker].entry(row).or_default();
                    if parts.last().is_none_or(|p| p.key != key) {
                        parts.push(FloatPart { key, deltas: Vec::new() });
                    }
                    if let Some(part) = parts.last_mut() {
                        part.deltas.push((step, delta.to_vec()));
                    }
                    self.touched[worker].entry(key).or_default().push((FLOAT, row));
                }
            }
        }
    }

    /// C13: the parts of a clock in worker order, each worker's in its own order.
    fn run_in_order(&mut self, plan: &Plan) {
        let spec = &plan.tables[FLOAT];
        let Values::F32(mut state) = spec.initial(plan.seed, 0, spec.rows as usize) else { return };
        for clock in 0..=plan.end() {
            self.states.push(state.clone());
            for rows in &self.floats {
                for (&row, parts) in rows {
                    let at = row as usize * self.width;
                    for delta in parts.iter().filter(|p| p.key.clock == clock).filter_map(|p| p.sum(u64::MAX)) {
                        state[at..at + self.width].iter_mut().zip(delta).for_each(|(a, d)| *a += d);
                    }
                }
            }
        }
    }

    /// How many of a worker's parts that touch an exact row are in `value`; `None` when it is no prefix of them.
    pub fn prefix(&self, worker: usize, row: Row, value: i64) -> Option<usize> {
        let mut sum = 0;
        for (n, (_, amount)) in self.parts(worker, row).iter().enumerate() {
            if sum == value {
                return Some(n);
            }
            sum += amount;
        }
        (sum == value).then(|| self.parts(worker, row).len())
    }

    /// Between which places of a worker's sequence a row with its first `parts` parts was seen: at or after the first,
    /// and not after the second.
    pub fn bounds(&self, worker: usize, row: Row, parts: usize) -> (PartKey, PartKey) {
        let end = PartKey::start_of(Clock::MAX);
        let keys = self.parts(worker, row);
        let after = |key: PartKey| PartKey { part: key.part + 1, ..key };
        let from = parts.checked_sub(1).and_then(|last| keys.get(last)).map_or(PartKey::default(), |(k, _)| after(*k));
        (from, keys.get(parts).map_or(end, |(key, _)| *key))
    }

    /// Whether `value` is the sum of some of a worker's parts, each at most once.
    pub fn some_of(&self, worker: usize, row: Row, value: i64) -> bool {
        let mut sums = vec![0];
        for (_, amount) in self.parts(worker, row) {
            sums.extend(sums.clone().iter().map(|s| s + amount));
        }
        sums.contains(&value)
    }

    /// How many of a worker's parts that touch an exact row are stamped below `clock`.
    pub fn below(&self, worker: usize, row: Row, clock: Clock) -> usize {
        self.parts(worker, row).iter().filter(|(key, _)| key.clock < clock).count()
    }

    /// What those sum to.
    pub fn sum_below(&self, worker: usize, row: Row, clock: Clock) -> i64 {
        self.parts(worker, row).iter().filter(|(key, _)| key.clock < clock).map(|(_, amount)| amount).sum()
    }

    /// What a worker has added to an exact row in the steps before `step`.
    pub fn own(&self, worker: usize, row: Row, step: u64) -> i64 {
        let steps = self.steps[worker].get(&row).map_or(&[][..], Vec::as_slice);
        steps.iter().filter(|(s, _)| *s < step).map(|(_, amount)| amount).sum()
    }

    /// Under BSP, the bits of a row of floats that a worker reads in step `step`, which is in `clock`.
    pub fn floats(&self, worker: usize, row: u64, clock: Clock, step: u64) -> Vec<f32> {
        let mut state = self.state(row, clock).to_vec();
        for part in self.floats[worker].get(&row).into_iter().flatten().filter(|p| p.key.clock == clock) {
            if let Some(delta) = part.sum(step) {
                state = add(state, &delta);
            }
        }
        state
    }

    /// Under BSP, the bits of a row of floats when `clock` begins.
    pub fn state(&self, row: u64, clock: Clock) -> &[f32] {
        &self.states[clock as usize][row as usize * self.width..][..self.width]
    }

    /// Rows that a worker's parts in `from..to` touch.
    pub fn touched(&self, worker: usize, from: PartKey, to: PartKey) -> impl Iterator<Item = Row> {
        self.touched[worker].range(from..to).flat_map(|(_, rows)| rows.iter().copied())
    }

    fn parts(&self, worker: usize, row: Row) -> &[(PartKey, i64)] {
        self.sums[worker].get(&row).map_or(&[], Vec::as_slice)
    }
}

/// Dense rows out of typed values; empty when the type is another.
pub fn typed<T: Element>(values: &Values) -> &[T] {
    T::of(values).map_or(&[], Vec::as_slice)
}
