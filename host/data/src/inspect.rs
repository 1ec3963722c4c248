//! What is in a file, for people: `slackline data inspect`.

use crate::builder::Builder;
use crate::chunk::{ChunkStore, schema};
use crate::error::DataError;
use crate::intake::{Intake, Part};
use crate::read;
use crate::read::input::{Compression, Meter};
use crate::spec::{Format, Source};
use crate::survey::{SHOWN_ROWS, Survey};
use serde::{Deserialize, Serialize};
use slackline_core::values::DType;
use std::path::Path;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// How it was read.
    pub format: Format,
    /// How it is compressed as a whole.
    pub compression: Compression,
    /// Bytes on disk.
    pub bytes: u64,
    /// Sound rows.
    pub rows: u64,
    /// Malformed rows.
    pub bad_rows: u64,
    /// What is wrong with the first few of them.
    pub bad_examples: Vec<String>,
    /// Its columns, in its order.
    pub columns: Vec<ColumnInspection>,
    /// The first rows: for each, a text a column.
    pub first_rows: Vec<Vec<String>>,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnInspection {
    /// Its name.
    pub name: String,
    /// `integer`, `real`, `text`, or `empty`.
    pub kind: String,
    /// Whether a row holds a list.
    pub list: bool,
    /// Values in all rows together.
    pub values: u64,
    /// For lists: rows whose list is empty.
    pub empty: u64,
    /// For lists: the longest.
    pub longest: u64,
    /// Least number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
    /// Distinct values, if there are not too many to count.
    pub distinct: Option<u64>,
}

/// Reads a file through, whatever is in it. Malformed rows are counted, not fatal.
pub fn inspect(path: &Path, format: Option<Format>) -> Result<Inspection, DataError> {
    let source = Source { format, ..Source::new(path) };
    let meter = Meter::default();
    let (reader, format, compression) = read::open(&source, &meter)?;
    let natives = reader.natives().to_vec();
    let builders = natives.iter().map(|n| Builder::survey(n.list)).collect();
    let nothing = schema(natives.iter().map(|n| (n.name.as_str(), DType::U8, n.list)));
    let store = ChunkStore::new("", nothing, u64::MAX, None);
    let part = Part::new(&path.display().to_string(), builders, store, MEMORY);
    let feeds: Vec<Vec<usize>> = (0..natives.len()).map(|n| vec![n]).collect();
    let mut ignore = |_| {};
    let mut intake = Intake::new(path, vec![part], None, u64::MAX, MEMORY, meter, &mut ignore);
    reader.read(&feeds, &mut intake)?;
    let (parts, skipped) = intake.finish()?;
    let rows = parts.iter().map(|p| p.rows).sum();
    let surveys: Vec<Survey> = parts.into_iter().flat_map(|p| p.columns).filter_map(Builder::into_survey).collect();
    let shown = surveys.first().map_or(0, |s| s.first.len().min(SHOWN_ROWS));
    let first_rows = (0..shown).map(|r| surveys.iter().map(|s| s.first[r].clone()).collect()).collect();
    let columns = natives.iter().zip(&surveys).map(|(n, s)| column(&n.name, n.list, s)).collect();
    let bytes = path.metadata().map_err(DataError::io(path))?.len();
    let (bad_rows, bad_examples) = (skipped.rows, skipped.examples);
    Ok(Inspection { format, compression, bytes, rows, bad_rows, bad_examples, columns, first_rows })
}

/// What a format that cannot be streamed may hold meanwhile.
const MEMORY: u64 = 4 << 30;

fn column(name: &str, list: bool, s: &Survey) -> ColumnInspection {
    let numbers = s.values - s.texts;
    let some = |v: f64| (numbers > 0).then_some(v);
    let kind = match (s.values, s.texts, s.reals) {
        (0, ..) => "empty",
        (_, 1.., _) => "text",
        (_, _, 1..) => "real",
        _ => "integer",
    };
    ColumnInspection {
        name: name.into(),
        kind: kind.into(),
        list,
        values: s.values,
        empty: if list { s.empty } else { 0 },
        longest: if list { s.longest as u64 } else { 0 },
        min: some(s.min),
        max: some(s.max),
        mean: some(s.sum / numbers.max(1) as f64),
        distinct: s.distinct(),
    }
}
