//! What a coordinator knows: a snapshot, and the changes since, each one durable before anybody is told.
//!
//! The records are the caller's bytes. One write is atomic: a crash leaves all of its changes or none.

use crate::control::{Change, Control};
use crate::error::{Error, Result};
use crate::files::BlobFiles;
use crate::folder::{Folder, Holds, Lock, sync_dir};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const SNAPSHOT: &[u8] = b"snapshot";
const CHANGES: &[u8] = b"change/";

/// An open cluster folder.
pub struct Ledger {
    folder: Folder,
    control: Control,
    blobs: Arc<BlobFiles>,
    /// The number of the first change since the snapshot, and of the next one. Held over a write, so that changes get
    /// their numbers in the order that they become durable in.
    span: Mutex<(u64, u64)>,
    /// Last, so that the database is closed before it goes.
    _lock: Lock,
}

impl Ledger {
    /// Opens the folder `dir`, making it when it is missing or empty.
    pub fn open(dir: &Path) -> Result<Self> {
        let folder = Folder::new(dir, Holds::Cluster);
        folder.create()?;
        let lock = folder.lock()?;
        let fresh = !folder.control().join("CURRENT").exists();
        let control = Control::open(&folder.control(), fresh)?;
        let blobs = Arc::new(BlobFiles::open(&folder.root.join("blobs"))?);
        sync_dir(&folder.root)?;
        let numbers = control.scan("a change", CHANGES)?.into_iter().map(|(key, _)| number(&key));
        let numbers = numbers.collect::<Result<Vec<u64>>>()?;
        let from = numbers.first().copied().unwrap_or(0);
        let contiguous = numbers.iter().zip(from..).all(|(n, expected)| *n == expected);
        if !contiguous {
            return Err(Error::damaged(format!("the changes in {} have a gap", dir.display())));
        }
        let span = Mutex::new((from, from + numbers.len() as u64));
        Ok(Self { folder, control, blobs, span, _lock: lock })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.folder.root
    }

    /// The snapshot, if one was made.
    pub fn snapshot(&self) -> Result<Option<Vec<u8>>> {
        self.control.get(&format!("the snapshot in {}", self.dir().display()), SNAPSHOT)
    }

    /// The changes since, oldest first.
    pub fn changes(&self) -> Result<Vec<Vec<u8>>> {
        let what = format!("a change in {}", self.dir().display());
        self.control.scan(&what, CHANGES)?.into_iter().map(|(_, content)| content).collect()
    }

    /// How many changes there are since the snapshot.
    pub fn since_snapshot(&self) -> u64 {
        let span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        span.1 - span.0
    }

    /// Makes `changes` durable, all or none.
    pub fn append(&self, changes: Vec<Vec<u8>>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        let next = span.1 + changes.len() as u64;
        let puts: Vec<_> = (span.1..).zip(changes).map(|(n, c)| Change::put(key(n), c)).collect();
        self.control.write(&puts)?;
        span.1 = next;
        Ok(())
    }

    /// Puts a snapshot in the place of all changes so far.
    pub fn replace(&self, snapshot: Vec<u8>) -> Result<()> {
        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writes: Vec<_> = (span.0..span.1).map(|n| Change::delete(key(n))).collect();
        writes.push(Change::put(SNAPSHOT.to_vec(), snapshot));
        self.control.write(&writes)?;
        span.0 = span.1;
        Ok(())
    }

    /// What was uploaded.
    pub fn blobs(&self) -> Arc<BlobFiles> {
        self.blobs.clone()
    }
}

fn key(number: u64) -> Vec<u8> {
    [CHANGES, &number.to_be_bytes()].concat()
}

fn number(key: &[u8]) -> Result<u64> {
    let number = key.get(CHANGES.len()..).and_then(|n| Some(u64::from_be_bytes(n.try_into().ok()?)));
    number.ok_or_else(|| Error::damaged(format!("a change's key has {} bytes", key.len())))
}
