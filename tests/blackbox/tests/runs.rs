//! How a run goes: what its results depend on, how stale its reads are, when it ends, and what it says.

use slackline_blackbox::{digits_job, done, lines, metrics, misfit_job, output, root, said, topics_job};
use std::path::Path;

#[test]
fn under_bsp_results_depend_on_seed_and_workers_alone() {
    let dir = tempfile::tempdir().unwrap();
    let job = digits_job(dir.path(), "[clock]\nmax = 10\n[consistency]\nmodel = \"bsp\"\n");
    let run = |state: &str, more: &[&str]| {
        metrics(&output(dir.path(), &[&["run", &job, "--json", "--state", state], more].concat()))
    };
    for workers in ["1", "2", "4"] {
        let with = |name: &str, shards: &str| {
            let set = format!("job.shards={shards}");
            run(&format!("{name}{workers}"), &["--workers", workers, "--set", &set])
        };
        assert_eq!(with("a", "1"), with("b", "3"), "{workers} workers");
    }
    assert_ne!(run("x", &["--seed", "1"]), run("y", &["--seed", "2"]));
}

#[test]
fn reads_are_never_staler_than_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let job = digits_job(dir.path(), "[clock]\nmax = 20\nevery = \"batch\"\n");
    for (model, bound) in [("bsp", 0), ("ssp", 3), ("essp", 3), ("async", u64::MAX)] {
        let mut args = vec!["run", &job, "--json", "--state", model, "--consistency", model];
        if bound == 3 {
            args.extend(["--staleness", "3"]);
        }
        let said = lines(&output(dir.path(), &args));
        let done = said.last().unwrap();
        let gaps = done["staleness"].as_object().unwrap();
        assert!(!gaps.is_empty());
        assert!(gaps.keys().all(|gap| gap.parse::<u64>().unwrap() <= bound), "{model}: {gaps:?}");
        assert_eq!(model == "async", done["notices"].to_string().contains("unsafe"));
    }
}

#[test]
fn the_topics_example_runs_and_its_report_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let job = root().join("examples/topics/job.toml");
    let page = dir.path().join("out.html");
    let args = ["run", job.to_str().unwrap(), "--state", "s", "--clocks", "12", "--report", page.to_str().unwrap()];
    let out = output(Path::new(dir.path()), &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).contains("topics"));
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.contains("topics") && !text.contains("src=\"http") && !text.contains("href=\"http"));
}

#[test]
fn every_worker_count_and_seed_of_lda_has_its_own_bits() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[clock]\nmax = 8\n");
    let run = |words: &str| metrics(&said(dir.path(), &format!("run job.toml --json {words}")));
    let mut all = Vec::new();
    for workers in [1, 2, 4] {
        let with =
            |shards: u32| run(&format!("--workers {workers} --set job.shards={shards} --state {workers}-{shards}"));
        all.push(with(1));
        assert_eq!(all.last().unwrap(), &with(3), "{workers} workers");
    }
    all.push(run("--workers 2 --seed 2 --state seed"));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
}

#[test]
fn a_stop_rule_ends_the_job_at_the_clock_where_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    // The metric never changes, so it is best at clock 0 and has not improved for three clocks at clock 3.
    let rule = "--set stop.metric=train_mean --set stop.patience=3";
    let end = done(&said(dir.path(), &format!("run {job} --json --state p {rule}")));
    assert_eq!((&end["status"], &end["clocks"]), (&"stopped".into(), &4.into()), "{end}");
    assert!(end["reason"].as_str().unwrap().contains("train_mean has not improved"), "{end}");
    // Forty rows a clock are counted, so the rule holds at the end of the second evaluation.
    let rule = "--set stop.metric=counted --set stop.above=150 --set evaluate.every=2";
    let end = done(&said(dir.path(), &format!("run {job} --json --state a {rule}")));
    assert_eq!((&end["status"], &end["clocks"]), (&"stopped".into(), &4.into()), "{end}");
}

#[test]
fn evaluations_fall_on_their_clocks_and_once_on_the_final_model() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    let all = lines(&said(dir.path(), &format!("run {job} --json --state s --clocks 7 --set evaluate.every=3")));
    let clocks: Vec<_> = all.iter().filter(|e| e["event"] == "clock").collect();
    assert_eq!(clocks.len(), 7);
    for (clock, event) in (0u64..).zip(&clocks) {
        assert_eq!(event["clock"], clock);
        assert_eq!(event["metrics"]["counted"].is_number(), clock % 3 == 2, "{event}");
    }
    assert_eq!(all.last().unwrap()["metrics"]["counted"], 7.0 * 40.0);
}

#[test]
fn a_clock_is_an_epoch_a_batch_or_a_number_of_batches() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    // Two workers of twenty rows in batches of five.
    for (every, rows) in [("epoch", 40.0), ("batch", 10.0), ("3", 30.0)] {
        let words = format!("run {job} --json --state {every} --set clock.every={every} --clocks 5");
        assert_eq!(done(&said(dir.path(), &words))["metrics"]["counted"], 5.0 * rows, "{every}");
    }
}

#[test]
fn flags_and_set_change_what_the_file_says() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "panic", 0);
    let words = format!("run {job} --json --state s --set mode=honest --set data.batch=4 --workers 1 --clocks 2");
    let end = done(&said(dir.path(), &words));
    assert_eq!((&end["clocks"], end["workers"].as_array().unwrap().len()), (&2.into(), 1));
    said(dir.path(), "table export count --state s --to t.csv");
    let table = std::fs::read_to_string(dir.path().join("t.csv")).unwrap();
    assert!(table.ends_with("\n0,80,1560,20,0\n"), "eighty rows in twenty steps: {table}");
}

#[test]
fn without_a_terminal_output_is_plain_lines() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    let out = said(dir.path(), &format!("run {job} --state s"));
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(!text.contains(['\r', '\u{1b}']) && out.stderr.is_empty(), "{text}");
    for line in ["misfit: ", "clock 1/6  ", "clock 6/6  ", "cut at clock ", "done after 6 clocks in "] {
        assert!(text.lines().any(|l| l.starts_with(line)), "no line {line:?} in:\n{text}");
    }
}

#[test]
fn the_report_is_one_page_with_the_topics_in_it() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[clock]\nmax = 4\n");
    let out = said(dir.path(), "run job.toml --json --state s --report out.html");
    let page = std::fs::read_to_string(dir.path().join("out.html")).unwrap();
    for load in ["src=", "url(", "@import", "<link", "<script src"] {
        assert!(!page.contains(load), "{load}");
    }
    let end = done(&out);
    let digest = end["plugin"]["digest"].as_str().unwrap();
    for part in ["test_perplexity", "staleness", "consistency.model", digest.trim_start_matches("blake3:")] {
        assert!(page.contains(part), "no {part} in the page");
    }
    let topics = end["views"][0]["lines"].as_array().unwrap();
    assert_eq!(topics.len(), 4);
    for word in topics.iter().flat_map(|t| t.as_array().unwrap()) {
        assert!(page.contains(word.as_str().unwrap()), "{word}");
    }
}
