//! A process that dies while it writes a cut (C12): what was complete stays, what was not leaves nothing.

mod common;

use common::{assert_whole, clocks, cut_folders, table, worker, write_cut};
use slackline_core::{TableId, WorkerId};
use slackline_storage::{CutSpec, Mode, State};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIR: &str = "SLACKLINE_STORAGE_TEST_DIR";
const HOLD: &str = "SLACKLINE_STORAGE_TEST_HOLD";

/// The process that gets killed. It writes the cut at clock 1, then begins the one at clock 2, or
/// goes on writing cuts.
#[test]
#[ignore = "the process that the other tests start and kill"]
fn child() {
    let dir = std::env::var_os(DIR).expect("a folder, from the test that starts this process");
    let state = State::open(Path::new(&dir), Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    if std::env::var_os(HOLD).is_some() {
        let spec = table();
        let cut = state.begin_cut(CutSpec { clock: 2, workers: 1, tables: vec![spec.clone()] }).unwrap();
        cut.dense_rows(TableId(0), 0, spec.initial(2, 0, 20_000).as_ref()).unwrap();
        cut.worker(WorkerId(0), &worker(2)).unwrap();
        println!("\nready");
        std::thread::sleep(Duration::from_secs(600));
    }
    println!("\nready");
    for clock in 2.. {
        write_cut(&state, clock).unwrap();
        println!("\nwrote {clock}");
    }
}

/// Runs the child until it says `ready`, and then for `after`; kills it; gives what it said last.
fn killed(dir: &Path, hold: bool, after: Duration) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture"]).env(DIR, dir).stdout(Stdio::piped());
    if hold {
        command.env(HOLD, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "ready" {}
    std::thread::sleep(after);
    // SIGKILL: nothing of the child's runs any more.
    child.kill().unwrap();
    child.wait().unwrap();
    lines.map_while(Result::ok).collect()
}

#[test]
fn a_cut_torn_by_a_kill_is_gone_and_the_one_before_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), true, Duration::ZERO);
    assert_eq!(cut_folders(dir.path()).len(), 2);

    // Whoever only reads does not see it, and does not touch it.
    let reading = State::open(dir.path(), Mode::ReadOnly).unwrap();
    assert_eq!(clocks(&reading), [1]);
    assert_eq!(cut_folders(dir.path()).len(), 2);

    let state = State::open(dir.path(), Mode::Existing).unwrap();
    assert_eq!(clocks(&state), [1]);
    assert_eq!(cut_folders(dir.path()).len(), 1);
    assert_whole(&state.newest_intact().unwrap().cut.unwrap());
    write_cut(&state, 2).unwrap();
    assert_whole(&state.open_cut(2).unwrap());
}

#[test]
fn whenever_a_writer_is_killed_every_cut_it_reported_is_whole() {
    for moment in 0..10u64 {
        let dir = tempfile::tempdir().unwrap();
        let said = killed(dir.path(), false, Duration::from_millis(7 + 23 * moment));
        let reported = said.iter().filter_map(|l| l.strip_prefix("wrote ")?.parse().ok()).max().unwrap_or(1);
        let state = State::open(dir.path(), Mode::Existing).unwrap();
        let found = state.newest_intact().unwrap();
        assert!(found.skipped.is_empty(), "{:?}", found.skipped);
        let cut = found.cut.unwrap();
        assert!(cut.clock() == reported || cut.clock() == reported + 1, "{} after {reported}", cut.clock());
        assert_whole(&cut);
        assert_eq!(cut_folders(dir.path()).len(), state.cuts().unwrap().len());
    }
}

#[test]
fn a_cut_whose_writer_is_dropped_never_was() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    let cut = state.begin_cut(CutSpec { clock: 2, workers: 1, tables: vec![table()] }).unwrap();
    cut.worker(WorkerId(0), &worker(2)).unwrap();
    drop(cut);
    assert_eq!(clocks(&state), [1]);
    assert_eq!(cut_folders(dir.path()).len(), 1);
}
