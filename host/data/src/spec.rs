//! What a job says of its data, after the job file has been read: which files, how rows are shared out, what is held
//! back for testing.

use crate::error::DataError;
use serde::{Deserialize, Serialize};
use slackline_core::random::{mix, unit};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How a file is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Comma-separated values (tabs for `.tsv`); columns by the header's names, or `c0`, `c1`, … without a header.
    Csv,
    /// `label index:value …`; columns `label`, `index` (from 0), `value`.
    Libsvm,
    /// UCI bag of words: columns `word` (from 0), `count`; a row is a document.
    UciBow,
    /// LDA-C: columns `word`, `count`; a row is a document.
    Ldac,
    /// NumPy array: column `x`.
    Npy,
    /// Parquet; columns by name.
    Parquet,
    /// Arrow IPC, file or stream; columns by name.
    Arrow,
    /// Matrix Market: coordinate gives `index`, `value`; array gives `x`.
    Mtx,
}

impl Format {
    /// The names that a job file uses.
    pub const NAMES: [&'static str; 8] = ["csv", "libsvm", "uci-bow", "ldac", "npy", "parquet", "arrow", "mtx"];
    const ALL: [Format; 8] = [
        Format::Csv,
        Format::Libsvm,
        Format::UciBow,
        Format::Ldac,
        Format::Npy,
        Format::Parquet,
        Format::Arrow,
        Format::Mtx,
    ];

    /// From the file's ending, looking behind `.gz` and `.zst`.
    pub fn of_path(path: &Path) -> Result<Self, DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        let stem_and_ending = name.rsplit_once('.');
        Ok(match stem_and_ending.map(|(_, ending)| ending) {
            Some("csv" | "tsv") => Format::Csv,
            Some("libsvm" | "svm" | "svmlight") => Format::Libsvm,
            Some("ldac" | "lda-c") => Format::Ldac,
            Some("npy") => Format::Npy,
            Some("parquet" | "pq") => Format::Parquet,
            Some("arrow" | "arrows" | "feather" | "ipc") => Format::Arrow,
            Some("mtx" | "mmt" | "mm") => Format::Mtx,
            Some("txt") if name.starts_with("docword.") => Format::UciBow,
            _ => return Err(DataError::UnknownFormat { path: path.to_owned() }),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Format::NAMES[*self as usize])
    }
}

impl FromStr for Format {
    type Err = DataError;

    fn from_str(s: &str) -> Result<Self, DataError> {
        let place = Format::NAMES.iter().position(|n| *n == s);
        place
            .map(|i| Format::ALL[i])
            .ok_or_else(|| DataError::Invalid(format!("unknown format {s:?}; use one of {}", Format::NAMES.join(", "))))
    }
}

/// Where a wanted column comes from, when its name in the file differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnMap {
    /// One column; a name that ends in `*` stands for every column that begins so, in the file's order, as one list.
    One(String),
    /// Several columns, in this order, as one list; each may be such a pattern.
    Many(Vec<String>),
}

/// One dataset's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// Its format; by its ending when not given.
    pub format: Option<Format>,
    /// The words of a bag-of-words file, one a line.
    pub vocab: Option<PathBuf>,
    /// Wanted column → column of the file.
    pub columns: BTreeMap<String, ColumnMap>,
    /// For CSV: whether the first line names the columns. When not given, it does if any of its fields is no number.
    pub header: Option<bool>,
    /// For CSV: what stands between fields; a comma when not given, a tab for `.tsv`.
    pub delimiter: Option<u8>,
}

impl Source {
    /// A file that says itself what it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// The format, given or by the file's ending.
    pub fn format(&self) -> Result<Format, DataError> {
        self.format.map_or_else(|| Format::of_path(&self.path), Ok)
    }
}

/// All of a job's data.
#[derive(Clone, Debug)]
pub struct DataSpec {
    /// Datasets by name; `train` is the one that dictionaries come from.
    pub datasets: BTreeMap<String, Source>,
    /// Rows in a batch.
    pub batch: usize,
    /// How rows are shared out among workers.
    pub partition: Partitioning,
    /// Whether each epoch has an order of its own.
    pub shuffle: bool,
    /// How many malformed rows of each dataset are skipped and counted before one is an error.
    pub skip_bad_rows: u64,
    /// Bytes that each dataset may take in memory; beyond, it goes to disk.
    pub memory_bytes: u64,
    /// What of `train` becomes `test`.
    pub split: Option<Split>,
}

impl Default for DataSpec {
    fn default() -> Self {
        Self {
            datasets: BTreeMap::new(),
            batch: 64,
            partition: Partitioning::Rows,
            shuffle: true,
            skip_bad_rows: 0,
            memory_bytes: 2 << 30,
            split: None,
        }
    }
}

