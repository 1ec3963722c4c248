//! The control database: sealed records by key, and getting back on its feet after a failed write.

use crate::error::{Error, ErrorKind, Result};
use crate::sealed::{seal, unseal};
use crate::stall::patiently;
use crate::tuning;
use rocksdb::{DB, IteratorMode, WriteBatch};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// A key and, for a record that is put, its content.
pub(crate) struct Change {
    pub(crate) key: Vec<u8>,
    pub(crate) content: Option<Vec<u8>>,
}

impl Change {
    pub(crate) fn put(key: Vec<u8>, content: Vec<u8>) -> Self {
        Self { key, content: Some(content) }
    }

    pub(crate) fn delete(key: Vec<u8>) -> Self {
        Self { key, content: None }
    }
}

/// A record that a scan found: its key, and its content where it is sound.
pub(crate) type Scanned = (Vec<u8>, Result<Vec<u8>>);

/// The open database.
pub(crate) struct Control {
    path: PathBuf,
    read_only: bool,
    /// `None` after a failed write until it could be opened again. RocksDB refuses all writes after a failed one, so
    /// opening again is the way back; the lock lets that wait for readers.
    db: RwLock<Option<DB>>,
}

impl Control {
    pub(crate) fn open(path: &Path, create: bool) -> Result<Self> {
        let db = DB::open(&tuning::control(create), path).map_err(|e| cannot_open(path, &e))?;
        Ok(Self { path: path.to_owned(), read_only: false, db: RwLock::new(Some(db)) })
    }

    /// A snapshot as of now, also while another process writes.
    pub(crate) fn open_read_only(path: &Path) -> Result<Self> {
        let options = tuning::control(false);
        let mut last = None;
        // The writer may remove a file between our reading its list of files and our opening them.
        for attempt in 0..5u64 {
            match DB::open_for_read_only(&options, path, false) {
                Ok(db) => return Ok(Self { path: path.to_owned(), read_only: true, db: RwLock::new(Some(db)) }),
                Err(e) => last = Some(e),
            }
            std::thread::sleep(Duration::from_millis(10 << attempt));
        }
        Err(last.map_or_else(|| Error::new(ErrorKind::Io, "unreachable"), |e| cannot_open(path, &e)))
    }

    pub(crate) fn read_only(&self) -> bool {
        self.read_only
    }

    /// The record under `key`.
    pub(crate) fn get(&self, what: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let stored = self.with(|db| db.get_pinned(key).map(|v| v.map(|v| v.to_vec())))?;
        stored.map(|v| unseal(what, key, &v).map(<[u8]>::to_vec)).transpose()
    }

    /// All records whose key begins with `prefix`, by key, each with its own verdict.
    pub(crate) fn scan(&self, what: &str, prefix: &[u8]) -> Result<Vec<Scanned>> {
        self.with(|db| {
            let mut found = Vec::new();
            for entry in db.iterator(IteratorMode::From(prefix, rocksdb::Direction::Forward)) {
                let (key, value) = entry?;
                if !key.starts_with(prefix) {
                    break;
                }
                let content = unseal(what, &key, &value).map(<[u8]>::to_vec);
                found.push((key.into_vec(), content));
            }
            Ok(found)
        })
    }

    /// Applies all changes in one atomic, synced write.
    pub(crate) fn write(&self, changes: &[Change]) -> Result<()> {
        if self.read_only {
            return Err(Error::invalid(format!("{} is opened for reading only", self.path.display())));
        }
        let mut batch = WriteBatch::default();
        for change in changes {
            match &change.content {
                Some(content) => batch.put(&change.key, seal(&change.key, content)),
                None => batch.delete(&change.key),
            }
        }
        // Writing takes the batch, so each try gets its own.
        let written =
            self.run(|db| patiently(db, || db.write_opt(WriteBatch::from_data(batch.data()), &tuning::synced())))?;
        written.map_err(|e| {
            // If it cannot be opened again now, the next call tries once more.
            let _ = self.reopen();
            Error::rocks("write to", &self.path, &e)
        })
    }

    /// Closes and opens the database, which is what clears a failed write.
    fn reopen(&self) -> Result<()> {
        let mut slot = self.db.write().unwrap_or_else(PoisonError::into_inner);
        // The old handle must be gone first: it holds RocksDB's lock.
        *slot = None;
        *slot = Some(self.open_again()?);
        Ok(())
    }

    fn open_again(&self) -> Result<DB> {
        if self.read_only {
            DB::open_for_read_only(&tuning::control(false), &self.path, false)
        } else {
            DB::open(&tuning::control(false), &self.path)
        }
        .map_err(|e| cannot_open(&self.path, &e))
    }

    fn with<T>(&self, f: impl FnOnce(&DB) -> std::result::Result<T, rocksdb::Error>) -> Result<T> {
        self.run(f)?.map_err(|e| Error::rocks("read", &self.path, &e))
    }

    fn run<T>(&self, f: impl FnOnce(&DB) -> T) -> Result<T> {
        let slot = self.db.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(db) = slot.as_ref() {
            return Ok(f(db));
        }
        drop(slot);
        self.reopen()?;
        let slot = self.db.read().unwrap_or_else(PoisonError::into_inner);
        match slot.as_ref() {
            Some(db) => Ok(f(db)),
            None => Err(Error::new(ErrorKind::Io, format!("{} could not be opened again", self.path.display()))),
        }
    }
}

fn cannot_open(path: &Path, e: &rocksdb::Error) -> Error {
    let error = Error::rocks("open the control records in", path, e);
    match error.kind() {
        ErrorKind::Damaged => {
            Error::damaged(format!("{error}; this state cannot be used any more, start the job anew in another folder"))
        }
        _ => error,
    }
}
