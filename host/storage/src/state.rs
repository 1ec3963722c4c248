//! A job's state folder: opening it, whose it is, and which cuts it holds.

use crate::control::{Change, Control};
use crate::cut::{self, CutInfo, CutReader, CutRecord, CutSpec, CutWriter, Intact, Skipped};
use crate::error::{Error, ErrorKind, Result};
use crate::folder::{Folder, Holds, Lock, sync_dir};
use crate::job::Job;
use slackline_core::Clock;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const JOB_KEY: &[u8] = b"job";
const KEPT_CUTS: usize = 2;

/// What opening a state folder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Write; make the folder when it is missing or empty. Whether it already has a job, [`State::job`] says.
    Create,
    /// Write; the folder must be there.
    Existing,
    /// Read what was complete when it was opened, also while a run writes. What the run removes later may be gone when
    /// it is asked for: open again.
    ReadOnly,
}

/// An open state folder. Clones are the same state.
#[derive(Clone)]
pub struct State {
    inner: Arc<Inner>,
}

struct Inner {
    folder: Folder,
    control: Control,
    /// The number of the next attempt at a cut, so that no two share a folder.
    attempt: AtomicU64,
    keep: AtomicUsize,
    /// One commit at a time, since a commit reads the list of cuts and then changes it.
    committing: Mutex<()>,
    /// Held as long as the state is open for writing; last, so that the databases are closed before it goes.
    _lock: Option<Lock>,
}

impl State {
    /// Opens the folder `dir`. Opening it for writing removes what unfinished cuts left.
    pub fn open(dir: &Path, mode: Mode) -> Result<Self> {
        let folder = Folder::new(dir, Holds::Job);
        match mode {
            Mode::Create => folder.create().map(|_| ())?,
            Mode::Existing | Mode::ReadOnly => folder.check()?,
        }
        let lock = if mode == Mode::ReadOnly { None } else { Some(folder.lock()?) };
        let fresh = !folder.control().join("CURRENT").exists();
        if fresh {
            refuse_without_control(&folder, mode)?;
        }
        let control = match mode {
            Mode::ReadOnly => Control::open_read_only(&folder.control())?,
            Mode::Create | Mode::Existing => {
                let cuts = folder.cuts();
                fs::create_dir_all(&cuts).map_err(|e| Error::file("make", &cuts, &e))?;
                let control = Control::open(&folder.control(), fresh)?;
                sync_dir(&folder.root)?;
                control
            }
        };
        let inner = Inner {
            folder,
            control,
            attempt: AtomicU64::new(0),
            keep: AtomicUsize::new(KEPT_CUTS),
            committing: Mutex::new(()),
            _lock: lock,
        };
        let state = Self { inner: Arc::new(inner) };
        if mode != Mode::ReadOnly {
            state.remove_leftovers()?;
        }
        Ok(state)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.inner.folder.root
    }

    /// Says whose state this is, instead of what it said before.
    pub fn put_job(&self, job: &Job) -> Result<()> {
        let text = serde_json::to_vec(job).map_err(|e| Error::invalid(format!("the job's document: {e}")))?;
        self.control().write(&[Change::put(JOB_KEY.to_vec(), text)])
    }

