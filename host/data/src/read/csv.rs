//! CSV. Fields are read as the wanted columns ask; nothing is guessed from the first rows but whether they are a header.

use super::input::Input;
use super::{Native, Reader};
use crate::error::{DataError, Place};
use crate::intake::{Fault, Intake};
use crate::number::{Misfit, parse_f64};
use crate::spec::Source;
use ::csv::{ByteRecord, ReaderBuilder};
use std::path::PathBuf;

pub(crate) struct Csv {
    path: PathBuf,
    reader: ::csv::Reader<Input>,
    natives: Vec<Native>,
    /// The first line, when it is data.
    first: Option<ByteRecord>,
}

impl Csv {
    pub(crate) fn open(source: &Source, input: Input) -> Result<Self, DataError> {
        let path = source.path.clone();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let tabs = name.contains(".tsv");
        let delimiter = source.delimiter.unwrap_or(if tabs { b'\t' } else { b',' });
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .buffer_capacity(256 << 10)
            .from_reader(input);
        let mut first = ByteRecord::new();
        if !reader.read_byte_record(&mut first).map_err(|e| broken(&path, e))? {
            return Ok(Self { path, reader, natives: Vec::new(), first: None });
        }
        let is_header = source.header.unwrap_or_else(|| first.iter().any(|f| parse_f64(f.trim_ascii()).is_err()));
        let natives = match is_header {
            true => first.iter().map(|f| Native::flat(String::from_utf8_lossy(f).trim())).collect(),
            false => (0..first.len()).map(|i| Native::flat(&format!("c{i}"))).collect(),
        };
        Ok(Self { path, reader, natives, first: (!is_header).then_some(first) })
    }
}

fn broken(path: &std::path::Path, e: ::csv::Error) -> DataError {
    match e.into_kind() {
        ::csv::ErrorKind::Io(source) => DataError::Io { path: path.into(), source },
        other => DataError::malformed(Place::file(path), "comma-separated values", format!("{other:?}")),
    }
}

impl Reader for Csv {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(mut self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let mut record = self.first.take().unwrap_or_default();
        let mut have = !record.is_empty();
        loop {
            if !have && !self.reader.read_byte_record(&mut record).map_err(|e| broken(&self.path, e))? {
                return Ok(());
            }
            have = false;
            match self.row(&record, bound, intake) {
                Ok(()) => intake.commit()?,
                Err(fault) => {
                    let line = record.position().map_or(0, ::csv::Position::line);
                    intake.reject(fault.at(Place::line(&self.path, line)))?;
                }
            }
        }
    }
}

impl Csv {
    #[inline]
    fn row(&self, record: &ByteRecord, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), Fault> {
        if record.len() != self.natives.len() {
            return Err(Fault::new(0, format!("{} fields", self.natives.len()), record.len().to_string()));
        }
        let columns = intake.columns();
        for (builder, from) in columns.iter_mut().zip(bound) {
            for n in from {
                let text = record.get(*n).unwrap_or_default().trim_ascii();
                builder.push_text(text).map_err(|why| {
                    let mut fault = Fault::misfit(*n as u64 + 1, builder, why, text);
                    if why == Misfit::Missing {
                        fault.found = "an empty field".into();
                    }
                    fault.name = Some(self.natives[*n].name.clone());
                    fault
                })?;
            }
        }
        Ok(())
    }
}
