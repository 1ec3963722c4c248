//! The folder itself, before RocksDB is asked: is it ours, of which format, and does somebody hold it?

use crate::error::{Error, ErrorKind, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The layout that this release reads and writes.
pub const FORMAT_VERSION: u32 = 1;

const FORMAT_FILE: &str = "FORMAT";

/// What a folder is for. One kind is never taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// One job's state.
    Job,
    /// What a coordinator knows.
    Cluster,
}

impl Holds {
    fn prefix(self) -> &'static str {
        match self {
            Holds::Job => "slackline state ",
            Holds::Cluster => "slackline cluster ",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Holds::Job => "state folder",
            Holds::Cluster => "cluster folder",
        }
    }
}

/// Where things are in a state folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) root: PathBuf,
    holds: Holds,
}

impl Folder {
    pub(crate) fn new(root: &Path, holds: Holds) -> Self {
        Self { root: root.to_owned(), holds }
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    pub(crate) fn cuts(&self) -> PathBuf {
        self.root.join("cuts")
    }

    /// Refuses a folder that is missing, something else, or of another format.
    pub(crate) fn check(&self) -> Result<()> {
        let path = self.root.join(FORMAT_FILE);
        let mut text = String::new();
        let read = File::open(&path).and_then(|f| f.take(256).read_to_string(&mut text));
        if let Err(e) = read {
            return Err(match e.kind() {
                std::io::ErrorKind::NotFound if !self.root.exists() => Error::new(
                    ErrorKind::Missing,
                    match self.holds {
                        Holds::Job => {
                            format!("there is no state folder {}; run the job once to make it", self.root.display())
                        }
                        Holds::Cluster => format!("there is no cluster folder {}", self.root.display()),
                    },
                ),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory | std::io::ErrorKind::InvalidData => {
                    self.not_a_state()
                }
                _ => Error::file("read", &path, &e),
            });
        }
        let version = text.strip_prefix(self.holds.prefix()).and_then(|v| v.trim_end().parse::<u32>().ok());
        let (what, root) = (self.holds.name(), self.root.display());
        match version {
            Some(FORMAT_VERSION) => Ok(()),
            Some(v) if v > FORMAT_VERSION => Err(Error::new(
                ErrorKind::NewerVersion,
                format!("{what} {root} has format {v}, this release reads {FORMAT_VERSION}; use a newer slackline"),
            )),
            Some(v) => Err(Error::new(
                ErrorKind::OlderVersion,
                format!(
                    "{what} {root} has format {v}, this release reads {FORMAT_VERSION}; use the release that wrote it, or \
                     start anew in another folder"
                ),
            )),
            None => Err(self.not_a_state()),
        }
    }

    /// Makes the folder when it is missing or empty; otherwise checks it. Gives whether it was made.
    pub(crate) fn create(&self) -> Result<bool> {
        fs::create_dir_all(&self.root).map_err(|e| Error::file("make the state folder", &self.root, &e))?;
        if self.root.join(FORMAT_FILE).exists() {
            return self.check().map(|()| false);
        }
        let entries = fs::read_dir(&self.root).map_err(|e| Error::file("read the folder", &self.root, &e))?;
        // A lock without a format is what a crash between the two leaves.
        if entries.flatten().any(|e| !["LOCK", "FORMAT.new"].iter().any(|ours| e.file_name() == *ours)) {
            return Err(self.not_a_state());
        }
        let (new, path) = (self.root.join("FORMAT.new"), self.root.join(FORMAT_FILE));
        File::create(&new)
            .and_then(|mut f| {
                f.write_all(format!("{}{FORMAT_VERSION}\n", self.holds.prefix()).as_bytes())?;
                f.sync_all()
            })
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|e| Error::file("write", &path, &e))?;
        sync_dir(&self.root)?;
        Ok(true)
    }

    /// Takes the folder for writing; it is held until the lock is dropped or the process ends, however it ends.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let path = self.root.join("LOCK");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::file("open", &path, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let known = file.take(32).read_to_string(&mut holder).is_ok() && holder.trim().parse::<u32>().is_ok();
                let by = if known { format!("process {}", holder.trim()) } else { "another process".to_owned() };
                return Err(Error::new(
                    ErrorKind::Locked,
                    format!(
                        "{} {} is in use by {by}; wait for it, stop it, or choose another folder",
                        self.holds.name(),
                        self.root.display()
                    ),
                ));
            }
            // Some network file systems have no locks; RocksDB's own lock on the control database still stands.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(Error::file("lock", &path, &e)),
        }
        // The id only serves the message above, so a disk too full to hold it must not keep the folder from opening.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock(file))
    }

    fn not_a_state(&self) -> Error {
        Error::new(
            ErrorKind::NotAState,
            format!(
                "{} is not a {} of slackline; choose an empty or a new folder",
                self.root.display(),
                self.holds.name()
            ),
        )
    }
}

/// The hold on a folder.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would not do: a child process that is being started has a copy of the file for a moment.
        let _ = self.0.unlock();
    }
}

/// Makes names created in or removed from `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|f| f.sync_all()).map_err(|e| Error::file("sync", dir, &e))
}
