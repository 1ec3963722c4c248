//! A worker that follows a script.

use crate::checker::{Checker, Reader, wide};
use crate::ledger::typed;
use crate::plan::{FLOAT, Op, Plan, Reading, SPARSE};
use crate::port::{Port, Shards};
use slackline_client::{CacheConfig, Cached, InPlace, Read, SparseRead};
use slackline_core::messages::{ToShard, ToWorker};
use slackline_core::ports::Tables;
use slackline_core::{Clock, Consistency, HostError, ShardId, TableId, Values, ValuesRef, WorkerId};
use std::sync::Arc;

/// Where a script stands.
pub struct ScriptedWorker {
    reader: Reader,
    /// The next thing to do in this clock.
    op: usize,
    tables: Access,
}

enum Access {
    InPlace(Box<InPlace>, Arc<Port>),
    Cached(Box<Cached>),
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    Done,
    /// A read has to wait.
    Blocked,
    /// The script is at its end.
    Finished,
}

impl ScriptedWorker {
    /// Worker `id` of `plan`, whose tables follow `consistency`.
    pub fn new(id: WorkerId, plan: &Plan, consistency: Consistency, shards: &Arc<Shards>, port: Port) -> Self {
        let (clock, tables) = (plan.start, &plan.tables[..]);
        let before = plan.scripts[id.index()].iter().take(clock as usize);
        let step = before.map(|ops| ops.len() as u64 + 1).sum();
        let tables = match plan.readings[id.index()] {
            Reading::InPlace => {
                let port = Arc::new(port);
                let shared = port.clone();
                Access::InPlace(Box::new(InPlace::new(id, clock, consistency, tables, shards.count(), shared)), port)
            }
            Reading::Cached(rows) => {
                let config = CacheConfig { rows, consistency };
                Access::Cached(Box::new(Cached::new(id, clock, tables, shards.count(), config)))
            }
        };
        Self { reader: Reader { worker: id, clock, step }, op: 0, tables }
    }

    /// Whether it takes messages: one that reads in place looks for itself.
    pub fn is_cached(&self) -> bool {
        matches!(self.tables, Access::Cached(_))
    }

    /// Takes a message from a shard.
    pub fn receive(&mut self, from: ShardId, message: ToWorker) {
        if let Access::Cached(cached) = &mut self.tables {
            cached.receive(from, message);
        }
    }

    /// How often it found a gate shut in its own process.
    pub fn refusals(&self) -> u64 {
        match &self.tables {
            Access::InPlace(_, port) => port.refusals(),
            Access::Cached(_) => 0,
        }
    }

    /// The widest gap that its own account shows.
    pub fn widest_gap(&self) -> Option<Clock> {
        match &self.tables {
            Access::InPlace(tables, _) => tables.stats().staleness.keys().next_back().copied(),
            Access::Cached(_) => None,
        }
    }

    /// Does the next step; what it sends goes to `out`.
    pub fn step(&mut self, plan: &Plan, out: &mut Vec<(ShardId, ToShard)>, checker: &mut Checker<'_>) -> Step {
        let Some(ops) = plan.scripts[self.reader.worker.index()].get(self.reader.clock as usize) else {
            return Step::Finished;
        };
        let done = match ops.get(self.op) {
            None => {
                self.seal(true, out);
                (self.reader.clock, self.op) = (self.reader.clock + 1, 0);
                self.reader.step += 1;
                return if self.reader.clock == plan.end() { Step::Finished } else { Step::Done };
            }
            Some(Op::Flush) => {
                self.seal(false, out);
                Ok(true)
            }
            Some(Op::Read { table: SPARSE, rows }) => self.read_sparse(rows, plan, out, checker),
            Some(Op::Read { table, rows }) => self.read_dense(*table, rows, plan, out, checker),
            Some(Op::Add { table, rows, amounts }) => self.add(*table, rows, amounts, plan).map(|()| true),
            Some(Op::AddFloats { rows, deltas }) => self.add_dense(FLOAT, rows, ValuesRef::F32(deltas)).map(|()| true),
        };
        match done {
            Ok(true) => {
                self.op += 1;
                self.reader.step += 1;
                Step::Done
            }
            Ok(false) | Err(HostError::Unavailable(_)) => Step::Blocked,
            Err(e) => panic!("a sound script was refused: {e}"),
        }
    }

