//! State folders that are somebody else's, too new, in use, or on a full disk: exit code 6, and nothing in them is lost.

use slackline_blackbox::{Watched, digits_job, done, lines, metrics, misfit_job, refused, said, say, write_job};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_folder_of_a_newer_release_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    said(dir.path(), &format!("run {job} --json --state s --clocks 2"));
    let format = dir.path().join("s/FORMAT");
    let ours = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, "slackline state 99\n").unwrap();
    for command in [
        format!("run {job} --state s --resume"),
        format!("run {job} --state s --fresh"),
        "table export count --state s --to t.csv".to_owned(),
        format!("predict {job} --state s --input x.csv --output p.csv"),
    ] {
        refused(&say(dir.path(), &command), 6, &["format 99", "newer slackline"]);
    }
    std::fs::write(&format, ours).unwrap();
    said(dir.path(), &format!("run {job} --json --state s --resume"));
}

#[test]
fn a_folder_in_use_is_refused_for_writing_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "loop", 2);
    said(dir.path(), &format!("run {job} --json --state s --clocks 2"));
    let run = Watched::start(dir.path(), &format!("run {job} --json --state s --resume"));
    assert!(run.wait_for("started", None));
    for flag in ["--resume", "--fresh"] {
        refused(&say(dir.path(), &format!("run {job} --state s {flag}")), 6, &["in use by process"]);
    }
    said(dir.path(), "table export count --state s --to t.csv");
    run.signal("KILL");
    run.end();
    // A killed run leaves no lock behind.
    refused(&say(dir.path(), &format!("run {job} --state s")), 6, &["clock 2", "--resume", "--fresh"]);
}

#[test]
fn what_is_no_state_folder_is_refused_by_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    std::fs::create_dir(dir.path().join("mine")).unwrap();
    std::fs::write(dir.path().join("mine/letter.txt"), "dear").unwrap();
    for flag in ["", "--resume", "--fresh"] {
        refused(&say(dir.path(), &format!("run {job} --state mine {flag}")), 6, &["mine", "not a state folder"]);
        refused(&say(dir.path(), &format!("run {job} --state x.csv {flag}")), 6, &["x.csv"]);
    }
    refused(&say(dir.path(), "table export count --state mine --to t.csv"), 6, &["not a state folder"]);
    refused(&say(dir.path(), "table export count --state none --to t.csv"), 6, &["no state folder none"]);
    assert_eq!(std::fs::read_dir(dir.path().join("mine")).unwrap().count(), 1);
}

#[test]
fn the_state_of_another_job_is_refused_with_every_difference() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    said(dir.path(), &format!("run {job} --json --state s"));
    let other = "--workers 1 --seed 9 --set data.batch=7 --consistency ssp --staleness 1 --set from=4";
    let words = ["job.workers", "job.seed", "data.batch", "consistency.model", "params.from", "--state"];
    refused(&say(dir.path(), &format!("run {job} --state s --resume {other}")), 6, &words);
    assert_eq!(done(&said(dir.path(), &format!("run {job} --json --state s --resume")))["clocks"], 6);
}

#[test]
fn a_damaged_newest_cut_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 6\n[cuts]\nevery = 2\n");
    let want = metrics(&said(dir.path(), "run job.toml --json --state s"));
    let mut cuts: Vec<_> = std::fs::read_dir(dir.path().join("s/cuts")).unwrap().map(|e| e.unwrap().path()).collect();
    cuts.sort();
    for file in std::fs::read_dir(cuts.last().unwrap()).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|e| e == "sst" || e == "blob") {
            let bytes = std::fs::read(&file).unwrap();
            std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    let out = said(dir.path(), "run job.toml --json --state s --resume");
    assert!(lines(&out).iter().any(|l| l["event"] == "notice" && l["message"].as_str().unwrap().contains("damaged")));
    assert_eq!(metrics(&out), want);
}

/// A tmpfs of a few megabytes.
struct Mount(PathBuf);

impl Mount {
    fn new(dir: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(dir).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(dir).output();
        if mounted.is_ok_and(|out| out.status.success()) {
            return Some(Self(dir.to_owned()));
        }
        println!("skipped: this test mounts a small tmpfs, which is not permitted here");
        None
    }

    fn resize(&self, size: &str) {
        let out = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).output().unwrap();
        assert!(out.status.success(), "{out:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a failed test may still hold files.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_costs_the_cut_and_no_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    let Some(mount) = Mount::new(&disk, "48m") else { return };
    std::fs::write(dir.path().join("wide.libsvm"), "0 1:1 300000:1\n1 2:1 7:1\n").unwrap();
    // Two tables of 2.4 MB, one of noise that does not compress; every cut is kept, so that they fill the disk.
    write_job(
        dir.path(),
        "[job]\nname = \"wide\"\nplugin = \"mlr\"\n[data]\ntrain = { path = \"wide.libsvm\" }\n[clock]\nmax = 60\n\
         [cuts]\nevery = 1\nkeep = 1000\n[tables.weights]\ninit = { kind = \"normal\", mean = 0.0, sd = 1.0 }\n",
    );
    let want = metrics(&said(dir.path(), "run job.toml --json --state whole --set cuts.keep=1"));
    let out = say(dir.path(), "run job.toml --json --state disk/s");
    refused(&out, 6, &["No space", "free some space", "cuts are still good"]);
    // What was complete is still there, and the run goes on from it once there is space.
    said(dir.path(), "table export weights --state disk/s --to w.npy --json");
    mount.resize("1g");
    let out = said(dir.path(), "run job.toml --json --state disk/s --resume");
    assert!(done(&out)["resumed_from"].as_u64().unwrap() > 2, "{:?}", done(&out)["resumed_from"]);
    assert_eq!(metrics(&out), want);
}

#[test]
fn a_full_disk_is_told_and_the_cut_on_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    let Some(_mount) = Mount::new(&disk, "32m") else { return };
    digits_job(dir.path(), "[clock]\nmax = 4\n");
    said(dir.path(), "run job.toml --json --state disk/s");
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1u8; 64 << 20]).expect_err("the disk is full");
    refused(&say(dir.path(), "run job.toml --json --state disk/s --resume --clocks 40"), 6, &["disk/s", "space"]);
    let exported = said(dir.path(), "table export weights --state disk/s --to w.csv --json");
    assert_eq!(lines(&exported)[0]["clock"], 4);
    std::fs::remove_file(ballast).unwrap();
    said(dir.path(), "run job.toml --json --state disk/s --resume --clocks 40");
}
