//! Tables and predictions as files that other tools read: Parquet, Arrow IPC, NumPy, CSV, safetensors.
//!
//! Everything streams in chunks of rows and appears in its place only when it is whole.

mod columnar;
mod csv;
mod npy;
mod safetensors;
#[cfg(test)]
mod tests;

use crate::atomic::AtomicFile;
use crate::failure::{Exit, Failure};
use slackline_core::ports::SparseRows;
use slackline_core::{DType, Layout, TableSpec, Values};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What a file will be, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, zstd-compressed.
    Parquet,
    /// NumPy array, rows × columns.
    Npy,
    /// Comma-separated values with a header.
    Csv,
    /// Arrow IPC file.
    Arrow,
    /// safetensors with one tensor.
    Safetensors,
}

impl Format {
    const ALL: [(&'static str, Format); 5] = [
        ("parquet", Format::Parquet),
        ("npy", Format::Npy),
        ("csv", Format::Csv),
        ("arrow", Format::Arrow),
        ("safetensors", Format::Safetensors),
    ];

    /// By the ending of `path`.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let known = Self::ALL.iter().find(|(name, _)| *name == ending);
        known.map(|(_, format)| *format).ok_or_else(|| Error::UnknownEnding { path: path.to_owned() })
    }
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ending says nothing.
    #[error("{}: cannot tell the format from the file's ending; use .parquet, .npy, .csv, .arrow or .safetensors", path.display())]
    UnknownEnding {
        /// Where it should have gone.
        path: PathBuf,
    },
    /// The format cannot hold this.
    #[error("{}: {why}; use .parquet, .arrow or .csv", path.display())]
    Unfit {
        /// Where it should have gone.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// The file system said no.
    #[error("{}: cannot be written: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// What was to be written does not agree with its description.
    #[error("{}: {why}", path.display())]
    Mismatch {
        /// Where it should have gone.
        path: PathBuf,
        /// What disagrees.
        why: String,
    },
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let exit = match e {
            Error::UnknownEnding { .. } | Error::Unfit { .. } => Exit::Usage,
            Error::Io { .. } | Error::Mismatch { .. } => Exit::Data,
        };
        Failure::new(exit, e.to_string())
    }
}

/// Some rows of a table or of predictions.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// The same number of values a row, row by row.
    Dense(Values),
    /// Sparse rows.
    Sparse(SparseRows),
}

/// One named part of every row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    name: String,
    dtype: DType,
    layout: Layout,
    /// Values in a row, or columns that a sparse row may have; a width of 1 is a plain column.
    width: usize,
}

/// What every format can do: take chunks of whole rows in order, then end the file.
trait RowsWriter {
    /// Rows `first..first + rows`, a [`Cells`] a field, already checked against the fields.
    fn write(&mut self, first: u64, rows: usize, cells: &[Cells]) -> io::Result<()>;
    /// Ends a file of `rows` rows.
    fn finish(self: Box<Self>, rows: u64) -> io::Result<AtomicFile>;
}

