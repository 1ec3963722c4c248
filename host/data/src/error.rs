//! What can be wrong with data, for the person who owns the file: which file, where in it, what was expected and what
//! was found.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where in a file. Shown as `bad.libsvm:2: column 3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it.
    pub file: PathBuf,
    /// Its line, from 1; for binary formats there is none.
    pub line: Option<u64>,
    /// Its row, from 1, where lines mean nothing.
    pub row: Option<u64>,
    /// The field within the line, from 1.
    pub column: Option<u64>,
    /// The column's name, where it has one.
    pub name: Option<String>,
}

impl Place {
    /// The file as a whole.
    pub fn file(path: &Path) -> Self {
        Self { file: path.to_owned(), ..Self::default() }
    }

    /// A line of it.
    pub fn line(path: &Path, line: u64) -> Self {
        Self { line: Some(line), ..Self::file(path) }
    }

    /// A row of it.
    pub fn row(path: &Path, row: u64) -> Self {
        Self { row: Some(row), ..Self::file(path) }
    }

    /// The same line or row, at a field.
    pub fn column(mut self, column: u64) -> Self {
        self.column = Some(column);
        self
    }

    /// The same place, in a named column.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(row) = self.row {
            write!(f, ": row {row}")?;
        }
        match (self.column, &self.name) {
            (Some(c), Some(n)) => write!(f, ": column {c} ({n})"),
            (Some(c), None) => write!(f, ": column {c}"),
            (None, Some(n)) => write!(f, ": column {n:?}"),
            (None, None) => Ok(()),
        }
    }
}

/// Why a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A row, or the frame of the file, is not what its format says.
    #[error("{place}: expected {expected}, found {found}")]
    Malformed {
        /// Where. Boxed, so that the error stays small on the way of good rows.
        place: Box<Place>,
        /// What the format asks for there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// More malformed rows than the job allows.
    #[error("{last} (after {allowed} malformed rows that skip_bad_rows allows in dataset {dataset:?})")]
    TooManyBadRows {
        /// Which dataset.
        dataset: String,
        /// How many were allowed.
        allowed: u64,
        /// The one too many.
        last: Box<DataError>,
    },
    /// The file's name does not say what it is.
    #[error("{}: cannot tell the format from the file's ending; say which (`format` in a job file, --format on the command line): one of {}", path.display(), crate::Format::NAMES.join(", "))]
    UnknownFormat {
        /// Which file.
        path: PathBuf,
    },
    /// A column that the job needs is not in the file.
    #[error("{}: no column {wanted:?}{}; the file has {}", path.display(), did_you_mean(nearest), list(available))]
    MissingColumn {
        /// Which file.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
        /// What it may have meant.
        nearest: Option<String>,
        /// What there is.
        available: Vec<String>,
    },
    /// A column is there but holds something else.
    #[error("{}: column {column:?} holds {found}, but {expected} is wanted", path.display())]
    WrongType {
        /// Which file.
        path: PathBuf,
        /// Which column.
        column: String,
        /// What is wanted.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// A dataset without rows.
    #[error("dataset {dataset:?} ({}) has no rows", path.display())]
    Empty {
        /// Which dataset.
        dataset: String,
        /// Where it came from.
        path: PathBuf,
    },
    /// A worker would have nothing to do.
    #[error(
        "dataset {dataset:?}: {workers} workers for {rows} rows leave worker {worker} without a row; use fewer workers"
    )]
    IdleWorker {
        /// Which dataset.
        dataset: String,
        /// How many workers.
        workers: u32,
        /// How many rows.
        rows: u64,
        /// The first idle one.
        worker: u32,
    },
    /// No dataset has this name.
    #[error("no dataset {dataset:?}; the job has {}", list(available))]
    NoDataset {
        /// What was asked for.
        dataset: String,
        /// What there is.
        available: Vec<String>,
    },
    /// A dataset does not fit in memory and may not go to disk.
    #[error("dataset {dataset:?} needs more than {limit} bytes of memory: {advice}")]
    Memory {
        /// Which dataset.
        dataset: String,
        /// What was allowed.
        limit: u64,
        /// What to do.
        advice: String,
    },
    /// The request itself makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl DataError {
    /// Something at `place` is not what its format says.
    pub(crate) fn malformed(place: Place, expected: impl Into<String>, found: impl Into<String>) -> Self {
        DataError::Malformed { place: Box::new(place), expected: expected.into(), found: found.into() }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| DataError::Io { path, source }
    }
}

/// Text from a file as an error shows it: quoted, cut when long, bytes that are not UTF-8 replaced.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = &text[..text.len().min(MOST)];
    let tail = if text.len() > MOST { "…" } else { "" };
    format!("{:?}{tail}", String::from_utf8_lossy(cut))
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |n| format!(", did you mean {n:?}?"))
}

fn list(names: &[String]) -> String {
    const MOST: usize = 30;
    if names.is_empty() {
        return "none".into();
    }
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", names[..names.len().min(MOST)].join(", "))
}
