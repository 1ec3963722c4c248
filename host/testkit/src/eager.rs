//! Judges pushes (C5): each carries exactly the rows that changed since the last one and are subscribed, clock records
//! ascend, and a row that stays resident is never asked for again.

use crate::checker::{Checker, Clause};
use crate::ledger::Row;
use crate::plan::Plan;
use slackline_core::messages::{RowsAt, ToShard, ToWorker};
use slackline_core::{Clock, PartKey, ShardId, ShardMap, TableId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// What pushes have to be like.
pub struct Eager<'p> {
    plan: &'p Plan,
    shards: Vec<Side>,
    /// By worker: rows in its cache.
    resident: Vec<BTreeSet<Row>>,
}

/// What happened at one shard, in the order of its outputs.
struct Side {
    /// Counts what happens.
    order: u64,
    /// By worker: everything before this is applied.
    applied: Vec<PartKey>,
    /// Rows that changed since the last push, and when.
    touched: BTreeMap<Row, u64>,
    /// By worker: rows that it subscribes to, and since when.
    subscribed: Vec<BTreeMap<Row, u64>>,
    /// By worker: the newest clock record.
    record: Vec<Clock>,
}

impl<'p> Eager<'p> {
    /// For a run of `plan`.
    pub fn new(plan: &'p Plan) -> Self {
        let workers = plan.scripts.len();
        let side = || Side {
            order: 0,
            applied: vec![PartKey::start_of(plan.start); workers],
            touched: BTreeMap::new(),
            subscribed: vec![BTreeMap::new(); workers],
            record: vec![plan.start; workers],
        };
        Self { plan, shards: (0..plan.shards).map(|_| side()).collect(), resident: vec![BTreeSet::new(); workers] }
    }

    /// A worker sends a message.
    pub fn worker_sends(&mut self, worker: WorkerId, message: &ToShard, checker: &mut Checker<'_>) {
        if !self.plan.consistency.pushes() {
            return;
        }
        let resident = &mut self.resident[worker.index()];
        match message {
            ToShard::Part(_) => {}
            ToShard::Read { table, rows, .. } => {
                if let Some(row) = pairs(*table, rows).find(|row| resident.contains(row)) {
                    checker.violated(Clause::C5, format!("worker {worker} asks again for {row:?}, which is resident"));
                }
            }
            ToShard::Unsubscribe { table, rows } => pairs(*table, rows).for_each(|row| {
                resident.remove(&row);
            }),
        }
    }

    /// A worker takes a message.
    pub fn worker_takes(&mut self, worker: WorkerId, message: &ToWorker) {
        if let ToWorker::Rows(at) = message {
            self.resident[worker.index()].extend(pairs(at.table, &at.rows));
        }
    }

    /// A shard takes a message.
    pub fn shard_takes(&mut self, shard: ShardId, from: WorkerId, message: &ToShard) {
        if let ToShard::Unsubscribe { table, rows } = message {
            pairs(*table, rows).for_each(|row| {
                self.shards[shard.index()].subscribed[from.index()].remove(&row);
            });
        }
    }

    /// A shard sends a message.
    pub fn shard_sends(&mut self, id: ShardId, to: WorkerId, message: &ToWorker, checker: &mut Checker<'_>) {
        let (plan, side) = (self.plan, &mut self.shards[id.index()]);
        side.order += 1;
        match message {
            ToWorker::Ack { applied } => {
                let before = side.applied[to.index()];
                if *applied > before {
                    side.applied[to.index()] = *applied;
                    let here = |row: &Row| ShardMap::new(&plan.tables[row.0], plan.shards).owner(row.1) == id;
                    let touched = checker.ledger().touched(to.index(), before, *applied).filter(here);
                    side.touched.extend(touched.map(|row| (row, side.order)));
                }
            }
            ToWorker::Rows(RowsAt { table, rows, .. }) if plan.consistency.pushes() => {
                side.subscribed[to.index()].extend(pairs(*table, rows).map(|row| (row, side.order)));
            }
            ToWorker::Rows(_) => {}
            ToWorker::Push { min_clock, changed } => {
                let pushed = changed.iter().flat_map(|at| pairs(at.table, &at.rows)).collect();
                if let Some(what) = side.judge(to, *min_clock, &pushed) {
                    checker.violated(Clause::C5, format!("shard {id} pushes to worker {to} at {min_clock}: {what}"));
                }
                // One push to every worker, the last of them to the last one.
                if to.0 + 1 == plan.workers() {
                    side.touched.clear();
                }
            }
        }
    }

    /// Everything has come to rest: the last clock record says so.
    pub fn finished(&self, checker: &mut Checker<'_>) {
        let late = |s: &Side| s.record.iter().any(|r| *r != self.plan.end());
        if self.plan.consistency.pushes() && self.shards.iter().any(late) {
            checker.violated(Clause::C5, "some worker was never told of the last clock".into());
        }
    }
}

impl Side {
    fn judge(&mut self, to: WorkerId, min: Clock, pushed: &BTreeSet<Row>) -> Option<String> {
        let before = std::mem::replace(&mut self.record[to.index()], min);
        if min <= before {
            return Some(format!("its last clock record was {before}"));
        }
        let subscribed = &self.subscribed[to.index()];
        if let Some(row) = pushed.iter().find(|row| !subscribed.contains_key(row) || !self.touched.contains_key(row)) {
            return Some(format!("{row:?} has not changed or is not subscribed"));
        }
        // What changed before the subscription came with the answer to it.
        let due = subscribed.iter().filter(|(row, since)| self.touched.get(row).is_some_and(|at| at > since));
        due.map(|(row, _)| row).find(|row| !pushed.contains(row)).map(|row| format!("{row:?} changed and is left out"))
    }
}

fn pairs(table: TableId, rows: &[u64]) -> impl Iterator<Item = Row> {
    rows.iter().map(move |&row| (table.index(), row))
}
