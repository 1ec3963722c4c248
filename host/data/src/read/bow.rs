//! Bags of words: UCI's `docword` (three header lines, then `doc word count`, both from 1) and LDA-C (`n term:count …`,
//! terms from 0). A row is a document, also one without words.

use super::input::{Input, Lines, Meter, digits, field};
use super::{Native, Reader, fed_by};
use crate::builder::Builder;
use crate::error::{DataError, Place, shown};
use crate::intake::{Fault, Intake, too_many_empty_rows};
use crate::number::parse_u64;
use crate::spec::Source;
use memchr::memchr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn natives() -> Vec<Native> {
    vec![Native::list("word"), Native::list("count")]
}

/// One word a line.
fn vocabulary(source: &Source) -> Result<Option<Arc<[String]>>, DataError> {
    let Some(path) = &source.vocab else { return Ok(None) };
    let (input, _) = super::input::open(path, &Meter::default())?;
    let mut lines = Lines::new(path, input);
    let mut words = Vec::new();
    while let Some((number, line)) = lines.next()? {
        let word = std::str::from_utf8(line)
            .map_err(|_| DataError::malformed(Place::line(path, number), "a word in UTF-8", shown(line)))?;
        words.push(word.trim().to_owned());
    }
    while words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    Ok(Some(words.into()))
}

struct Taps {
    word: Vec<usize>,
    count: Vec<usize>,
}

impl Taps {
    fn of(bound: &[Vec<usize>]) -> Self {
        Self { word: fed_by(bound, 0), count: fed_by(bound, 1) }
    }

    /// Adds an entry to the row being read.
    #[inline]
    fn push(&self, columns: &mut [Builder], place: u64, word: u64, count: u64, text: &[u8]) -> Result<(), Fault> {
        for b in &self.word {
            columns[*b].push_int(word.into()).map_err(|e| Fault::misfit(place, &columns[*b], e, text))?;
        }
        for b in &self.count {
            columns[*b].push_int(count.into()).map_err(|e| Fault::misfit(place + 1, &columns[*b], e, text))?;
        }
        Ok(())
    }
}

pub(crate) struct UciBow {
    path: PathBuf,
    lines: Lines,
    natives: Vec<Native>,
    vocabulary: Option<Arc<[String]>>,
    documents: u64,
    words: u64,
    entries: u64,
}

impl UciBow {
    pub(crate) fn open(source: &Source, input: Input) -> Result<Self, DataError> {
        let path = source.path.as_path();
        let mut lines = Lines::new(path, input);
        let mut header = |what: &str| -> Result<u64, DataError> {
            let (number, line) = match lines.next()? {
                Some((number, line)) => (number, line),
                None => {
                    return Err(DataError::malformed(Place::file(path), format!("a line with the {what}"), "the end"));
                }
            };
            parse_u64(line.trim_ascii())
                .ok_or_else(|| DataError::malformed(Place::line(path, number), format!("the {what}"), shown(line)))
        };
        let documents = header("number of documents")?;
        let words = header("number of words in the vocabulary")?;
        let entries = header("number of entries")?;
        let most = u64::from(u32::MAX);
        if documents > most || words > most {
            let place = Place::line(path, if documents > most { 1 } else { 2 });
            return Err(DataError::malformed(place, "a number below 2^32", documents.max(words).to_string()));
        }
        let vocabulary = vocabulary(source)?;
        if let Some(v) = &vocabulary
            && v.len() as u64 != words
        {
            let vocab = source.vocab.as_deref().unwrap_or(Path::new("")).display();
            let expected = format!("{} words, as in {vocab}", v.len());
            return Err(DataError::malformed(Place::line(path, 2), expected, words.to_string()));
        }
        Ok(Self { path: path.into(), lines, natives: natives(), vocabulary, documents, words, entries })
    }
}

/// One line of `doc word count`, as nearly all lines are: three numbers with one blank between.
#[inline]
fn usual_entry(line: &[u8], documents: u64, words: u64) -> Option<(u64, u64, u64)> {
    let mut rest = line;
    let document = digits(&mut rest)?;
    rest = rest.strip_prefix(b" ")?;
    let word = digits(&mut rest)?;
    rest = rest.strip_prefix(b" ")?;
    let count = digits(&mut rest)?;
    let inside = (1..=documents).contains(&document) && (1..=words).contains(&word);
    (rest.is_empty() && inside && (1..=u64::from(u32::MAX)).contains(&count)).then_some((document, word, count))
}

/// One line of `doc word count`.
#[inline]
fn entry(line: &[u8], documents: u64, words: u64) -> Result<(u64, u64, u64), Fault> {
    match usual_entry(line, documents, words) {
        Some(entry) => Ok(entry),
        None => odd_entry(line, documents, words),
    }
}