    /// Whose state this is; `None` in a new folder.
    pub fn job(&self) -> Result<Option<Job>> {
        let what = format!("the job's document in {}", self.dir().display());
        let Some(text) = self.control().get(&what, JOB_KEY)? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|e| Error::damaged(format!("{what} is damaged: {e}")))
    }

    /// How many cuts are kept; at least one, two unless told otherwise. Takes effect when the next cut is complete.
    pub fn keep_cuts(&self, cuts: usize) {
        self.inner.keep.store(cuts.max(1), Ordering::Relaxed);
    }

    /// Begins a cut. Nothing of it can be seen before [`CutWriter::commit`]; dropping the writer removes it.
    pub fn begin_cut(&self, spec: CutSpec) -> Result<CutWriter> {
        if self.control().read_only() {
            return Err(Error::invalid(format!("{} is opened for reading only", self.dir().display())));
        }
        CutWriter::begin(self.clone(), spec, self.inner.attempt.fetch_add(1, Ordering::Relaxed))
    }

    /// The complete cuts, oldest first, as their records tell; whether their parts are intact, [`State::newest_intact`]
    /// says.
    pub fn cuts(&self) -> Result<Vec<CutInfo>> {
        self.records()?.into_iter().map(|(_, record)| record.map(|r| r.info())).collect()
    }

    /// The last of [`State::cuts`].
    pub fn newest_complete(&self) -> Result<Option<CutInfo>> {
        Ok(self.cuts()?.pop())
    }

    /// Opens the cut at `clock`. Its parts are checked as they are read.
    pub fn open_cut(&self, clock: Clock) -> Result<CutReader> {
        let found = self.records()?.into_iter().find(|(at, _)| *at == clock);
        let (_, record) = found.ok_or_else(|| {
            Error::new(ErrorKind::Missing, format!("there is no cut at clock {clock} in {}", self.dir().display()))
        })?;
        CutReader::open(&self.inner.folder, record?)
    }

    /// Reads the newest cut whole and, where it is damaged, the one before it, and so on: the newest that can be
    /// restored, and which ones it had to pass over.
    pub fn newest_intact(&self) -> Result<Intact> {
        let mut skipped = Vec::new();
        for (clock, record) in self.records()?.into_iter().rev() {
            let tried = record.and_then(|r| CutReader::open(&self.inner.folder, r)).and_then(|cut| {
                cut.verify()?;
                Ok(cut)
            });
            match tried {
                Ok(cut) => return Ok(Intact { cut: Some(cut), skipped }),
                Err(reason) if matches!(reason.kind(), ErrorKind::Damaged | ErrorKind::Missing | ErrorKind::Io) => {
                    skipped.push(Skipped { clock, reason });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Intact { cut: None, skipped })
    }

    /// Forgets the cuts of later clocks, as a job must that goes back to `clock`: they belong to a course of events that
    /// is no more. `None` forgets all.
    pub fn drop_cuts_after(&self, clock: Option<Clock>) -> Result<()> {
        let _one = self.inner.committing.lock().unwrap_or_else(PoisonError::into_inner);
        let later = self.records()?.into_iter().filter(|(at, _)| clock.is_none_or(|c| *at > c));
        let (changes, paths): (Vec<Change>, Vec<_>) =
            later.map(|(at, r)| (Change::delete(record_key(at)), r.ok().map(|r| r.path(&self.inner.folder)))).unzip();
        if changes.is_empty() {
            return Ok(());
        }
        self.control().write(&changes)?;
        remove_folders(paths.into_iter().flatten());
        Ok(())
    }

    pub(crate) fn control(&self) -> &Control {
        &self.inner.control
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.inner.folder
    }

    /// Makes `record`'s cut complete and lets the oldest go, in one write.
    pub(crate) fn commit(&self, record: &CutRecord) -> Result<()> {
        let _one = self.inner.committing.lock().unwrap_or_else(PoisonError::into_inner);
        sync_dir(&self.inner.folder.cuts())?;
        let before = self.records()?;
        let others = before.iter().filter(|(clock, _)| *clock != record.clock).count();
        let surplus = (others + 1).saturating_sub(self.inner.keep.load(Ordering::Relaxed));
        let mut changes = vec![Change::put(record_key(record.clock), record.to_bytes()?)];
        let mut paths = Vec::new();
        let mut dropped = 0;
        for (clock, old) in before {
            // The oldest go first, but never the one that is being made.
            let replaced = clock == record.clock;
            if !replaced {
                if dropped == surplus {
                    continue;
                }
                dropped += 1;
                changes.push(Change::delete(record_key(clock)));
            }
            paths.extend(old.ok().map(|r| r.path(&self.inner.folder)));
        }
        if let Err(e) = self.control().write(&changes) {
            // Should the record have reached the log although the write failed, it must not name a cut that is gone.
            let _ = self.control().write(&[Change::delete(record_key(record.clock))]);
            return Err(e);
        }
        remove_folders(paths.into_iter());
        Ok(())
    }

    fn records(&self) -> Result<Vec<(Clock, Result<CutRecord>)>> {
        let what = format!("the record of a cut in {}", self.dir().display());
        let mut found = Vec::new();
        for (key, content) in self.control().scan(&what, RECORD_PREFIX)? {
            let clock = key.get(RECORD_PREFIX.len()..).and_then(|c| Some(Clock::from_be_bytes(c.try_into().ok()?)));
            let Some(clock) = clock else {
                return Err(Error::damaged(format!("{what} is damaged: its key has {} bytes", key.len())));
            };
            found.push((clock, content.and_then(|bytes| CutRecord::from_bytes(clock, &bytes))));
        }
        Ok(found)
    }

    fn remove_leftovers(&self) -> Result<()> {
        let records = self.records()?;
        let cuts = self.inner.folder.cuts();
        let mut next = records.iter().filter_map(|(_, r)| r.as_ref().ok()).map(|r| r.attempt).max();
        for entry in fs::read_dir(&cuts).map_err(|e| Error::file("read", &cuts, &e))?.flatten() {
            let Some((clock, attempt)) = entry.file_name().to_str().and_then(cut::parse_folder_name) else { continue };
            next = next.max(Some(attempt));
            let wanted = records.iter().any(|(at, record)| match record {
                Ok(record) => *at == clock && record.attempt == attempt,
                // Which attempt a damaged record meant is not known, so all of its clock stay.
                Err(_) => *at == clock,
            });
            if !wanted {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(|e| Error::file("remove the unfinished cut", &path, &e))?;
            }
        }
        self.inner.attempt.store(next.map_or(0, |n| n.saturating_add(1)), Ordering::Relaxed);
        Ok(())
    }
}

const RECORD_PREFIX: &[u8] = b"cut/";

fn record_key(clock: Clock) -> Vec<u8> {
    [RECORD_PREFIX, &clock.to_be_bytes()].concat()
}

/// A folder that cannot be removed now is a leftover that the next opening removes.
fn remove_folders(paths: impl Iterator<Item = std::path::PathBuf>) {
    for path in paths {
        let _ = fs::remove_dir_all(path);
    }
}

/// A folder whose control database is not there was either never finished being made, or lost it.
fn refuse_without_control(folder: &Folder, mode: Mode) -> Result<()> {
    let has_cuts = fs::read_dir(folder.cuts()).is_ok_and(|mut entries| entries.next().is_some());
    let root = folder.root.display();
    if has_cuts {
        return Err(Error::damaged(format!(
            "state folder {root} is damaged: it has cuts and no control records; restore {root}/control, or start the \
             job anew in another folder"
        )));
    }
    if mode != Mode::Create {
        return Err(Error::new(ErrorKind::Missing, format!("state folder {root} holds no job yet; run the job first")));
    }
    Ok(())
}
