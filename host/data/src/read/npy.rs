//! NumPy's `.npy`: a matrix gives the list column `x` (a row's values), a vector gives one value a row.

use super::input::Input;
use super::{Native, Reader, fed_by, owned};
use crate::error::{DataError, Place, shown};
use crate::intake::{Fault, Intake};
use slackline_core::values::{DType, Values, ValuesRef};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

pub(crate) struct Npy {
    path: PathBuf,
    input: Input,
    natives: Vec<Native>,
    item: Item,
    rows: u64,
    width: u64,
}

/// How a value lies in the file.
#[derive(Clone, Copy)]
struct Item {
    kind: u8,
    size: usize,
    big_endian: bool,
}

/// Headers are a few hundred bytes; the format's own limit is no reason to believe a file's word.
const LONGEST_HEADER: usize = 64 << 10;
const BLOCK: usize = 64 << 10;

impl Npy {
    pub(crate) fn open(path: &Path, mut input: Input) -> Result<Self, DataError> {
        let bad = |expected: &str, found: String| DataError::malformed(Place::file(path), expected, found);
        let mut head = [0; 8];
        exactly(path, &mut input, &mut head, "an npy header")?;
        if &head[..6] != b"\x93NUMPY" {
            return Err(bad("an npy file (\\x93NUMPY)", shown(&head[..6])));
        }
        let long = head[6] >= 2;
        let mut len = [0; 4];
        exactly(path, &mut input, &mut len[..if long { 4 } else { 2 }], "an npy header")?;
        let len = u32::from_le_bytes(len) as usize;
        if len > LONGEST_HEADER {
            return Err(bad("a header of at most 64 KiB", format!("one of {len} bytes")));
        }
        let mut header = vec![0; len];
        exactly(path, &mut input, &mut header, "an npy header")?;
        let header = String::from_utf8_lossy(&header);
        let item = entry(&header, "descr").and_then(item);
        let item = item.ok_or_else(|| {
            bad("numbers (f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1) in descr", shown(header.trim().as_bytes()))
        })?;
        if !entry(&header, "fortran_order").is_some_and(|v| v.starts_with("False")) {
            let hint = "C order (save np.ascontiguousarray(x))";
            return Err(bad(hint, "fortran_order that is not False".into()));
        }
        let shape = entry(&header, "shape").and_then(shape);
        let (rows, width, natives) = match shape.as_deref() {
            Some([rows]) => (*rows, 1, Native::flat("x")),
            Some([rows, width]) => (*rows, *width, Native::list("x")),
            _ => return Err(bad("a shape of one or two dimensions", shown(header.trim().as_bytes()))),
        };
        if width.checked_mul(8).is_none_or(|bytes| bytes > 1 << 40) || (width == 0 && rows > 0) {
            return Err(bad("rows of 1 to 2^37 values", width.to_string()));
        }
        Ok(Self { path: owned(path), input, natives: vec![natives], item, rows, width })
    }
}

fn exactly(path: &Path, input: &mut Input, buf: &mut [u8], what: &str) -> Result<(), DataError> {
    input.read_exact(buf).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => DataError::malformed(Place::file(path), what, "the end of the file"),
        _ => DataError::Io { path: path.into(), source: e },
    })
}

/// What follows `'key':` in the header's dictionary.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))?;
    Some(header[at + key.len() + 2..].trim_start().strip_prefix(':')?.trim_start())
}

fn item(descr: &str) -> Option<Item> {
    let text = descr.strip_prefix('\'')?.split('\'').next()?.as_bytes();
    let [order, kind, size] = text else { return None };
    let size = usize::from(size.wrapping_sub(b'0'));
    let known = matches!((kind, size), (b'f', 4 | 8) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'b', 1));
    known.then_some(Item { kind: *kind, size, big_endian: *order == b'>' })
}

fn shape(text: &str) -> Option<Vec<u64>> {
    let inside = text.strip_prefix('(')?.split(')').next()?;
    inside.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect()
}

impl Item {
    /// The values of `bytes` (a whole number of them), in the smallest type of ours that holds all of theirs.
    fn decode(self, bytes: &mut [u8]) -> Values {
        if self.big_endian {
            bytes.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        let same = |dtype| Values::from_bytes(dtype, bytes).unwrap_or(Values::U8(Vec::new()));
        match (self.kind, self.size) {
            (b'f', 4) => same(DType::F32),
            (b'f', _) => same(DType::F64),
            (b'i', 4) => same(DType::I32),
            (b'i', 8) => same(DType::I64),
            (b'u', 4) => same(DType::U32),
            (b'u', 8) => same(DType::U64),
            (b'i', 1) => Values::I32(bytes.iter().map(|b| i32::from(*b as i8)).collect()),
            (b'i', _) => Values::I32(bytes.as_chunks().0.iter().map(|b| i16::from_le_bytes(*b).into()).collect()),
            (b'u', 2) => Values::U32(bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b).into()).collect()),
            _ => same(DType::U8),
        }
    }
}

impl Reader for Npy {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(mut self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let taps = fed_by(bound, 0);
        let mut block = vec![0; BLOCK];
        for row in 1..=self.rows {
            let mut left = self.width * self.item.size as u64;
            let mut fault = None;
            let mut done = 0;
            while left > 0 {
                // A wide row comes in blocks: its width is the file's word, not a fact, until its bytes are there.
                let bytes = &mut block[..left.min(BLOCK as u64) as usize];
                exactly(&self.path, &mut self.input, bytes, &format!("{} rows of {} values", self.rows, self.width))?;
                left -= bytes.len() as u64;
                let values = self.item.decode(bytes);
                for b in &taps {
                    let builder = &mut intake.columns()[*b];
                    if let Err((at, why)) = builder.push_values(values.as_ref())
                        && fault.is_none()
                    {
                        let found = value(values.as_ref(), at);
                        fault = Some(Fault::new(done + at as u64 + 1, builder.expects(why), found));
                    }
                }
                done += values.len() as u64;
            }
            match fault {
                None => intake.commit()?,
                Some(fault) => intake.reject(fault.at(Place::row(&self.path, row)))?,
            }
        }
        match self.input.read(&mut block) {
            Ok(0) => Ok(()),
            Ok(_) => {
                let expected = format!("the end after {} rows of {} values", self.rows, self.width);
                Err(DataError::malformed(Place::file(&self.path), expected, "more bytes"))
            }
            Err(source) => Err(DataError::Io { path: self.path, source }),
        }
    }
}

/// A value as text, for messages.
pub(super) fn value(values: ValuesRef<'_>, at: usize) -> String {
    match values {
        ValuesRef::F32(v) => v[at].to_string(),
        ValuesRef::F64(v) => v[at].to_string(),
        ValuesRef::I32(v) => v[at].to_string(),
        ValuesRef::I64(v) => v[at].to_string(),
        ValuesRef::U32(v) => v[at].to_string(),
        ValuesRef::U64(v) => v[at].to_string(),
        ValuesRef::U8(v) => v[at].to_string(),
    }
}
