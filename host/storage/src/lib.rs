//! What outlives a process: a job's identity, its plugin's bytes, and its cuts.
//!
//! One folder per job state:
//!
//! ```text
//! FORMAT        which layout this is, as text
//! LOCK          held by the process that writes; holds its id
//! control/      RocksDB with a log: job, plugin bytes, documents, and the record of every complete cut
//! cuts/C.A/     RocksDB without a log: the parts of the cut at clock C, written by attempt A
//! ```
//!
//! A cut has a database of its own because RocksDB's failures are those of a whole database: a truncated file keeps it
//! from opening, a full disk stops its writes until it is opened again. So neither a damaged cut nor one that ran out of
//! disk reaches the others or the control records, an immutable cut can be read while the job goes on, and removing one
//! is unlinking its folder. A cut is complete when, and only when, the control database holds its record, which is one
//! synced write after all parts are on disk; folders without a record are leftovers, deleted when the state is opened.
//!
//! Whatever is read back is untrusted: records carry a version and a checksum, chunks are checked against the lengths
//! and BLAKE3 sums in the record, and nothing is allocated before its length agrees with what is stored.
//!
//! A coordinator has a folder of its own kind, of which [`Ledger`] keeps the records and [`BlobFiles`] what was uploaded.
//!
//! This crate is the only one that knows RocksDB. Entry points: [`State::open`], [`Ledger::open`].

mod blobs;
mod control;
mod cut;
mod error;
mod files;
mod folder;
mod job;
mod ledger;
mod sealed;
mod stall;
mod state;
mod tuning;

pub use cut::{
    Cursor, CutInfo, CutReader, CutSpec, CutWriter, DenseRows, Intact, MAX_CHUNK_BYTES, Skipped, SparseChunk,
    WorkerRecord,
};
pub use error::{Error, ErrorKind, Result};
pub use files::{BlobFiles, Upload};
pub use folder::FORMAT_VERSION;
pub use job::{Difference, Job, differences};
pub use ledger::Ledger;
pub use state::{Mode, State};
