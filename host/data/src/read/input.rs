//! Bytes out of a file: compression is noticed by its first bytes, progress is metered where the disk is read, and
//! lines come out without being copied.

use crate::error::{DataError, Place};
use memchr::memchr;
use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
    /// By zstd.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// How far the reading of a file has come, in bytes as they lie on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Rc<(Cell<u64>, Cell<u64>)>);

impl Meter {
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.0.0.get(), self.0.1.get())
    }

    pub(crate) fn advance(&self, n: u64) {
        self.0.0.set(self.0.0.get() + n);
    }

    pub(crate) fn expect(&self, n: u64) {
        self.0.1.set(n);
    }
}

struct Metered {
    file: File,
    meter: Meter,
}

impl Read for Metered {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buf)?;
        self.meter.advance(n as u64);
        Ok(n)
    }
}

/// A file's bytes, decompressed.
pub(crate) type Input = Box<dyn Read>;

/// Opens a file and looks behind its compression.
pub(crate) fn open(path: &Path, meter: &Meter) -> Result<(Input, Compression), DataError> {
    let mut file = File::open(path).map_err(DataError::io(path))?;
    let about = file.metadata().map_err(DataError::io(path))?;
    if about.is_dir() {
        return Err(DataError::Io {
            path: path.into(),
            source: io::Error::new(io::ErrorKind::IsADirectory, "is a folder"),
        });
    }
    meter.expect(about.len());
    let mut head = [0; 4];
    let mut got = 0;
    while got < head.len() {
        match file.read(&mut head[got..]).map_err(DataError::io(path))? {
            0 => break,
            n => got += n,
        }
    }
    meter.advance(got as u64);
    let whole = io::Cursor::new(head).take(got as u64).chain(Metered { file, meter: meter.clone() });
    Ok(match head[..got] {
        [0x1f, 0x8b, ..] => (Box::new(flate2::read::MultiGzDecoder::new(whole)), Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            (Box::new(zstd::stream::read::Decoder::new(whole).map_err(DataError::io(path))?), Compression::Zstd)
        }
        _ => (Box::new(whole), Compression::None),
    })
}

/// A line longer than this is taken for a file without lines.
const LONGEST_LINE: usize = 256 << 20;
const BUFFER: usize = 256 << 10;

/// Lines of a text file, without their ends.
pub(crate) struct Lines {
    path: PathBuf,
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes from `start` in which no line end was found.
    searched: usize,
    line: u64,
    ended: bool,
}

impl Lines {
    pub(crate) fn new(path: &Path, input: Input) -> Self {
        let buffer = vec![0; BUFFER];
        Self { path: path.into(), input, buffer, start: 0, end: 0, searched: 0, line: 0, ended: false }
    }

    /// The next line and its number, from 1.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, DataError> {
        loop {
            if let Some(n) = memchr(b'\n', &self.buffer[self.start + self.searched..self.end]) {
                let from = self.start;
                let to = from + self.searched + n;
                self.start = to + 1;
                self.searched = 0;
                self.line += 1;
                return Ok(Some((self.line, without_return(&self.buffer[from..to]))));
            }
            self.searched = self.end - self.start;
            if self.ended {
                if self.start == self.end {
                    return Ok(None);
                }
                let from = self.start;
                self.start = self.end;
                self.searched = 0;
                self.line += 1;
                return Ok(Some((self.line, without_return(&self.buffer[from..self.end]))));
            }
            self.refill()?;
        }
    }

    fn refill(&mut self) -> Result<(), DataError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= LONGEST_LINE {
                let place = Place::line(&self.path, self.line + 1);
                return Err(DataError::malformed(place, "lines of text", "a line of more than 256 MiB"));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    self.ended = n == 0;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(DataError::Io { path: self.path.clone(), source: e }),
            }
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The unsigned integer at the beginning of `rest`, which moves behind its last digit. `None` when there is no digit, or
/// more than 2⁶⁴ can hold.
#[inline]
pub(crate) fn digits(rest: &mut &[u8]) -> Option<u64> {
    let (mut v, mut n) = (0u64, 0);
    while let Some(digit) = rest.get(n).map(|c| c.wrapping_sub(b'0')).filter(|d| *d <= 9) {
        v = if n < 19 { v * 10 + u64::from(digit) } else { v.checked_mul(10)?.checked_add(u64::from(digit))? };
        n += 1;
    }
    *rest = &rest[n..];
    (n > 0).then_some(v)
}

/// The next field of a line, between blanks; `rest` moves behind it.
#[inline]
pub(crate) fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|c| !matches!(c, b' ' | b'\t'))?;
    let from = &rest[start..];
    let len = from.iter().position(|c| matches!(c, b' ' | b'\t')).unwrap_or(from.len());
    let (field, tail) = from.split_at(len);
    *rest = tail;
    Some(field)
}
