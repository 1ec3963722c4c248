//! Synthetic sets with a known truth: what made the data is written beside it, with the score that nothing can beat on
//! average, so that a run can be judged. The same options give the same bytes on every machine with the same maths
//! library; the random numbers themselves depend on the seed alone.

mod classes;
mod draw;
mod ratings;
mod regression;
mod topics;

pub use classes::Classes;
pub use ratings::Ratings;
pub use regression::Regression;
pub use topics::Topics;

use crate::error::DataError;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct Generated {
    /// The files, data first.
    pub files: Vec<PathBuf>,
    /// What `truth.json` holds: the options, the counts, the score of the truth.
    pub truth: Value,
}

/// A folder that is being filled.
struct Folder {
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Folder {
    fn create(path: &Path) -> Result<Self, DataError> {
        std::fs::create_dir_all(path).map_err(DataError::io(path))?;
        Ok(Self { path: path.into(), files: Vec::new() })
    }

    fn file(&mut self, name: &str) -> Result<Out, DataError> {
        let path = self.path.join(name);
        let file = File::create(&path).map_err(DataError::io(&path))?;
        self.files.push(path.clone());
        Ok(Out { to: BufWriter::with_capacity(1 << 18, file), path })
    }

    /// A matrix of f32 as `.npy`.
    fn matrix(&mut self, name: &str, width: usize, values: &[f64]) -> Result<(), DataError> {
        let mut out = self.file(name)?;
        let rows = values.len() / width.max(1);
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}").into_bytes();
        // The whole head is a multiple of 64 bytes and ends in a line end.
        header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
        header.push(b'\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header);
        out.write(&bytes)?;
        for v in values {
            out.write(&(*v as f32).to_le_bytes())?;
        }
        out.close()
    }

    fn finish(mut self, truth: Value) -> Result<Generated, DataError> {
        let mut out = self.file("truth.json")?;
        out.write(format!("{truth:#}\n").as_bytes())?;
        out.close()?;
        Ok(Generated { files: self.files, truth })
    }
}

/// A file that is being written, with its name for errors.
struct Out {
    to: BufWriter<File>,
    path: PathBuf,
}

impl Out {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.to.write_all(bytes).map_err(DataError::io(&self.path))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), DataError> {
        self.to.write_fmt(line).and_then(|()| self.to.write_all(b"\n")).map_err(DataError::io(&self.path))
    }

    fn close(mut self) -> Result<(), DataError> {
        self.to.flush().map_err(DataError::io(&self.path))
    }
}

/// The training file and, where rows are held back, the test file.
struct Parts {
    train: Out,
    test: Option<Out>,
    every: u64,
}

impl Parts {
    fn create(folder: &mut Folder, every: u64, ending: &str) -> Result<Self, DataError> {
        let train = folder.file(&format!("train.{ending}"))?;
        let test = if every == 0 { None } else { Some(folder.file(&format!("test.{ending}"))?) };
        Ok(Self { train, test, every })
    }

    /// The file of row `row`, and whether it is a test row.
    fn of(&mut self, row: u64) -> (&mut Out, bool) {
        match &mut self.test {
            Some(test) if held_back(row, self.every) => (test, true),
            _ => (&mut self.train, false),
        }
    }

    fn close(self) -> Result<(), DataError> {
        self.train.close()?;
        self.test.map_or(Ok(()), Out::close)
    }
}

/// Whether row `row` is a test row: the last of every `every` rows; never when that is 0.
fn held_back(row: u64, every: u64) -> bool {
    every > 0 && row % every == every - 1
}

/// Refuses options that make no set.
fn require(what: &[(bool, &str)]) -> Result<(), DataError> {
    match what.iter().find(|(holds, _)| !holds) {
        Some((_, rule)) => Err(DataError::Invalid(format!("generate: {rule}"))),
        None => Ok(()),
    }
}
