//! Matrix Market. Coordinate files give `index` and `value` lists a row; array files give `x`.
//!
//! Entries may come in any order, so they are gathered and sorted. A file whose entries come row by row may be larger
//! than the memory it is given: its rows then go on as they end.

use super::input::{Input, Lines, field};
use super::{Native, Reader, fed_by};
use crate::error::{DataError, Place, shown};
use crate::intake::{Fault, Intake, too_many_empty_rows};
use crate::number::{parse_f64, parse_u64};
use std::path::{Path, PathBuf};

pub(crate) struct Mtx {
    path: PathBuf,
    lines: Lines,
    natives: Vec<Native>,
    coordinate: bool,
    symmetric: bool,
    shape: Shape,
    entries: u64,
}

/// What the head of the file says of its entries. Sizes are below 2³².
#[derive(Clone, Copy)]
struct Shape {
    field: Field,
    rows: u64,
    width: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy)]
struct Entry {
    row: u32,
    column: u32,
    value: f64,
}

impl Mtx {
    pub(crate) fn open(path: &Path, input: Input) -> Result<Self, DataError> {
        let mut lines = Lines::new(path, input);
        let banner = lines.next()?.map(|(_, l)| String::from_utf8_lossy(l).to_ascii_lowercase()).unwrap_or_default();
        let words: Vec<&str> = banner.split_ascii_whitespace().collect();
        let expected = "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric";
        let bad = || DataError::malformed(Place::line(path, 1), expected, shown(banner.as_bytes()));
        let ["%%matrixmarket", "matrix", layout, of, symmetry] = words[..] else { return Err(bad()) };
        let field_type = match of {
            "real" | "double" => Field::Real,
            "integer" => Field::Integer,
            "pattern" if layout == "coordinate" => Field::Pattern,
            _ => return Err(bad()),
        };
        let (coordinate, symmetric) = match (layout, symmetry) {
            ("coordinate", "general") => (true, false),
            ("coordinate", "symmetric") => (true, true),
            ("array", "general") => (false, false),
            ("array", "symmetric") => (false, true),
            _ => return Err(bad()),
        };
        let (number, sizes) = loop {
            match lines.next()? {
                Some((_, line)) if line.starts_with(b"%") || line.trim_ascii().is_empty() => {}
                Some((number, line)) => break (number, line.to_vec()),
                None => return Err(DataError::malformed(Place::file(path), "a line with the sizes", "the end")),
            }
        };
        let mut rest = sizes.as_slice();
        let mut numbers = Vec::new();
        while let Some(text) = field(&mut rest) {
            numbers.push(parse_u64(text));
        }
        let (rows, width, entries) = match numbers[..] {
            [Some(rows), Some(width), Some(entries)] if coordinate => (rows, width, entries),
            [Some(rows), Some(width)] if !coordinate => (rows, width, 0),
            _ => {
                let expected = if coordinate { "rows columns entries" } else { "rows columns" };
                return Err(DataError::malformed(Place::line(path, number), expected, shown(&sizes)));
            }
        };
        if rows.max(width) > u64::from(u32::MAX) || (symmetric && rows != width) {
            let expected = if symmetric { "equal sizes below 2^32" } else { "sizes below 2^32" };
            return Err(DataError::malformed(Place::line(path, number), expected, shown(&sizes)));
        }
        let natives = match coordinate {
            true => vec![Native::list("index"), Native::list("value")],
            false if width == 1 => vec![Native::flat("x")],
            false => vec![Native::list("x")],
        };
        let shape = Shape { field: field_type, rows, width };
        Ok(Self { path: path.into(), lines, natives, coordinate, symmetric, shape, entries })
    }
}

impl Reader for Mtx {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        if self.coordinate { self.coordinate(bound, intake) } else { self.array(bound, intake) }
    }
}

fn too_large(path: &Path, intake: &Intake<'_>, how: &str) -> DataError {
    DataError::Memory { dataset: path.display().to_string(), limit: intake.memory, advice: how.into() }
}

impl Shape {
    fn entry(self, line: &[u8]) -> Result<Entry, Fault> {
        let mut rest = line;
        let mut place = |at: u64, most: u64| {
            let text = field(&mut rest).unwrap_or_default();
            let v = parse_u64(text).filter(|v| (1..=most).contains(v));
            v.map(|v| (v - 1) as u32).ok_or_else(|| Fault::new(at, format!("a place of 1..={most}"), shown(text)))
        };
        let (row, column) = (place(1, self.rows)?, place(2, self.width)?);
        let value = match self.field {
            Field::Pattern => 1.0,
            of => number(of, 3, field(&mut rest).unwrap_or_default())?,
        };
        match field(&mut rest) {
            Some(more) => Err(Fault::new(4, "the end of the line", shown(more))),
            None => Ok(Entry { row, column, value }),
        }
    }
}

