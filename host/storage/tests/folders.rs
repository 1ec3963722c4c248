//! Opening folders: whose they are, who holds them, and what does not belong.

mod common;

use common::{assert_whole, clocks, cut_folders, dense, sparse, table, worker, write_cut};
use serde_json::json;
use slackline_core::ports::SparseRows;
use slackline_core::{DType, TableId, Values, WorkerId};
use slackline_storage::{CutSpec, ErrorKind, FORMAT_VERSION, Job, Mode, State, differences};
use std::fs;
use std::path::Path;

fn refusal(dir: &Path, mode: Mode) -> (ErrorKind, String) {
    let e = State::open(dir, mode).map(|_| ()).unwrap_err();
    assert!(e.to_string().contains(&dir.display().to_string()), "{e}");
    (e.kind(), e.to_string())
}

#[test]
fn a_folder_that_is_not_there_is_made_only_when_asked() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("a/b");
    assert_eq!(refusal(&dir, Mode::Existing).0, ErrorKind::Missing);
    assert_eq!(refusal(&dir, Mode::ReadOnly).0, ErrorKind::Missing);
    assert!(!dir.exists());
    drop(State::open(&dir, Mode::Create).unwrap());
    assert!(State::open(&dir, Mode::Existing).unwrap().job().unwrap().is_none());
}

#[test]
fn a_folder_with_other_things_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    for mode in [Mode::Create, Mode::Existing, Mode::ReadOnly] {
        assert_eq!(refusal(dir.path(), mode).0, ErrorKind::NotAState);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let file = dir.path().join("thesis.tex");
    for mode in [Mode::Create, Mode::Existing, Mode::ReadOnly] {
        assert_eq!(refusal(&file, mode).0, ErrorKind::NotAState);
    }
}

#[test]
fn other_formats_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    drop(State::open(dir.path(), Mode::Create).unwrap());
    let check = |text: &str, kind: ErrorKind, words: &str| {
        fs::write(dir.path().join("FORMAT"), text).unwrap();
        for mode in [Mode::Create, Mode::Existing, Mode::ReadOnly] {
            let (found, message) = refusal(dir.path(), mode);
            assert_eq!(found, kind);
            assert!(message.contains(words), "{message}");
        }
    };
    check(&format!("slackline state {}\n", FORMAT_VERSION + 1), ErrorKind::NewerVersion, "use a newer slackline");
    check("slackline state 0\n", ErrorKind::OlderVersion, "format 0");
    check("something else\n", ErrorKind::NotAState, "not a state folder");
    check("slackline state x\n", ErrorKind::NotAState, "not a state folder");
    check("", ErrorKind::NotAState, "not a state folder");
}

#[test]
fn one_writes_and_any_number_read() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    let (kind, message) = refusal(dir.path(), Mode::Existing);
    assert_eq!(kind, ErrorKind::Locked);
    assert!(message.contains(&format!("process {}", std::process::id())), "{message}");

    let one = State::open(dir.path(), Mode::ReadOnly).unwrap();
    let two = State::open(dir.path(), Mode::ReadOnly).unwrap();
    let opened = one.newest_intact().unwrap().cut.unwrap();
    for clock in 2..6 {
        write_cut(&state, clock).unwrap();
    }
    // A cut that was open stays readable after the run has let it go; one that was not is reported as gone.
    assert_whole(&opened);
    let found = two.newest_intact().unwrap();
    assert!(found.cut.is_none());
    assert_eq!(found.skipped[0].reason.kind(), ErrorKind::Missing);
    let three = State::open(dir.path(), Mode::ReadOnly).unwrap();
    assert_whole(&three.open_cut(5).unwrap());

    let e = three.put_document("x", b"y").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid);
    assert!(three.begin_cut(CutSpec { clock: 9, workers: 0, tables: vec![] }).is_err());
    drop(state);
    State::open(dir.path(), Mode::Existing).unwrap();
}

