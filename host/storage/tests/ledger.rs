//! The coordinator's folder: what is durable, what a kill leaves, and what does not belong.

use slackline_storage::{ErrorKind, Ledger, Mode, State};
use std::fs;

fn digest(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}

#[test]
fn changes_come_back_in_order_and_a_snapshot_takes_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let record = |n: u32| n.to_string().into_bytes();
    let ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!((ledger.snapshot().unwrap(), ledger.changes().unwrap().len()), (None, 0));
    ledger.append((0..300).map(record).collect()).unwrap();
    ledger.append(vec![]).unwrap();
    drop(ledger);

    let ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.changes().unwrap(), (0..300).map(record).collect::<Vec<_>>());
    assert_eq!(ledger.since_snapshot(), 300);
    ledger.replace(b"all of it".to_vec()).unwrap();
    ledger.append(vec![record(300)]).unwrap();
    assert_eq!(ledger.since_snapshot(), 1);
    drop(ledger);

    let ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.snapshot().unwrap().as_deref(), Some(&b"all of it"[..]));
    ledger.append(vec![record(301)]).unwrap();
    assert_eq!(ledger.changes().unwrap(), [record(300), record(301)]);
}

#[test]
fn a_cluster_folder_and_a_job_folder_are_not_taken_for_each_other() {
    let (cluster, job) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Ledger::open(cluster.path()).unwrap());
    drop(State::open(job.path(), Mode::Create).unwrap());
    let e = Ledger::open(job.path()).map(drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotAState);
    assert!(e.to_string().contains("not a cluster folder"), "{e}");
    assert_eq!(State::open(cluster.path(), Mode::Create).map(drop).unwrap_err().kind(), ErrorKind::NotAState);
}

#[test]
fn one_process_at_a_time_holds_it() {
    let dir = tempfile::tempdir().unwrap();
    let held = Ledger::open(dir.path()).unwrap();
    let e = Ledger::open(dir.path()).map(drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Locked);
    assert!(e.to_string().contains(&format!("process {}", std::process::id())), "{e}");
    drop(held);
    assert!(Ledger::open(dir.path()).is_ok());
}

#[test]
fn an_upload_counts_only_when_it_is_what_was_announced() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(dir.path()).unwrap();
    let blobs = ledger.blobs();
    let bytes = b"some bytes".as_slice();
    let send = |announced: u64, bytes: &[u8], as_digest: &str| {
        let mut upload = blobs.upload(announced)?;
        bytes.chunks(3).try_for_each(|c| upload.write(c))?;
        upload.finish(as_digest).map(|_| ())
    };
    for (announced, as_digest) in [(9, digest(bytes)), (11, digest(bytes)), (10, digest(b"others"))] {
        assert!(send(announced, bytes, &as_digest).is_err());
    }
    assert_eq!(fs::read_dir(dir.path().join("blobs")).unwrap().count(), 0, "nothing is left of what was refused");
    send(10, bytes, &digest(bytes)).unwrap();
    assert_eq!(blobs.read(&digest(bytes), 10).unwrap(), bytes);
    assert!(blobs.read(&digest(bytes), 9).is_err());
    assert!(blobs.path(&digest(b"others")).unwrap().is_none());
    for outside in ["../control", "blake3:../x", "", "/etc/passwd"] {
        assert_eq!(blobs.path(outside).unwrap_err().kind(), ErrorKind::Invalid);
    }
    blobs.retain(|_| true).unwrap();
    assert!(blobs.path(&digest(bytes)).unwrap().is_some());
    blobs.retain(|_| false).unwrap();
    assert!(blobs.path(&digest(bytes)).unwrap().is_none());
}

#[test]
fn a_damaged_blob_is_not_given_out_and_unfinished_ones_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = b"some bytes".as_slice();
    let ledger = Ledger::open(dir.path()).unwrap();
    let blobs = ledger.blobs();
    let mut real = blobs.upload(10).unwrap();
    real.write(bytes).unwrap();
    let path = real.finish(&digest(bytes)).unwrap();
    fs::write(&path, b"same bytes").unwrap();
    assert_eq!(blobs.read(&digest(bytes), 100).unwrap_err().kind(), ErrorKind::Damaged);
    fs::write(dir.path().join("blobs/partial-7"), b"x").unwrap();
    drop(ledger);
    drop(Ledger::open(dir.path()).unwrap());
    assert!(!dir.path().join("blobs/partial-7").exists());
}
