//! Runs that are killed or interrupted: what follows is the same, to the last bit, as if nothing had happened (C11, C13).

use slackline_blackbox::{Watched, dice, digits_job, done, lines, metrics, misfit_job, refused, said, say, topics_job};
use std::path::Path;
use std::time::{Duration, Instant};

/// Kills `job.toml` of `dir` ten times at chosen moments, resumes each, and compares with an undisturbed run.
fn check_kills(dir: &Path, clocks: u64, mut seed: u64) {
    println!("moments are chosen by seed {seed:#x}");
    let whole = said(dir, "run job.toml --json --state whole");
    let (want, seconds) = (metrics(&whole), done(&whole)["seconds"].as_f64().unwrap());
    let clock_us = (seconds * 1e6 / clocks as f64) as u64 + 1;
    let mut resumed_from = Vec::new();
    for i in 0..10 {
        let (clock, more) = (dice(&mut seed, clocks - clocks / 10), dice(&mut seed, clock_us));
        let run = Watched::start(dir, &format!("run job.toml --json --state s{i}"));
        run.wait_for("clock", Some(clock));
        std::thread::sleep(Duration::from_micros(more));
        run.signal("KILL");
        let killed = run.end();
        let out = said(dir, &format!("run job.toml --json --state s{i} --resume"));
        assert_eq!(metrics(&out), want, "killed {more} µs after clock {clock}: {killed:?}");
        resumed_from.extend(done(&out)["resumed_from"].as_u64());
    }
    assert!(resumed_from.iter().any(|c| *c > 0), "no run went on from a cut: {resumed_from:?}");
}

#[test]
fn a_killed_mlr_resumed_gives_the_bits_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 250\n[cuts]\nevery = 7\n[evaluate]\nevery = 50\n");
    check_kills(dir.path(), 250, 0x51ac);
}

#[test]
fn a_killed_lda_resumed_gives_the_bits_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[clock]\nmax = 600\n[cuts]\nevery = 5\n");
    check_kills(dir.path(), 600, 0x1da);
}

#[test]
fn a_run_killed_before_its_first_cut_starts_over() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 200\n[cuts]\nevery = 1000\n");
    let want = metrics(&said(dir.path(), "run job.toml --json --state whole"));
    let run = Watched::start(dir.path(), "run job.toml --json --state s");
    assert!(run.wait_for("clock", Some(3)));
    run.signal("KILL");
    run.end();
    let out = said(dir.path(), "run job.toml --json --state s --resume");
    let told = lines(&out);
    let notice = told.iter().find(|e| e["event"] == "notice").expect("a notice");
    assert!(notice["message"].as_str().unwrap().contains("no complete cut"), "{notice}");
    assert_eq!(metrics(&out), want);
}

#[test]
fn a_finished_job_resumed_says_the_same_and_goes_on_when_given_more_clocks() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[clock]\nmax = 30\n");
    let want = metrics(&said(dir.path(), "run job.toml --json --state whole"));
    let first = metrics(&said(dir.path(), "run job.toml --json --state s --clocks 12"));
    let again = said(dir.path(), "run job.toml --json --state s --clocks 12 --resume");
    assert_eq!(metrics(&again), first);
    assert_eq!(done(&again)["clocks"], 12);
    let more = said(dir.path(), "run job.toml --json --state s --resume");
    assert_eq!((metrics(&more), &done(&more)["resumed_from"]), (want, &12.into()));
}

#[test]
fn an_interrupted_run_ends_its_clock_writes_a_cut_and_says_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    // Steps of about a tenth of a second, so that the signal comes in the middle.
    let job = misfit_job(dir.path(), "slow", 0);
    let slow = format!("run {job} --json --state s --set cuts.every=1000 --set data.batch=20");
    let run = Watched::start(dir.path(), &format!("{slow} --clocks 40"));
    assert!(run.wait_for("clock", Some(1)));
    run.signal("INT");
    let begun = Instant::now();
    let out = run.end();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    refused(&out, 130, &["interrupted; go on with: slackline run job.toml ", " --state s --resume"]);
    let last: serde_json::Value =
        serde_json::from_slice(out.stdout.trim_ascii().rsplit(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["status"]), (&"done".into(), &"interrupted".into()));
    let clocks = last["clocks"].as_u64().unwrap();
    assert!((2..40).contains(&clocks), "{clocks}");
    assert_eq!(last["cuts"]["newest"], clocks);
    // The advice holds as it stands, flags included. It is taken with a bound of two more clocks.
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let advice = text.trim_end().rsplit_once("slackline ").unwrap().1;
    assert!(advice.contains("--set data.batch=20") && advice.contains("--clocks 40"), "{advice}");
    let advice = advice.replace("--clocks 40", &format!("--clocks {} --json", clocks + 2));
    let out = said(dir.path(), &advice);
    // Every row of every clock was counted once.
    assert_eq!(done(&out)["metrics"]["counted"], (clocks + 2) as f64 * 40.0);
}

#[test]
fn an_interrupted_mlr_resumed_gives_the_bits_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    digits_job(dir.path(), "[clock]\nmax = 400\n[cuts]\nevery = 1000\n");
    let want = metrics(&said(dir.path(), "run job.toml --json --state whole"));
    let run = Watched::start(dir.path(), "run job.toml --json --state s");
    assert!(run.wait_for("clock", Some(20)));
    run.signal("INT");
    refused(&run.end(), 130, &["--resume"]);
    assert_eq!(metrics(&said(dir.path(), "run job.toml --json --state s --resume")), want);
}

#[test]
fn a_second_interrupt_ends_at_once_and_leaves_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "loop", 3);
    said(dir.path(), &format!("run {job} --json --state s --clocks 3"));
    let mut run = Watched::start(dir.path(), &format!("run {job} --json --state s --resume"));
    assert!(run.wait_for("started", None));
    run.signal("INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(!run.has_ended(), "a clock that does not end is waited for");
    run.signal("INT");
    let begun = Instant::now();
    assert_eq!(run.end().status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let out = say(dir.path(), "table export count --state s --to t.csv --json");
    assert_eq!(lines(&out)[0]["clock"], 3);
}