#[test]
fn the_writers_log_is_not_touched_by_readers() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    write_cut(&state, 1).unwrap();
    let names = |sub: &str| -> Vec<_> {
        let all = fs::read_dir(dir.path().join(sub)).unwrap();
        let mut all: Vec<_> = all.map(|e| e.unwrap().path()).collect();
        all.sort();
        all
    };
    let before = names("control");
    let reading = State::open(dir.path(), Mode::ReadOnly).unwrap();
    assert_whole(&reading.open_cut(1).unwrap());
    assert_eq!(names("control"), before);
}

#[test]
fn a_folder_of_another_job_shows_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let document = |topics: u32| json!({"name": "topics", "params": {"topics": topics}, "seed": 1});
    let job = Job { fingerprint: "f1".into(), document: document(20) };
    State::open(dir.path(), Mode::Create).unwrap().put_job(&job).unwrap();
    let found = State::open(dir.path(), Mode::ReadOnly).unwrap().job().unwrap().unwrap();
    assert_eq!(found, job);
    let differing = differences(&found.document, &document(30));
    assert_eq!(differing.iter().map(|d| d.key.as_str()).collect::<Vec<_>>(), ["params.topics"]);
}

#[test]
fn blobs_and_documents_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    let component = vec![7u8; 3 << 20];
    let digest = state.put_blob(&component).unwrap();
    assert_eq!(digest, blake3::hash(&component).to_hex().to_string());
    assert_eq!(state.put_blob(&component).unwrap(), digest);
    state.put_document("plan", b"old").unwrap();
    state.put_document("plan", b"new").unwrap();
    drop(state);
    let state = State::open(dir.path(), Mode::Existing).unwrap();
    assert_eq!(state.blob(&format!("blake3:{digest}")).unwrap(), component);
    assert_eq!(state.document("plan").unwrap().unwrap(), b"new");
    assert!(state.document("plans").unwrap().is_none());
    assert_eq!(state.blob(&"0".repeat(64)).unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(state.blob("../../etc").unwrap_err().kind(), ErrorKind::Invalid);
    assert!(state.put_document("", b"").is_err());
}

#[test]
fn only_the_newest_cuts_are_kept_and_the_folder_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    for clock in 1..20 {
        write_cut(&state, clock * 10).unwrap();
        assert!(cut_folders(dir.path()).len() <= 2);
    }
    assert_eq!(clocks(&state), [180, 190]);
    state.keep_cuts(3);
    write_cut(&state, 200).unwrap();
    assert_eq!(clocks(&state), [180, 190, 200]);
    // The same clock again replaces the cut.
    write_cut(&state, 200).unwrap();
    assert_eq!(clocks(&state), [180, 190, 200]);
    assert_eq!(cut_folders(dir.path()).len(), 3);
    assert_whole(&state.open_cut(200).unwrap());
    assert_eq!(state.newest_complete().unwrap().unwrap().clock, 200);
    state.drop_cuts_after(None).unwrap();
    assert!(state.newest_complete().unwrap().is_none());
    assert!(state.newest_intact().unwrap().cut.is_none());
    assert!(cut_folders(dir.path()).is_empty());
    assert_eq!(state.open_cut(200).map(|_| ()).unwrap_err().kind(), ErrorKind::Missing);
}

#[test]
fn an_incomplete_cut_cannot_be_committed() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    let check = |words: &str, give: &dyn Fn(&slackline_storage::CutWriter)| {
        let cut = state.begin_cut(CutSpec { clock: 1, workers: 1, tables: vec![dense("t", DType::F64, 10, 2)] });
        let cut = cut.unwrap();
        give(&cut);
        let e = cut.commit(json!(null)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Invalid);
        assert!(e.to_string().contains(words) && e.to_string().contains("clock 1"), "{e}");
    };
    let rows = |n: usize| Values::F64(vec![1.0; n * 2]);
    let t = TableId(0);
    check("lacks worker 0", &|cut| cut.dense_rows(t, 0, rows(10).as_ref()).unwrap());
    check("lacks rows 0..10", &|cut| cut.worker(WorkerId(0), &worker(0)).unwrap());
    check("lacks rows 4..6", &|cut| {
        cut.worker(WorkerId(0), &worker(0)).unwrap();
        cut.dense_rows(t, 6, rows(4).as_ref()).unwrap();
        cut.dense_rows(t, 0, rows(4).as_ref()).unwrap();
    });
    check("has row 3 twice", &|cut| {
        cut.worker(WorkerId(0), &worker(0)).unwrap();
        cut.dense_rows(t, 0, rows(4).as_ref()).unwrap();
        cut.dense_rows(t, 3, rows(7).as_ref()).unwrap();
    });
    check("worker 0 is twice", &|cut| {
        cut.dense_rows(t, 0, rows(10).as_ref()).unwrap();
        cut.worker(WorkerId(0), &worker(0)).unwrap();
        cut.worker(WorkerId(0), &worker(0)).unwrap_err();
    });
    assert!(clocks(&state).is_empty());
    assert!(cut_folders(dir.path()).is_empty());
}

