//! A worker's side of the tables: its updates ([`WorkerLog`]), and two ways of reading under the job's consistency: in
//! place where the shard is in the same process ([`InPlace`]), or through a cache of rows that a shard sends
//! ([`Cached`]).
//!
//! The log and the cache are state machines without threads, I/O or time. [`InPlace`] blocks at the gate through a port
//! that its driver gives.

mod cached;
mod check;
mod in_place;
mod log;

pub use cached::{CacheConfig, Cached, Read, SparseRead};
pub use in_place::{InPlace, LocalShards, ReadStats};
pub use log::WorkerLog;
