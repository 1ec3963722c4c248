//! Waiting for a slow disk without waiting for a full one.
//!
//! RocksDB stops writers while what they wrote waits for the disk. When that disk is full it goes on stopping them, for as
//! long as it hopes for space, and the training that wanted a cut would hang. So writes ask not to be stopped
//! (`no_slowdown`), and the waiting is done here, until RocksDB counts a failure.

use rocksdb::{DB, ErrorKind, properties};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(1);

/// How often a write is tried after RocksDB counted a failure, to learn which one it was.
const TRIES_AFTER_FAILURE: u32 = 100;

/// Does `write`, which asks for `no_slowdown`, again and again while it is refused because the disk is behind.
pub(crate) fn patiently(db: &DB, mut write: impl FnMut() -> Result<(), rocksdb::Error>) -> Result<(), rocksdb::Error> {
    let mut tries_after_failure = 0;
    loop {
        match write() {
            Err(e) if e.kind() == ErrorKind::Incomplete && tries_after_failure < TRIES_AFTER_FAILURE => {
                // An unknown count is taken for a failure: better an abandoned cut than an endless wait.
                if db.property_int_value(properties::BACKGROUND_ERRORS)?.is_none_or(|n| n > 0) {
                    tries_after_failure += 1;
                }
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}
