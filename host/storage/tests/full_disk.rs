//! A disk that fills while a cut is written, and a folder that may not be written: on a small file system in memory,
//! where the machine lets us mount one.

mod common;

use common::{assert_whole, clocks, cut_folders, dense, write_cut};
use slackline_core::{DType, TableId};
use slackline_storage::{CutSpec, ErrorKind, Mode, State};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mount(PathBuf);

impl Mount {
    /// A tmpfs of `megabytes`; `None`, with a word to say so, where mounting is not permitted.
    fn new(dir: &Path, megabytes: usize) -> Option<Self> {
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir).output();
        if mounted.is_ok_and(|out| out.status.success()) {
            return Some(Self(dir.to_owned()));
        }
        eprintln!("skipped: this test mounts a small tmpfs, which is not permitted here");
        None
    }

    fn remount(&self, option: &str) {
        let out = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).output().unwrap();
        assert!(out.status.success(), "{out:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a failed test may still hold files.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Writes a cut of 200 MB, which does not fit.
fn write_too_much(state: &State, clock: u32) -> slackline_storage::Error {
    let spec = dense("large", DType::F32, 3_000_000, 16);
    let piece = spec.initial(1, 0, 100_000);
    let cut = state.begin_cut(CutSpec { clock, workers: 0, tables: vec![spec] }).unwrap();
    for first in (0..3_000_000).step_by(100_000) {
        if cut.dense_rows(TableId(0), first, piece.as_ref()).is_err() {
            break;
        }
    }
    cut.commit(serde_json::Value::Null).unwrap_err()
}

#[test]
fn a_full_disk_costs_the_cut_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(dir.path(), 48) else { return };
    let path = dir.path().join("state");
    let state = State::open(&path, Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    for clock in 2..4 {
        let e = write_too_much(&state, clock);
        assert_eq!(e.kind(), ErrorKind::NoSpace, "{e}");
        assert!(e.to_string().contains(&format!("clock {clock}")) && e.to_string().contains("free some space"), "{e}");
        assert_eq!(clocks(&state), [1]);
        assert_eq!(cut_folders(&path).len(), 1);
        assert_whole(&state.open_cut(1).unwrap());
    }
    // The same handle goes on once there is space, and so does a new one.
    write_cut(&state, 5).unwrap();
    drop(state);
    let state = State::open(&path, Mode::Existing).unwrap();
    assert_eq!(clocks(&state), [1, 5]);
    assert_whole(&state.newest_intact().unwrap().cut.unwrap());
}

#[test]
fn a_disk_without_a_byte_left_still_gives_its_cuts() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(dir.path(), 32) else { return };
    let path = dir.path().join("state");
    let state = State::open(&path, Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    let ballast = dir.path().join("ballast");
    let filled = fs::write(&ballast, vec![1u8; 64 << 20]);
    assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);

    let mut failures = 0;
    for n in 0..40 {
        // Documents go through the log, until it cannot grow.
        failures += usize::from(state.put_document(&format!("d{n}"), &vec![n; 1 << 20]).is_err());
    }
    assert!(failures > 0);
    assert!(write_cut(&state, 2).is_err());
    drop(state);
    let reading = State::open(&path, Mode::ReadOnly).unwrap();
    assert_whole(&reading.newest_intact().unwrap().cut.unwrap());

    fs::remove_file(&ballast).unwrap();
    let state = State::open(&path, Mode::Existing).unwrap();
    write_cut(&state, 3).unwrap();
    assert_eq!(clocks(&state), [1, 3]);
}

#[test]
fn writing_goes_on_after_space_was_made_without_opening_anew() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(dir.path(), 32) else { return };
    let state = State::open(&dir.path().join("state"), Mode::Create).unwrap();
    let ballast = dir.path().join("ballast");
    fs::write(&ballast, vec![1u8; 64 << 20]).unwrap_err();
    let mut full = None;
    for n in 0..40 {
        full = full.or(state.put_document("d", &vec![n; 1 << 20]).err());
    }
    assert_eq!(full.unwrap().kind(), ErrorKind::NoSpace);
    fs::remove_file(&ballast).unwrap();
    state.put_document("d", b"after").unwrap();
    assert_eq!(state.document("d").unwrap().unwrap(), b"after");
    write_cut(&state, 1).unwrap();
    assert_whole(&state.open_cut(1).unwrap());
}

#[test]
fn a_folder_that_may_not_be_written_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(dir.path(), 48) else { return };
    let path = dir.path().join("state");
    write_cut(&State::open(&path, Mode::Create).unwrap(), 1).unwrap();
    mount.remount("ro");
    for mode in [Mode::Create, Mode::Existing] {
        let e = State::open(&path, mode).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unwritable, "{e}");
    }
    let other = State::open(&dir.path().join("other"), Mode::Create).map(|_| ()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Unwritable, "{other}");
    assert_whole(&State::open(&path, Mode::ReadOnly).unwrap().open_cut(1).unwrap());
}
