//! Sealed updates on their way to a shard: what a worker's clock did to the rows that one shard owns.
//!
//! A worker seals its oplog into numbered parts, the last of a clock marked so. (job, worker, shard, clock, part) names
//! a part for ever (C10); parts of one worker apply at a shard in that order (C4).

use crate::ids::{Clock, TableId, WorkerId};
use crate::values::Values;
use std::sync::Arc;

/// A place in a worker's sequence of parts to one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartKey {
    /// The stamp: the clock in which the updates were made.
    pub clock: Clock,
    /// 0, 1, … within the clock.
    pub part: u32,
}

impl PartKey {
    /// The first part of `clock`.
    pub fn start_of(clock: Clock) -> Self {
        Self { clock, part: 0 }
    }

    /// The place after a part: the next part of its clock, or the first of the next clock when it was the last.
    pub fn after(self, last: bool) -> Self {
        if last { Self::start_of(self.clock + 1) } else { Self { clock: self.clock, part: self.part + 1 } }
    }
}

/// Deltas to some rows of one table; every row occurs once.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDeltas {
    /// Which table.
    pub table: TableId,
    /// Row ids of the whole table, not of the shard.
    pub rows: Vec<u64>,
    /// What is added.
    pub deltas: RowDeltas,
}

impl TableDeltas {
    /// Bytes that it holds: keys, columns and values.
    pub fn bytes(&self) -> u64 {
        let data = match &self.deltas {
            RowDeltas::Dense(values) => values.bytes().len(),
            RowDeltas::Sparse { offsets, columns, values } => {
                size_of_val(&offsets[..]) + size_of_val(&columns[..]) + values.bytes().len()
            }
        };
        (size_of_val(&self.rows[..]) + data) as u64
    }
}

/// Deltas in the layout of their table.
#[derive(Clone, Debug, PartialEq)]
pub enum RowDeltas {
    /// rows × width values.
    Dense(Values),
    /// Row `i` owns `offsets[i]..offsets[i + 1]` of columns (ascending) and values.
    Sparse {
        /// Rows + 1 places.
        offsets: Vec<u32>,
        /// Columns.
        columns: Vec<u32>,
        /// One a column.
        values: Values,
    },
}

/// A sealed part. In one process it travels by reference: the blocks are shared with the worker that still reads
/// through them (C3).
#[derive(Clone, Debug)]
pub struct SealedPart {
    /// Whose updates.
    pub worker: WorkerId,
    /// Its place in the worker's sequence.
    pub key: PartKey,
    /// Whether it ends its clock.
    pub last: bool,
    /// Deltas by table; a table without updates is left out.
    pub tables: Vec<Arc<TableDeltas>>,
}
