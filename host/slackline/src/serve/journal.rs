//! A job's events, as lines in a file: what its process prints is kept, and any number of clients follow it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Above this a job's log lines are not kept any more; its clocks still are.
const MAX_WITH_LOGS: u64 = 64 << 20;

/// Lines of at most this many bytes are kept.
pub const MAX_LINE: u64 = 1 << 20;

/// One job's events.
pub struct Journal {
    path: PathBuf,
    /// Written under this lock, so that lines never mix.
    file: Mutex<File>,
    /// Bytes of whole lines; what followers wait on.
    length: watch::Sender<u64>,
}

impl Journal {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // What a crash left of a line is no line.
        let whole = whole_lines(&mut file)?;
        file.set_len(whole)?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), length: watch::Sender::new(whole) })
    }

    /// Adds a line.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let full = *self.length.borrow() > MAX_WITH_LOGS;
        if full && line.contains("\"event\":\"log\"") {
            return Ok(());
        }
        let mut bytes = line.replace('\n', " ").into_bytes();
        if bytes.len() as u64 >= MAX_LINE {
            let message = format!("an event of {} bytes is left out: it is too long", bytes.len());
            bytes = serde_json::json!({"event": "notice", "message": message}).to_string().into_bytes();
        }
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes)?;
        self.length.send_modify(|length| *length += bytes.len() as u64);
        Ok(())
    }

    /// A reader at the beginning.
    pub fn reader(&self) -> io::Result<Reader> {
        let file = BufReader::new(File::open(&self.path)?);
        Ok(Reader { file, at: 0, number: 0, length: self.length.subscribe() })
    }
}

/// Reads lines and can wait for more.
pub struct Reader {
    file: BufReader<File>,
    at: u64,
    number: u64,
    length: watch::Receiver<u64>,
}

impl Reader {
    /// The next line with its number, counted from 1; `None` at the last so far. Reads a local file: call it where
    /// blocking is allowed.
    pub fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        if self.at >= *self.length.borrow() {
            return Ok(None);
        }
        let mut line = Vec::new();
        let read = self.file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 || line.pop() != Some(b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the journal was changed from outside"));
        }
        self.at += read as u64;
        self.number += 1;
        Ok(Some((self.number, String::from_utf8_lossy(&line).into_owned())))
    }

    /// Waits until there may be more; false when the journal is gone.
    pub async fn more(&mut self) -> bool {
        let at = self.at;
        self.length.wait_for(|length| *length > at).await.is_ok()
    }
}

/// All jobs' journals, opened when they are first asked for.
#[derive(Default)]
pub struct Journals {
    open: Mutex<HashMap<PathBuf, Arc<Journal>>>,
}

impl Journals {
    /// The journal at `path`; made when it is missing and the folder is there.
    pub fn of(&self, path: &Path) -> io::Result<Arc<Journal>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(journal) = open.get(path) {
            return Ok(journal.clone());
        }
        let journal = Arc::new(Journal::open(path)?);
        open.insert(path.to_owned(), journal.clone());
        Ok(journal)
    }

    /// Forgets a journal whose job is deleted: followers end.
    pub fn forget(&self, path: &Path) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

fn whole_lines(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    let from = length.saturating_sub(MAX_LINE);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(MAX_LINE).read_to_end(&mut tail)?;
    Ok(tail.iter().rposition(|b| *b == b'\n').map_or(from, |at| from + at as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_a_torn_one_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let journals = Journals::default();
        let journal = journals.of(&path).unwrap();
        journal.append("three\nin one").unwrap();
        let mut reader = journal.reader().unwrap();
        let lines: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(lines, [(1, "one".into()), (2, "two".into()), (3, "three in one".into())]);
        journal.append("four").unwrap();
        assert_eq!(reader.next().unwrap(), Some((4, "four".into())));
    }

    #[tokio::test]
    async fn a_follower_waits_for_more_and_ends_with_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let journals = Journals::default();
        let journal = journals.of(&path).unwrap();
        let mut reader = journal.reader().unwrap();
        assert_eq!(reader.next().unwrap(), None);
        let writer = journal.clone();
        let follower = tokio::spawn(async move {
            assert!(reader.more().await);
            (reader.next().unwrap(), reader)
        });
        tokio::task::yield_now().await;
        writer.append("x").unwrap();
        let (line, mut reader) = follower.await.unwrap();
        assert_eq!(line, Some((1, "x".into())));
        drop((writer, journal));
        journals.forget(&path);
        assert!(!reader.more().await);
    }
}