/// How rows are shared out among workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// Contiguous runs of equal length.
    #[default]
    Rows,
    /// Row `i` goes to worker `i mod workers`.
    RoundRobin,
    /// Rows with an equal value in this column go to one worker, in every dataset and also at `predict`.
    Hash(String),
}

impl fmt::Display for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Partitioning::Rows => f.write_str("rows"),
            Partitioning::RoundRobin => f.write_str("round-robin"),
            Partitioning::Hash(column) => write!(f, "hash:{column}"),
        }
    }
}

impl FromStr for Partitioning {
    type Err = DataError;

    fn from_str(s: &str) -> Result<Self, DataError> {
        match (s, s.strip_prefix("hash:")) {
            ("rows", _) => Ok(Partitioning::Rows),
            ("round-robin", _) => Ok(Partitioning::RoundRobin),
            (_, Some(column)) if !column.is_empty() => Ok(Partitioning::Hash(column.to_owned())),
            _ => Err(DataError::Invalid(format!("unknown partition {s:?}; use rows, round-robin or hash:COLUMN"))),
        }
    }
}

/// Which rows of `train` become `test`, by a rule that looks at a row's place alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// Row `i` (from 0) is a test row when `i mod every` is `at`. Written `every:EVERY:AT`.
    Every {
        /// The period.
        every: u64,
        /// The place in it.
        at: u64,
    },
    /// Each row is a test row with this probability. Written `fraction:P` or `fraction:P:SEED`.
    Fraction {
        /// The probability.
        of: f64,
        /// The seed; the same rows are held back whatever the job's seed.
        seed: u64,
    },
}

impl Split {
    /// Whether row `row` is held back.
    pub fn is_test(&self, row: u64) -> bool {
        match *self {
            Split::Every { every, at } => row % every == at,
            Split::Fraction { of, seed } => unit(mix(mix(seed) ^ row)) < of,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Split::Every { every, at } => write!(f, "every:{every}:{at}"),
            Split::Fraction { of, seed } => write!(f, "fraction:{of}:{seed}"),
        }
    }
}

impl FromStr for Split {
    type Err = DataError;

    fn from_str(s: &str) -> Result<Self, DataError> {
        let mut parts = s.split(':');
        let parsed = match parts.next() {
            Some("every") => parts.next().and_then(|n| n.parse().ok()).and_then(|every: u64| {
                let at = parts.next().map_or(Some(every.wrapping_sub(1)), |n| n.parse().ok())?;
                (at < every).then_some(Split::Every { every, at })
            }),
            Some("fraction") => parts.next().and_then(|p| p.parse().ok()).and_then(|of: f64| {
                let seed = parts.next().map_or(Some(0), |n| n.parse().ok())?;
                (of > 0.0 && of < 1.0).then_some(Split::Fraction { of, seed })
            }),
            _ => None,
        };
        parsed.filter(|_| parts.next().is_none()).ok_or_else(|| {
            DataError::Invalid(format!(
                "unknown split {s:?}; use every:N:R (row index mod N is R) or fraction:P[:SEED] with 0 < P < 1"
            ))
        })
    }
}

macro_rules! serde_as_text {
    ($($ty:ty),*) => {$(
        impl Serialize for $ty {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $ty {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(Partitioning, Split);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_ending_also_behind_compression() {
        let of = |p: &str| Format::of_path(Path::new(p)).ok();
        assert_eq!(of("a/b.csv"), Some(Format::Csv));
        assert_eq!(of("docword.train.txt.gz"), Some(Format::UciBow));
        assert_eq!(of("x.LIBSVM.zst"), Some(Format::Libsvm));
        assert_eq!(of("notes.txt"), None);
        let e = Format::of_path(Path::new("notes")).unwrap_err().to_string();
        assert!(Format::NAMES.iter().all(|n| e.contains(n)), "{e}");
        for name in Format::NAMES {
            assert_eq!(name.parse::<Format>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        for s in ["rows", "round-robin", "hash:user"] {
            assert_eq!(s.parse::<Partitioning>().unwrap().to_string(), s);
        }
        for s in ["every:5:4", "fraction:0.25:7"] {
            assert_eq!(s.parse::<Split>().unwrap().to_string(), s);
        }
        assert_eq!("every:5".parse::<Split>().unwrap(), Split::Every { every: 5, at: 4 });
        for s in ["every:0", "every:5:5", "every:5:4:1", "fraction:1", "fraction:nan", "half", "every"] {
            assert!(s.parse::<Split>().is_err(), "{s}");
        }
        for s in ["", "hash:", "hash", "row"] {
            assert!(s.parse::<Partitioning>().is_err(), "{s}");
        }
    }
}
