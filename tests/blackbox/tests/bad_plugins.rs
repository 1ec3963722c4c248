//! Plugins that misbehave: a message, an exit code, and a state folder that is still good.

use slackline_blackbox::{lines, misfit_job, output, refused, said, say};

/// The misfit does `mode` from clock 2 on: the run fails with `exit` saying `words`, and the cut before is readable.
fn check(mode: &str, exit: i32, words: &[&str], flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), mode, 2);
    let args = [&["run", &job, "--json", "--state", "s"], flags].concat();
    refused(&output(dir.path(), &args), exit, words);
    let out = output(dir.path(), &["table", "export", "count", "--state", "s", "--to", "count.csv", "--json"]);
    let said = lines(&out);
    assert!(said[0]["clock"].as_u64().unwrap() >= 1, "{said:?}");
}

#[test]
fn a_panic_shows_its_message_and_place() {
    check("panic", 5, &["step was asked to fail in clock 2", "lib.rs"], &[]);
}

#[test]
fn a_loop_is_ended_by_the_watchdog_or_by_an_interrupt() {
    for means in ["process", "epoch"] {
        let words = ["outlived its deadline in step", "on worker 0", "step_deadline"];
        check("loop", 5, &words, &["--interrupt", means, "--step-deadline", "1s"]);
    }
}

#[test]
fn memory_handles_and_stack_are_bounded() {
    check("memory", 5, &["memory"], &["--set", "limits.memory=\"64MiB\""]);
    check("huge-buffer", 5, &["over the limit on memory", "`[limits] memory`"], &[]);
    check("handles", 5, &["over the limit on handles", "must drop"], &[]);
    // A guest keeps its frames in its own memory too, and that is what gives out first.
    check("recursion", 5, &["trapped in step", "deeper"], &[]);
    check("huge-list", 5, &["memory limit", "`[limits] memory`"], &["--set", "limits.memory=\"64MiB\""]);
}

#[test]
fn a_metric_that_is_not_finite_ends_the_job() {
    check("nan", 5, &["train_mean", "NaN", "clock 2"], &[]);
}

#[test]
fn wrong_table_calls_name_table_and_bound() {
    check("row-beyond", 5, &["row 7", "count"], &[]);
    check("unequal-lists", 5, &["count", "3 deltas"], &[]);
    check("error", 5, &["step has nothing to say to such data"], &[]);
}

#[test]
fn a_plugin_that_fails_before_it_runs_leaves_the_folder_usable() {
    for (mode, exit, words) in [
        ("wrong-width", 5, &["count", "width"][..]),
        ("wrong-type", 5, &["count", "i64"]),
        ("no-table", 5, &["cuont"]),
        ("panic-in-create", 5, &["create was asked to fail"]),
        ("huge-table", 2, &["count"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let job = misfit_job(dir.path(), mode, 0);
        refused(&output(dir.path(), &["run", &job, "--json", "--state", "s"]), exit, words);
        let honest = ["run", &job, "--json", "--state", "s", "--fresh", "--set", "mode=honest"];
        assert_eq!(lines(&output(dir.path(), &honest)).last().unwrap()["status"], "done", "{mode}");
    }
}

#[test]
fn a_flood_of_lines_is_cut_short_and_the_job_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "log-flood", 0);
    let said = lines(&output(dir.path(), &["run", &job, "--json", "--state", "s"]));
    let logs = said.iter().filter(|l| l["event"] == "log").count();
    assert!(logs > 0 && logs < 20_000, "{logs} of millions of lines");
    assert_eq!(said.last().unwrap()["status"], "done");
}

#[test]
fn a_metric_that_the_manifest_lacks_is_named() {
    check("unknown-metric", 5, &["train_maen"], &[]);
}

#[test]
fn a_plugin_that_will_not_be_restored_keeps_its_cut() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "unrestorable", 0);
    said(dir.path(), &format!("run {job} --json --state s --clocks 2"));
    let out = say(dir.path(), &format!("run {job} --json --state s --resume"));
    refused(&out, 5, &["answered restore with an error", "what an older version saved", "stays as it is"]);
    assert_eq!(lines(&said(dir.path(), "table export count --state s --to t.csv --json"))[0]["clock"], 2);
}

#[test]
fn a_panic_in_an_evaluation_is_told_and_the_cuts_before_it_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "panic-in-evaluate", 0);
    let out = say(dir.path(), &format!("run {job} --json --state s --set evaluate.every=4"));
    refused(&out, 5, &["trapped in evaluate", "evaluate was asked to fail", "lib.rs"]);
    said(dir.path(), "table export count --state s --to t.csv");
}

#[test]
fn a_model_outlives_a_final_evaluation_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "panic-in-evaluate", 0);
    let out = say(dir.path(), &format!("run {job} --json --state s --set cuts.every=1000"));
    refused(&out, 5, &["evaluate was asked to fail"]);
    assert_eq!(lines(&said(dir.path(), "table export count --state s --to t.csv --json"))[0]["clock"], 6);
}

#[test]
fn slow_steps_within_their_deadline_are_legal() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "slow", 0);
    for means in ["process", "epoch"] {
        let words = format!("run {job} --json --state {means} --clocks 1 --interrupt {means} --step-deadline 60s");
        assert_eq!(lines(&said(dir.path(), &words)).last().unwrap()["status"], "done");
    }
}