    fn seal(&mut self, last: bool, out: &mut Vec<(ShardId, ToShard)>) {
        match &mut self.tables {
            Access::InPlace(tables, port) => {
                if last {
                    tables.tick();
                } else {
                    tables.flush();
                }
                out.extend(port.take_parts().into_iter().map(|(shard, part)| (shard, ToShard::Part(part))));
            }
            Access::Cached(cached) => out.extend(cached.seal(last)),
        }
    }

    fn add(&mut self, table: usize, rows: &[u64], amounts: &[i64], plan: &Plan) -> Result<(), HostError> {
        let own = self.reader.worker.index();
        if table != SPARSE {
            let width = plan.tables[table].width as usize;
            let mut deltas = vec![0; rows.len() * width];
            amounts.iter().enumerate().for_each(|(i, &amount)| deltas[i * width + own] = amount);
            return self.add_dense(table, rows, ValuesRef::I64(&deltas));
        }
        // In two halves, so that a column repeats within a call.
        let offsets: Vec<u32> = (0..=rows.len() as u32).map(|i| 2 * i).collect();
        let columns = vec![own as u32; 2 * rows.len()];
        let halves: Vec<i64> = amounts.iter().flat_map(|&amount| [amount / 2, amount - amount / 2]).collect();
        let (id, values) = (TableId(table as u32), ValuesRef::I64(&halves));
        match &mut self.tables {
            Access::InPlace(tables, _) => tables.inc_sparse(id, rows, &offsets, &columns, values),
            Access::Cached(cached) => cached.inc_sparse(id, rows, &offsets, &columns, values),
        }
    }

    fn add_dense(&mut self, table: usize, rows: &[u64], deltas: ValuesRef<'_>) -> Result<(), HostError> {
        match &mut self.tables {
            Access::InPlace(tables, _) => tables.inc(TableId(table as u32), rows, deltas),
            Access::Cached(cached) => cached.inc(TableId(table as u32), rows, deltas),
        }
    }

    fn read_dense(
        &mut self,
        table: usize,
        rows: &[u64],
        plan: &Plan,
        out: &mut Vec<(ShardId, ToShard)>,
        checker: &mut Checker<'_>,
    ) -> Result<bool, HostError> {
        let (id, spec) = (TableId(table as u32), &plan.tables[table]);
        let (values, claimed) = match &mut self.tables {
            Access::InPlace(tables, _) => {
                let mut values = Values::zeros(spec.dtype, rows.len() * spec.width as usize);
                tables.get(id, rows, values.as_mut())?;
                (values, None)
            }
            Access::Cached(cached) => match cached.read(id, rows, out)? {
                Read::Ready(values, gap) => (values, Some(self.reader.clock - gap)),
                Read::Blocked => return Ok(false),
            },
        };
        if claimed.is_none() && table != FLOAT {
            let by_row: Vec<_> = typed::<i64>(&values).chunks(spec.width as usize).map(<[i64]>::to_vec).collect();
            checker.read_at_once(self.reader, table, rows, &by_row);
        }
        for (i, &row) in rows.iter().enumerate() {
            let at = i * spec.width as usize..(i + 1) * spec.width as usize;
            match table {
                FLOAT => checker.read_floats(self.reader, row, &typed::<f32>(&values)[at]),
                _ => checker.read_exact(self.reader, (table, row), &typed::<i64>(&values)[at], claimed),
            }
        }
        Ok(true)
    }

    fn read_sparse(
        &mut self,
        rows: &[u64],
        plan: &Plan,
        out: &mut Vec<(ShardId, ToShard)>,
        checker: &mut Checker<'_>,
    ) -> Result<bool, HostError> {
        let (id, width) = (TableId(SPARSE as u32), plan.tables[SPARSE].width as usize);
        let (read, claimed) = match &mut self.tables {
            Access::InPlace(tables, _) => (tables.get_sparse(id, rows)?, None),
            Access::Cached(cached) => match cached.read_sparse(id, rows, out)? {
                SparseRead::Ready(read, gap) => (read, Some(self.reader.clock - gap)),
                SparseRead::Blocked => return Ok(false),
            },
        };
        let values = typed::<i64>(&read.values);
        let places = read.offsets.windows(2).map(|w| w[0] as usize..w[1] as usize);
        let by_row: Vec<_> = places.map(|at| wide(&read.columns[at.clone()], &values[at], width)).collect();
        if claimed.is_none() {
            checker.read_at_once(self.reader, SPARSE, rows, &by_row);
        }
        for (&row, values) in rows.iter().zip(&by_row) {
            checker.read_exact(self.reader, (SPARSE, row), values, claimed);
        }
        Ok(true)
    }
}
