//! This crate's error: a class for the code that decides, a whole sentence for the person who reads.

use std::path::Path;

/// Short for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The folder, cut, blob or document is not there.
    Missing,
    /// The folder holds something else.
    NotAState,
    /// Written by a newer release.
    NewerVersion,
    /// Written by an older release whose layout this one does not read.
    OlderVersion,
    /// Another process, or another handle of this one, holds the folder for writing.
    Locked,
    /// The folder may not be written.
    Unwritable,
    /// What was read back is not what was written.
    Damaged,
    /// The disk is full.
    NoSpace,
    /// Any other failure of files or of RocksDB.
    Io,
    /// The call does not make sense: wrong type, rows beyond the table, writing a read-only state, an incomplete cut.
    Invalid,
}

/// A failure: what, where, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// `doing` is what failed, such as "write the format file of".
    pub(crate) fn file(doing: &str, path: &Path, e: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let (kind, advice) = match e.kind() {
            K::PermissionDenied | K::ReadOnlyFilesystem => {
                (ErrorKind::Unwritable, "; change its permissions or choose another folder")
            }
            K::StorageFull | K::QuotaExceeded => (ErrorKind::NoSpace, FREE_SPACE),
            K::NotADirectory | K::AlreadyExists => (ErrorKind::NotAState, "; choose another folder"),
            K::NotFound => (ErrorKind::Missing, ""),
            _ => (ErrorKind::Io, ""),
        };
        Self::new(kind, format!("cannot {doing} {}: {e}{advice}", path.display()))
    }

    /// A failure that RocksDB reports; its C interface gives the class of an I/O error only as text.
    pub(crate) fn rocks(doing: &str, path: &Path, e: &rocksdb::Error) -> Self {
        let text: &str = e.as_ref();
        let (kind, advice) = if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
            (ErrorKind::NoSpace, FREE_SPACE)
        } else if text.contains("Permission denied") || text.contains("Read-only file system") {
            (ErrorKind::Unwritable, "; change its permissions or choose another folder")
        } else if e.kind() == rocksdb::ErrorKind::Corruption {
            (ErrorKind::Damaged, "")
        } else if text.contains("While lock file") || text.contains("lock hold by current process") {
            (ErrorKind::Locked, "; stop the run that uses it or choose another folder")
        } else {
            (ErrorKind::Io, "")
        };
        Self::new(kind, format!("cannot {doing} {}: {text}{advice}", path.display()))
    }

    /// The class.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Puts `what` before the message.
    pub(crate) fn within(self, what: impl std::fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{what}: {}", self.message) }
    }
}

const FREE_SPACE: &str = "; free some space, the complete cuts are still good";
