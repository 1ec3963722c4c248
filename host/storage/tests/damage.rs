//! Files that are not what was written: found, named, and passed over.

mod common;

use common::{ROWS, assert_whole, clocks, cut_folders, files, write_cut};
use slackline_core::{TableId, WorkerId};
use slackline_storage::{ErrorKind, Mode, State};
use std::fs;
use std::path::Path;

/// A folder with cuts at clocks 1 and 2, closed.
fn two_cuts() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    write_cut(&state, 2).unwrap();
    dir
}

fn newest_parts(dir: &Path) -> std::path::PathBuf {
    let folder = cut_folders(dir).pop().unwrap();
    files(&folder, "sst").pop().unwrap()
}

/// That the cut at clock 2 is passed over for a reason that says all of `words`, and the one at clock 1 is whole.
fn check_falls_back(dir: &Path, words: &[&str]) {
    for mode in [Mode::ReadOnly, Mode::Existing] {
        let state = State::open(dir, mode).unwrap();
        let found = state.newest_intact().unwrap();
        assert_eq!(found.skipped.len(), 1);
        assert_eq!(found.skipped[0].clock, 2);
        let reason = found.skipped[0].reason.to_string();
        assert!(words.iter().all(|w| reason.contains(w)), "{reason}");
        let cut = found.cut.unwrap();
        assert_eq!(cut.clock(), 1);
        assert_whole(&cut);
    }
    // The folder stays usable: the job goes back to clock 1 and on.
    let state = State::open(dir, Mode::Existing).unwrap();
    state.drop_cuts_after(Some(1)).unwrap();
    assert_eq!(clocks(&state), [1]);
    assert_eq!(cut_folders(dir).len(), 1);
    write_cut(&state, 2).unwrap();
    let found = state.newest_intact().unwrap();
    assert!(found.skipped.is_empty());
    assert_whole(&found.cut.unwrap());
}

#[test]
fn flipped_bits_in_a_part_are_found_wherever_they_are() {
    let dir = two_cuts();
    let file = newest_parts(dir.path());
    let good = fs::read(&file).unwrap();
    for eighth in 0..8 {
        let mut bad = good.clone();
        let at = bad.len() * eighth / 8 + 1000;
        bad[at] ^= 0x10;
        fs::write(&file, bad).unwrap();
        let state = State::open(dir.path(), Mode::ReadOnly).unwrap();
        let cut = state.open_cut(2).unwrap();
        let e = cut.verify().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Damaged);
        assert!(e.to_string().contains("clock 2") && e.to_string().contains("table \"weights\""), "{e}");
        // Reading finds it too, and goes no further than it must.
        let read: Result<Vec<_>, _> = cut.dense_rows(TableId(0), 0..ROWS).unwrap().collect();
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Damaged);
        assert!(cut.worker(WorkerId(0)).is_ok());
    }
    check_falls_back(dir.path(), &["clock 2", "table \"weights\""]);
}

#[test]
fn a_truncated_part_is_found() {
    let dir = two_cuts();
    let file = newest_parts(dir.path());
    let len = fs::metadata(&file).unwrap().len();
    fs::File::options().write(true).open(&file).unwrap().set_len(len / 2).unwrap();
    check_falls_back(dir.path(), &["clock 2", "damaged"]);
}

#[test]
fn a_missing_file_is_found() {
    let dir = two_cuts();
    fs::remove_file(newest_parts(dir.path())).unwrap();
    check_falls_back(dir.path(), &["clock 2", "damaged"]);
}

#[test]
fn a_missing_cut_is_found() {
    let dir = two_cuts();
    fs::remove_dir_all(cut_folders(dir.path()).pop().unwrap()).unwrap();
    check_falls_back(dir.path(), &["clock 2", "gone"]);
}

#[test]
fn a_cut_with_another_cuts_parts_is_found() {
    // RocksDB's own checksums all agree here; only the record's do not.
    let dir = two_cuts();
    let folders = cut_folders(dir.path());
    fs::remove_dir_all(&folders[1]).unwrap();
    fs::create_dir(&folders[1]).unwrap();
    for entry in fs::read_dir(&folders[0]).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folders[1].join(path.file_name().unwrap())).unwrap();
    }
    check_falls_back(dir.path(), &["clock 2", "checksum differs"]);
}

#[test]
fn damaged_control_records_are_an_error_and_cost_no_cut() {
    let dir = two_cuts();
    let log = files(&dir.path().join("control"), "log").into_iter().find(|p| fs::metadata(p).unwrap().len() > 0);
    let log = log.unwrap();
    let mut bytes = fs::read(&log).unwrap();
    bytes[20] ^= 1;
    fs::write(&log, bytes).unwrap();
    for mode in [Mode::Existing, Mode::Create, Mode::ReadOnly] {
        let e = State::open(dir.path(), mode).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Damaged, "{e}");
    }
    assert_eq!(cut_folders(dir.path()).len(), 2);

    fs::remove_dir_all(dir.path().join("control")).unwrap();
    for mode in [Mode::Existing, Mode::Create, Mode::ReadOnly] {
        let e = State::open(dir.path(), mode).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Damaged, "{e}");
    }
    assert_eq!(cut_folders(dir.path()).len(), 2);
}