/// A file in the making.
pub struct Export {
    path: PathBuf,
    fields: Vec<Field>,
    writer: Box<dyn RowsWriter>,
    rows: u64,
    expected: Option<u64>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Export {
    /// Begins the export of a table. Sparse tables become dense in `.npy` and `.safetensors`, which know nothing else.
    pub fn table(path: &Path, spec: &TableSpec) -> Result<Self, Error> {
        let field =
            Field { name: spec.name.clone(), dtype: spec.dtype, layout: spec.layout, width: spec.width as usize };
        Self::begin(path, vec![field], true, Some(spec.rows))
    }

    /// Begins a file of predictions: columns with their type and the number of values a row.
    pub fn predictions(path: &Path, columns: &[(String, DType, usize)]) -> Result<Self, Error> {
        let field = |(name, dtype, width): &(String, DType, usize)| Field {
            name: name.clone(),
            dtype: *dtype,
            layout: Layout::Dense,
            width: *width,
        };
        Self::begin(path, columns.iter().map(field).collect(), false, None)
    }

    fn begin(path: &Path, fields: Vec<Field>, numbered: bool, expected: Option<u64>) -> Result<Self, Error> {
        let format = Format::of(path)?;
        let unfit = |why: &str| Error::Unfit { path: path.to_owned(), why: why.to_owned() };
        let dtype = fields.first().map(|f| f.dtype);
        match format {
            Format::Npy if fields.iter().any(|f| Some(f.dtype) != dtype) => {
                return Err(unfit("an .npy file holds values of one type, and these columns differ"));
            }
            Format::Safetensors if fields.len() != 1 || expected.is_none() => {
                return Err(unfit("a .safetensors file is written for a table, not for predictions"));
            }
            _ if fields.is_empty() || fields.iter().any(|f| f.width == 0) => {
                return Err(Error::Mismatch { path: path.to_owned(), why: "there are no columns to write".into() });
            }
            _ => {}
        }
        let io = |source| Error::Io { path: path.to_owned(), source };
        let out = AtomicFile::create(path).map_err(io)?;
        let writer: io::Result<Box<dyn RowsWriter>> = match format {
            Format::Parquet => columnar::Parquet::begin(out, &fields, numbered).map(boxed),
            Format::Arrow => columnar::Arrow::begin(out, &fields, numbered).map(boxed),
            Format::Csv => csv::Csv::begin(out, &fields, numbered).map(boxed),
            Format::Npy => npy::Npy::begin(out, &fields).map(boxed),
            Format::Safetensors => safetensors::Safetensors::begin(out, &fields[0], expected.unwrap_or(0)).map(boxed),
        };
        Ok(Self { path: path.to_owned(), writer: writer.map_err(io)?, fields, rows: 0, expected })
    }

    /// Adds the next `rows` rows, a [`Cells`] a column in the order in which columns were named.
    pub fn write(&mut self, rows: usize, cells: &[Cells]) -> Result<(), Error> {
        self.check(rows, cells).map_err(|why| Error::Mismatch { path: self.path.clone(), why })?;
        let io = |source| Error::Io { path: self.path.clone(), source };
        self.writer.write(self.rows, rows, cells).map_err(io)?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Ends the file and puts it in its place; answers the number of rows.
    pub fn finish(self) -> Result<u64, Error> {
        if let Some(expected) = self.expected.filter(|n| *n != self.rows) {
            let why = format!("the table has {expected} rows, {} came", self.rows);
            return Err(Error::Mismatch { path: self.path, why });
        }
        let io = |source| Error::Io { path: self.path.clone(), source };
        self.writer.finish(self.rows).and_then(AtomicFile::commit).map_err(io)?;
        Ok(self.rows)
    }

    fn check(&self, rows: usize, cells: &[Cells]) -> Result<(), String> {
        if cells.len() != self.fields.len() {
            return Err(format!("{} columns are named, {} came", self.fields.len(), cells.len()));
        }
        for (field, cells) in self.fields.iter().zip(cells) {
            let name = &field.name;
            let (dtype, layout) = match cells {
                Cells::Dense(values) => (values.dtype(), Layout::Dense),
                Cells::Sparse(rows) => (rows.values.dtype(), Layout::Sparse),
            };
            if (dtype, layout) != (field.dtype, field.layout) {
                return Err(format!("{name:?} is {:?} {}, but {layout:?} {dtype} came", field.layout, field.dtype));
            }
            match cells {
                Cells::Dense(values) if rows.checked_mul(field.width) != Some(values.len()) => {
                    let want = format!("{rows} rows of {} values", field.width);
                    return Err(format!("{name:?} has {want}, but {} values came", values.len()));
                }
                Cells::Sparse(sparse) if !is_sound(sparse, rows, field.width) => {
                    return Err(format!("{name:?}: sparse rows whose offsets or columns are not in order"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn boxed<'a>(writer: impl RowsWriter + 'a) -> Box<dyn RowsWriter + 'a> {
    Box::new(writer)
}

fn is_sound(s: &SparseRows, rows: usize, width: usize) -> bool {
    s.offsets.len() == rows + 1
        && s.offsets[0] == 0
        && s.offsets.is_sorted()
        && s.offsets[rows] as usize == s.columns.len()
        && s.columns.len() == s.values.len()
        && s.columns.iter().all(|c| (*c as usize) < width)
}

/// The rows as `rows × width` values, zeros where a sparse row holds nothing.
fn dense(cells: &Cells, rows: usize, width: usize) -> std::borrow::Cow<'_, Values> {
    match cells {
        Cells::Dense(values) => std::borrow::Cow::Borrowed(values),
        Cells::Sparse(sparse) => {
            let mut out = Values::zeros(sparse.values.dtype(), rows * width);
            for row in 0..rows {
                for at in sparse.offsets[row] as usize..sparse.offsets[row + 1] as usize {
                    put(&mut out, row * width + sparse.columns[at] as usize, &sparse.values, at);
                }
            }
            std::borrow::Cow::Owned(out)
        }
    }
}

fn put(to: &mut Values, at: usize, from: &Values, place: usize) {
    match (to, from) {
        (Values::F32(to), Values::F32(from)) => to[at] = from[place],
        (Values::F64(to), Values::F64(from)) => to[at] = from[place],
        (Values::I32(to), Values::I32(from)) => to[at] = from[place],
        (Values::I64(to), Values::I64(from)) => to[at] = from[place],
        (Values::U32(to), Values::U32(from)) => to[at] = from[place],
        (Values::U64(to), Values::U64(from)) => to[at] = from[place],
        (Values::U8(to), Values::U8(from)) => to[at] = from[place],
        // `dense` makes `to` of the type of `from`.
        _ => {}
    }
}
