//! What servers and clients say to each other when they are not in one process (DESIGN §2: one way round).

use crate::ids::{Clock, TableId};
use crate::part::{PartKey, RowDeltas, SealedPart};

/// From a worker to a shard.
#[derive(Clone, Debug)]
pub enum ToShard {
    /// Updates.
    Part(SealedPart),
    /// A cold miss: rows that the worker wants once the shard's min clock is at least `need`.
    Read {
        /// Which table.
        table: TableId,
        /// Which rows, without repeats.
        rows: Vec<u64>,
        /// The gate (C2).
        need: Clock,
        /// Whether changes of these rows are pushed from then on (C5).
        subscribe: bool,
    },
    /// Rows that the worker evicted.
    Unsubscribe {
        /// Which table.
        table: TableId,
        /// Which rows.
        rows: Vec<u64>,
    },
}

/// From a shard to a worker.
#[derive(Clone, Debug)]
pub enum ToWorker {
    /// A part was applied.
    Ack {
        /// The place after it in the worker's sequence.
        applied: PartKey,
    },
    /// Rows that were asked for.
    Rows(RowsAt),
    /// Changed rows among those subscribed, then the clock record, in one message.
    Push {
        /// The shard's min clock.
        min_clock: Clock,
        /// Changed rows by table.
        changed: Vec<RowsAt>,
    },
}

/// Whole rows as a shard had them at one moment.
#[derive(Clone, Debug)]
pub struct RowsAt {
    /// Which table.
    pub table: TableId,
    /// Which rows.
    pub rows: Vec<u64>,
    /// Their values, in the layout of their table.
    pub values: RowDeltas,
    /// The shard's min clock then.
    pub min_clock: Clock,
    /// Everything of the receiving worker before this place is in the values.
    pub included: PartKey,
}
