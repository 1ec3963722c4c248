//! One shard of a job's tables: it applies sealed parts in the order that the consistency model asks for, keeps the min
//! clock, answers cold misses and pushes changed rows (DESIGN §3, C1–C5, C10, C11, C13).
//!
//! Everything here is a state machine without threads, I/O or time. In one process a driver guards a [`Shard`] with a
//! lock and workers read rows in place through [`slackline_core::ports::ShardRows`]; over a network the same shard is fed
//! [`slackline_core::messages::ToShard`] and answers with [`Output`]s.

mod cut;
mod rows;
mod shard;
mod subscribers;

pub use cut::resplit;
pub use rows::{TableRows, TableSnapshot};
pub use shard::{Output, Received, Shard, ShardConfig};