#[test]
fn parts_that_do_not_fit_their_table_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path(), Mode::Create).unwrap();
    let tables = vec![dense("d", DType::F32, 10, 4), sparse("s", DType::I32, 10, 8)];
    let cut = state.begin_cut(CutSpec { clock: 1, workers: 1, tables }).unwrap();
    let (d, s) = (TableId(0), TableId(1));
    let invalid = |r: slackline_storage::Result<()>| assert_eq!(r.unwrap_err().kind(), ErrorKind::Invalid);
    invalid(cut.dense_rows(d, 0, Values::F64(vec![0.0; 4]).as_ref()));
    invalid(cut.dense_rows(d, 0, Values::F32(vec![0.0; 5]).as_ref()));
    invalid(cut.dense_rows(d, 9, Values::F32(vec![0.0; 8]).as_ref()));
    invalid(cut.dense_rows(d, u64::MAX, Values::F32(vec![0.0; 8]).as_ref()));
    invalid(cut.dense_rows(s, 0, Values::I32(vec![0; 8]).as_ref()));
    invalid(cut.dense_rows(TableId(2), 0, Values::F32(vec![]).as_ref()));
    invalid(cut.worker(WorkerId(1), &worker(1)));
    let rows = |offsets: &[u32], columns: &[u32], values: usize| SparseRows {
        offsets: offsets.to_vec(),
        columns: columns.to_vec(),
        values: Values::I32(vec![1; values]),
    };
    for bad in [
        rows(&[], &[], 0),
        rows(&[0, 2], &[1, 2], 1),
        rows(&[0, 3], &[1, 2], 2),
        rows(&[1, 2], &[1, 2], 2),
        rows(&[0, 2, 1, 2], &[1, 2], 2),
        rows(&[0, 9, 2], &[1, 2], 2),
        rows(&[0, 2], &[2, 1], 2),
        rows(&[0, 2], &[1, 8], 2),
        SparseRows { values: Values::F32(vec![1.0; 2]), ..rows(&[0, 2], &[1, 2], 0) },
    ] {
        invalid(cut.sparse_rows(s, 0, &bad));
    }
    invalid(cut.sparse_rows(s, 10, &rows(&[0, 1], &[1], 1)));
    // None of the refusals harms the cut.
    cut.dense_rows(d, 0, Values::F32(vec![0.0; 40]).as_ref()).unwrap();
    cut.sparse_rows(s, 0, &rows(&[0; 11], &[], 0)).unwrap();
    cut.worker(WorkerId(0), &worker(0)).unwrap();
    cut.commit(json!(null)).unwrap();

    let cut = state.open_cut(1).unwrap();
    assert!(cut.dense_rows(d, 0..11).is_err());
    assert!(cut.dense_rows(s, 0..1).is_err());
    assert!(cut.sparse_rows(d, 0..1).is_err());
    assert!(cut.worker(WorkerId(1)).is_err());
    let u8_table = CutSpec { clock: 1, workers: 0, tables: vec![dense("d", DType::U8, 1, 1)] };
    assert!(state.begin_cut(u8_table).is_err());
    assert!(state.begin_cut(CutSpec { clock: 1, workers: 0, tables: vec![dense("d", DType::F32, 1, 0)] }).is_err());
    assert!(state.begin_cut(CutSpec { clock: 2, workers: 0, tables: vec![table()] }).is_ok());
}