/// One line that is spaced in another way, or wrong.
#[cold]
fn odd_entry(line: &[u8], documents: u64, words: u64) -> Result<(u64, u64, u64), Fault> {
    let mut rest = line;
    let mut number = |place: u64, what: &str, most: u64| {
        let text = field(&mut rest).unwrap_or_default();
        let v = parse_u64(text).filter(|v| (1..=most).contains(v));
        v.ok_or_else(|| Fault::new(place, format!("{what} of 1..={most}"), shown(text)))
    };
    let document = number(1, "a document", documents)?;
    let word = number(2, "a word", words)?;
    let count = number(3, "a count", u32::MAX.into())?;
    match field(&mut rest) {
        Some(more) => Err(Fault::new(4, "the end of the line", shown(more))),
        None => Ok((document, word, count)),
    }
}

impl Reader for UciBow {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn vocabulary(&self) -> Option<Arc<[String]>> {
        self.vocabulary.clone()
    }

    fn read(self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let UciBow { path, mut lines, documents, words, entries: claimed, .. } = *self;
        let taps = Taps::of(bound);
        // The document being read, the last one that had an entry, how many had any, and the entries of all.
        let (mut open, mut last, mut filled, mut entries) = (1, 0, 0, 0);
        while let Some((number, line)) = lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let (document, word, count) = match entry(line, documents, words) {
                Ok((document, ..)) if document < open => {
                    let fault = Fault::new(1, format!("a document from {open} up (they ascend)"), document.to_string());
                    intake.skip(fault.at(Place::line(&path, number)))?;
                    continue;
                }
                Ok(entry) => entry,
                Err(fault) => {
                    intake.skip(fault.at(Place::line(&path, number)))?;
                    continue;
                }
            };
            entries += 1;
            if document != last {
                (last, filled) = (document, filled + 1);
                if too_many_empty_rows(document - filled, entries) {
                    return Err(claims(&path, number, document, entries));
                }
                while open < document {
                    intake.commit()?;
                    open += 1;
                }
            }
            taps.push(intake.columns(), 2, word - 1, count, line).map_err(|f| f.at(Place::line(&path, number)))?;
        }
        if entries + intake.skipped() != claimed {
            let expected = format!("{}, the number of lines that follow", entries + intake.skipped());
            return Err(DataError::malformed(Place::line(&path, 3), expected, claimed.to_string()));
        }
        if too_many_empty_rows(documents - filled, entries) {
            return Err(claims(&path, 1, documents, entries));
        }
        for _ in open..=documents {
            intake.commit()?;
        }
        Ok(())
    }
}

fn claims(path: &Path, line: u64, documents: u64, entries: u64) -> DataError {
    let expected = "a number of documents in proportion to the entries";
    DataError::malformed(Place::line(path, line), expected, format!("{documents} documents with {entries} entries"))
}

pub(crate) struct Ldac {
    path: PathBuf,
    lines: Lines,
    natives: Vec<Native>,
    vocabulary: Option<Arc<[String]>>,
}

impl Ldac {
    pub(crate) fn open(source: &Source, input: Input) -> Result<Self, DataError> {
        let path = source.path.as_path();
        let (lines, vocabulary) = (Lines::new(path, input), vocabulary(source)?);
        Ok(Self { path: path.into(), lines, natives: natives(), vocabulary })
    }
}

impl Reader for Ldac {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn vocabulary(&self) -> Option<Arc<[String]>> {
        self.vocabulary.clone()
    }

    fn read(mut self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let taps = Taps::of(bound);
        let words = self.vocabulary.as_ref().map_or(u64::from(u32::MAX), |v| v.len() as u64);
        while let Some((number, line)) = self.lines.next()? {
            match document(line, words, &taps, intake.columns()) {
                Ok(true) => intake.commit()?,
                Ok(false) => {}
                Err(fault) => intake.reject(fault.at(Place::line(&self.path, number)))?,
            }
        }
        Ok(())
    }
}

/// One line; `false` when it is blank (an empty document is `0`).
#[inline]
fn document(line: &[u8], words: u64, taps: &Taps, columns: &mut [Builder]) -> Result<bool, Fault> {
    let mut rest = line;
    let Some(first) = field(&mut rest) else { return Ok(false) };
    let claimed = parse_u64(first).ok_or_else(|| Fault::new(1, "the number of pairs that follow", shown(first)))?;
    let mut pairs = 0;
    while let Some(pair) = field(&mut rest) {
        pairs += 1;
        let split = memchr(b':', pair).and_then(|c| Some((parse_u64(&pair[..c])?, parse_u64(&pair[c + 1..])?)));
        let (word, count) = split.ok_or_else(|| Fault::new(pairs + 1, "word:count", shown(pair)))?;
        if word >= words {
            return Err(Fault::new(pairs + 1, format!("a word below {words}"), shown(pair)));
        }
        if count == 0 {
            return Err(Fault::new(pairs + 1, "a count from 1 up", shown(pair)));
        }
        taps.push(columns, pairs + 1, word, count, pair)?;
    }
    if pairs != claimed {
        return Err(Fault::new(1, format!("{pairs}, the number of pairs that follow"), shown(first)));
    }
    Ok(true)
}
