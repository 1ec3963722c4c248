//! Cuts: consistent snapshots of a job at a clock (C11), written in parts while training goes on.

mod chunk;
mod reader;
mod record;
mod writer;

pub use chunk::MAX_CHUNK_BYTES;
pub use reader::{CutReader, DenseRows, SparseChunk};
pub(crate) use record::{CutRecord, parse_folder_name};
pub use writer::CutWriter;

use crate::error::Error;
use serde::{Deserialize, Serialize};
use slackline_core::{Clock, TableSpec, Values};
use std::collections::BTreeMap;

/// What a cut must hold to be complete.
#[derive(Clone, Debug)]
pub struct CutSpec {
    /// The clock: updates stamped below it are in.
    pub clock: Clock,
    /// Workers `0..workers`.
    pub workers: u32,
    /// The job's tables, in the order of their ids.
    pub tables: Vec<TableSpec>,
}

/// A worker's side of a cut, as of its tick into the cut's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRecord {
    /// Digest of the plugin that wrote `saved`.
    pub digest: String,
    /// What the instance's `save` gave.
    pub saved: Vec<u8>,
    /// Partition-local state.
    pub local: BTreeMap<String, Values>,
    /// Position of the worker's random stream.
    pub random: u128,
    /// Where it goes on in its data.
    pub cursor: Cursor,
    /// Its metrics, opaque to this crate.
    pub metrics: serde_json::Value,
}

/// A place in a worker's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Epochs ended.
    pub epoch: u64,
    /// Rows of the epoch, in its order, that were taken.
    pub position: u64,
}

/// A complete cut, as its record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutInfo {
    /// The clock.
    pub clock: Clock,
    /// Bytes of all its parts.
    pub bytes: u64,
    /// Number of workers.
    pub workers: u32,
    /// Number of tables.
    pub tables: usize,
}

/// What [`State::newest_intact`](crate::State::newest_intact) found.
pub struct Intact {
    /// The newest cut that can be restored.
    pub cut: Option<CutReader>,
    /// Newer ones that cannot, newest first.
    pub skipped: Vec<Skipped>,
}

/// A cut that cannot be restored.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Its clock.
    pub clock: Clock,
    /// What is wrong with it.
    pub reason: Error,
}