impl Mtx {
    fn coordinate(self, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let Mtx { path, mut lines, symmetric, shape, entries: claimed, .. } = self;
        let (index, value) = (fed_by(bound, 0), fed_by(bound, 1));
        let mut out = Rows { index, value, path: path.clone(), next: 0, entries: 0 };
        let mut held: Vec<Entry> = Vec::new();
        let (mut seen, mut ascending) = (0u64, true);
        let most = (intake.memory / size_of::<Entry>() as u64).max(1024) as usize;
        while let Some((number, line)) = lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            seen += 1;
            let entry = match shape.entry(line) {
                Ok(entry) => entry,
                Err(fault) => {
                    intake.skip(fault.at(Place::line(&path, number)))?;
                    continue;
                }
            };
            ascending &= !symmetric && held.last().is_none_or(|l| l.row <= entry.row) && entry.row >= out.next;
            if held.len() >= most {
                if !ascending {
                    let how = "its entries are not in the order of rows; sort them (sort -n), or use libsvm or parquet";
                    return Err(too_large(&path, intake, how));
                }
                let whole = held.partition_point(|e| e.row < entry.row);
                if whole == 0 {
                    return Err(too_large(&path, intake, "a single row has more entries than fit"));
                }
                out.emit(&mut held[..whole], intake)?;
                held.drain(..whole);
            }
            held.push(entry);
            if symmetric && entry.row != entry.column {
                held.push(Entry { row: entry.column, column: entry.row, value: entry.value });
            }
        }
        if seen != claimed {
            let expected = format!("{} entries, as the sizes say", claimed);
            return Err(DataError::malformed(Place::file(&path), expected, seen.to_string()));
        }
        if !ascending {
            held.sort_by_key(|e| e.row);
        }
        out.emit(&mut held, intake)?;
        out.fill(shape.rows as u32, intake)
    }

    /// Array files go column by column, so that the first row is complete only near the end.
    fn array(mut self, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let taps = fed_by(bound, 0);
        let most = (intake.memory / 8).max(1024);
        let mut held: Vec<f64> = Vec::new();
        while let Some((number_of_line, line)) = self.lines.next()? {
            let mut rest = line;
            let mut at = 0;
            while let Some(text) = field(&mut rest) {
                at += 1;
                held.push(
                    number(self.shape.field, at, text).map_err(|f| f.at(Place::line(&self.path, number_of_line)))?,
                );
            }
            if held.len() as u64 > most {
                return Err(too_large(&self.path, intake, "array files are turned in memory; use npy or parquet"));
            }
        }
        let (n, p) = (self.shape.rows, self.shape.width);
        let want = if self.symmetric { n * (n + 1) / 2 } else { n * p };
        if held.len() as u64 != want || (p == 0 && n > 0) {
            let expected = format!("{want} values, as the sizes say");
            return Err(DataError::malformed(Place::file(&self.path), expected, held.len().to_string()));
        }
        // A symmetric file holds the lower triangle: column j begins behind the n + (n−1) + … values before it.
        let below = |i: u64, j: u64| j * n - j * j.saturating_sub(1) / 2 + (i - j);
        for i in 0..n {
            for j in 0..p {
                let at = match self.symmetric {
                    true => below(i.max(j), i.min(j)),
                    false => j * n + i,
                };
                let v = held[at as usize];
                for b in &taps {
                    let builder = &mut intake.columns()[*b];
                    if let Err(e) = builder.push_real(v) {
                        let fault = Fault::misfit(j + 1, builder, e, v.to_string().as_bytes());
                        return Err(fault.at(Place::row(&self.path, i + 1)));
                    }
                }
            }
            intake.commit()?;
        }
        Ok(())
    }
}

fn number(of: Field, at: u64, text: &[u8]) -> Result<f64, Fault> {
    let v = parse_f64(text).ok().filter(|v| of != Field::Integer || v.fract() == 0.0);
    v.ok_or_else(|| Fault::new(at, if of == Field::Integer { "an integer" } else { "a number" }, shown(text)))
}

/// Turns entries in the order of rows into rows.
struct Rows {
    index: Vec<usize>,
    value: Vec<usize>,
    path: PathBuf,
    /// The row that comes next.
    next: u32,
    entries: u64,
}

impl Rows {
    /// Entries of whole rows, ascending by row.
    fn emit(&mut self, entries: &mut [Entry], intake: &mut Intake<'_>) -> Result<(), DataError> {
        for row in entries.chunk_by_mut(|a, b| a.row == b.row) {
            row.sort_unstable_by_key(|e| e.column);
            let at = row[0].row;
            self.entries += row.len() as u64;
            self.fill(at, intake)?;
            let place = || Place::row(&self.path, u64::from(at) + 1);
            let twice = row.windows(2).find(|w| w[0].column == w[1].column);
            let fault = match twice {
                Some(w) => Err(Fault::new(u64::from(w[0].column) + 1, "one value for each place", "two")),
                None => self.push(row, intake),
            };
            match fault {
                Ok(()) => intake.commit()?,
                Err(fault) => intake.reject(fault.at(place()))?,
            }
            self.next = at + 1;
        }
        Ok(())
    }

    fn push(&self, row: &[Entry], intake: &mut Intake<'_>) -> Result<(), Fault> {
        for e in row {
            let at = u64::from(e.column) + 1;
            let columns = intake.columns();
            for b in &self.index {
                let pushed = columns[*b].push_int(e.column.into());
                pushed.map_err(|why| Fault::misfit(at, &columns[*b], why, at.to_string().as_bytes()))?;
            }
            for b in &self.value {
                let pushed = columns[*b].push_real(e.value);
                pushed.map_err(|why| Fault::misfit(at, &columns[*b], why, e.value.to_string().as_bytes()))?;
            }
        }
        Ok(())
    }

    /// Rows without entries, up to `row`.
    fn fill(&mut self, row: u32, intake: &mut Intake<'_>) -> Result<(), DataError> {
        if too_many_empty_rows(u64::from(row.saturating_sub(self.next)), self.entries) {
            let expected = "a number of rows in proportion to the entries";
            return Err(DataError::malformed(
                Place::file(&self.path),
                expected,
                format!("{row} rows with {} entries", self.entries),
            ));
        }
        while self.next < row {
            intake.commit()?;
            self.next += 1;
        }
        Ok(())
    }
}
