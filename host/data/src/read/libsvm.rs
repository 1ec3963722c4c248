//! libsvm (svmlight) text: `label index:value …`, indices from 1 in the file and from 0 in `index`, ascending within a
//! row. What follows `#` is a comment.

use super::input::{Input, Lines, digits, field};
use super::{Native, Reader, fed_by};
use crate::builder::Builder;
use crate::error::{DataError, Place, shown};
use crate::intake::{Fault, Intake};
use crate::number::Misfit;
use memchr::memchr;
use std::path::{Path, PathBuf};

pub(crate) struct Libsvm {
    path: PathBuf,
    lines: Lines,
    natives: Vec<Native>,
}

/// The builders of each native.
struct Taps {
    label: Vec<usize>,
    index: Vec<usize>,
    value: Vec<usize>,
}

impl Libsvm {
    pub(crate) fn open(path: &Path, input: Input) -> Self {
        let natives = vec![Native::flat("label"), Native::list("index"), Native::list("value")];
        Self { path: path.into(), lines: Lines::new(path, input), natives }
    }
}

impl Reader for Libsvm {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(mut self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let taps = Taps { label: fed_by(bound, 0), index: fed_by(bound, 1), value: fed_by(bound, 2) };
        while let Some((number, line)) = self.lines.next()? {
            let line = memchr(b'#', line).map_or(line, |comment| &line[..comment]);
            match row(line, &taps, intake.columns()) {
                Ok(true) => intake.commit()?,
                Ok(false) => {}
                Err(fault) => intake.reject(fault.at(Place::line(&self.path, number)))?,
            }
        }
        Ok(())
    }
}

/// One line; `false` when it is blank.
#[inline]
fn row(line: &[u8], taps: &Taps, columns: &mut [Builder]) -> Result<bool, Fault> {
    let mut rest = line;
    let Some(label) = field(&mut rest) else { return Ok(false) };
    for b in &taps.label {
        columns[*b].push_text(label).map_err(|e| Fault::misfit(1, &columns[*b], e, label))?;
    }
    if taps.label.is_empty() && crate::number::parse_f64(label).is_err() {
        return Err(Fault::new(1, "a label", shown(label)));
    }
    let mut last = 0;
    let mut place = 1;
    loop {
        let blanks = rest.iter().take_while(|c| matches!(c, b' ' | b'\t')).count();
        let from = &rest[blanks..];
        if from.is_empty() {
            return Ok(true);
        }
        place += 1;
        let mut value = from;
        let index = digits(&mut value).filter(|_| value.first() == Some(&b':'));
        let Some(index) = index else { return Err(odd_pair(place, field(&mut rest).unwrap_or_default())) };
        let value = &value[1..];
        let len = value.iter().position(|c| matches!(c, b' ' | b'\t')).unwrap_or(value.len());
        let pair = &from[..from.len() - value.len() + len];
        let value = &value[..len];
        rest = &from[pair.len()..];
        if index <= last {
            return Err(order(place, index, last, pair));
        }
        last = index;
        for b in &taps.index {
            columns[*b].push_int(i128::from(index) - 1).map_err(|e| Fault::misfit(place, &columns[*b], e, pair))?;
        }
        for b in &taps.value {
            columns[*b].push_text(value).map_err(|e| bad_value(place, &columns[*b], e, pair))?;
        }
        if taps.value.is_empty() && crate::number::parse_f64(value).is_err() {
            return Err(Fault::new(place, "index:value", shown(pair)));
        }
    }
}

#[cold]
fn bad_value(place: u64, builder: &Builder, why: Misfit, pair: &[u8]) -> Fault {
    match why {
        Misfit::NotNumber | Misfit::Missing => Fault::new(place, "index:value", shown(pair)),
        _ => Fault::new(place, format!("index:value with {}", builder.expects(why)), shown(pair)),
    }
}

#[cold]
fn odd_pair(place: u64, pair: &[u8]) -> Fault {
    let ranking = [b"qid:".as_slice(), b"sid:", b"cost:"].iter().any(|extra| pair.starts_with(extra));
    let expected =
        if ranking { "index:value (ranking groups and costs are not supported; remove them)" } else { "index:value" };
    Fault::new(place, expected, shown(pair))
}

#[cold]
fn order(place: u64, index: u64, last: u64, pair: &[u8]) -> Fault {
    match index {
        0 => {
            Fault::new(place, "an index from 1 up (libsvm counts from 1; this file seems to count from 0)", shown(pair))
        }
        _ => Fault::new(place, format!("an index above {last} (indices ascend within a row)"), shown(pair)),
    }
}
