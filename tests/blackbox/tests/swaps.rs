//! Jobs that are changed while they train: every worker goes over at one clock or none does, nothing is lost or counted
//! twice, and what does not fit is refused while the old version goes on.

use serde_json::Value;
use slackline_blackbox::{Watched, dice, digits_job, misfit, misfit_job, refused, said, say, topics_job};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

/// The one JSON object that a command printed.
#[track_caller]
fn answer(out: &Output) -> Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("a JSON object")
}

/// Digits in clocks of some milliseconds, so that a swap falls between its first and its last.
fn digits(dir: &Path, more: &str) -> String {
    digits_job(dir, &format!("[evaluate]\nevery = 1\n[cuts]\nevery = 5\n{more}"))
}

const DIGITS: &str = "run job.toml --json --set data.batch=8 --clocks 600";

/// The misfit with steps of some milliseconds: eight a clock, each row counted once.
fn counting(dir: &Path, more: &str) -> String {
    let job = misfit_job(dir, "slow", 0);
    format!("run {job} --json --state s --set rounds=1000000 --set every_worker=true {more}")
}

/// A component that does the same and has another digest: a section that nobody reads follows.
fn misfit_again(dir: &Path) {
    let mut bytes = std::fs::read(misfit()).unwrap();
    bytes.extend([0, 6, 1, b'v', b'2', b'2', b'2', b'2']);
    std::fs::write(dir.join("again.wasm"), bytes).unwrap();
}

/// The lines of a run that is over, from where the watcher left off.
fn rest(out: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON ({e}): {l}"))).collect()
}

#[track_caller]
fn the<'a>(lines: &'a [Value], event: &str) -> &'a Value {
    lines.iter().find(|l| l["event"] == event).unwrap_or_else(|| panic!("no {event}: {lines:?}"))
}

/// Ends a run by asking, which must end it as Ctrl-C does.
#[track_caller]
fn stopped(dir: &Path, run: Watched) -> Vec<Value> {
    let stops = answer(&said(dir, "job stop --state s --json"))["stops_at"].as_u64().unwrap();
    let out = run.end();
    refused(&out, 130, &["interrupted; go on with: slackline run job.toml", "--state s --resume"]);
    let lines = rest(&out);
    let done = the(&lines, "done");
    assert_eq!((&done["status"], &done["clocks"]), (&"interrupted".into(), &stops.into()));
    assert_eq!(done["cuts"]["newest"], stops);
    lines
}

/// That every row of every clock was counted once, by a run that goes on from the cut for one clock more.
#[track_caller]
fn counted(dir: &Path, clocks: u64) {
    let more = counting(dir, &format!("--resume --clocks {}", clocks + 1));
    let out = said(dir, &more);
    assert_eq!(the(&rest(&out), "done")["metrics"]["counted"], (clocks + 1) as f64 * 40.0);
}

#[test]
fn changed_parameters_take_effect_at_the_clock_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    digits(dir.path(), "[clock]\nmax = 600\n");
    let plain = rest(&said(dir.path(), &format!("{DIGITS} --state whole")));
    let run = Watched::start(dir.path(), &format!("{DIGITS} --state s --report r.html"));
    assert!(run.wait_for("started", None));
    let swap = answer(&said(dir.path(), "job swap --state s --param l2=0.05 --at-clock 400 --json"));
    assert_eq!((&swap["clock"], &swap["to"]["version"]), (&400.into(), &2.into()));
    assert_eq!((&swap["from"]["params"]["l2"], &swap["to"]["params"]["l2"]), (&0.001.into(), &0.05.into()));
    let out = run.end();
    let lines = rest(&out);
    let event = the(&lines, "swap");
    assert_eq!((&event["clock"], &event["from"], &event["to"]), (&swap["clock"], &swap["from"], &swap["to"]));
    let clocks = |lines: &[Value]| -> Vec<(u64, Value)> {
        let clocks = lines.iter().filter(|l| l["event"] == "clock");
        clocks.map(|l| (l["clock"].as_u64().unwrap(), l["metrics"].clone())).collect()
    };
    let (was, is) = (clocks(&plain), clocks(&lines));
    let seen: Vec<u64> = is.iter().map(|(clock, _)| *clock).collect();
    assert_eq!(seen, (seen[0]..600).collect::<Vec<_>>(), "no clock is missing");
    for (clock, metrics) in &is {
        let same = was[*clock as usize].1 == *metrics;
        assert!(same == (*clock < 400), "clock {clock}: {metrics}");
        assert!(metrics["test_error"].as_f64().is_some_and(|e| e < 0.9), "{metrics}");
    }
    let done = the(&lines, "done");
    assert_eq!(done["versions"].as_array().unwrap().len(), 2);
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("<h2>Versions</h2>") && page.contains("asked for l2 = 0.05"));
    // The model is asked by the version that made it.
    std::fs::copy(
        slackline_blackbox::root().join("examples/digits/data/digits.test.scaled.libsvm"),
        dir.path().join("n.libsvm"),
    )
    .unwrap();
    said(dir.path(), "predict job.toml --state s --input n.libsvm --output p.csv");
}

#[test]
fn another_component_takes_over_and_every_row_is_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    misfit_again(dir.path());
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(2)));
    let before = answer(&said(dir.path(), "job show --state s --json"));
    let swap = answer(&said(dir.path(), "job swap ./again.wasm --state s --json"));
    assert_eq!(swap["from"]["digest"], before["version"]["digest"]);
    assert_ne!(swap["to"]["digest"], before["version"]["digest"]);
    let at = swap["clock"].as_u64().unwrap();
    assert!(at > before["clocks"][0].as_u64().unwrap());
    assert!(run.wait_for("clock", Some(at + 2)));
    let shown = answer(&said(dir.path(), "job show --state s --json"));
    assert_eq!(shown["version"], swap["to"]);
    let history = answer(&said(dir.path(), "job history --state s --json"));
    let versions = history["versions"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]["reason"]), (2, &"start".into()));
    assert_eq!((&versions[1]["since"], &versions[1]["reason"]), (&at.into(), &"asked for ./again.wasm".into()));
    for words in ["job show --state s", "job history --state s"] {
        let text = String::from_utf8(said(dir.path(), words).stdout).unwrap();
        assert!(text.contains("version 2: ") && text.contains("misfit"), "{text}");
    }
    let lines = stopped(dir.path(), run);
    let done = the(&lines, "done");
    assert_eq!(done["plugin"]["digest"], swap["to"]["digest"]);
    // The file is not needed any more: the component is in the state folder.
    std::fs::remove_file(dir.path().join("again.wasm")).unwrap();
    let clocks = done["clocks"].as_u64().unwrap();
    counted(dir.path(), clocks);
}

#[test]
fn a_rollback_brings_the_version_before_back() {
    let dir = tempfile::tempdir().unwrap();
    misfit_again(dir.path());
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    refused(&say(dir.path(), "job rollback --state s"), 2, &["no version to go back to"]);
    let swap = answer(&said(dir.path(), "job swap again.wasm --state s --param rounds=900000 --json"));
    let back = answer(&said(dir.path(), "job rollback --state s --json"));
    assert_eq!((&back["from"], &back["to"]["version"]), (&swap["to"], &3.into()));
    for key in ["digest", "params", "plugin"] {
        assert_eq!(back["to"][key], swap["from"][key], "{key}");
    }
    assert!(back["clock"].as_u64() > swap["clock"].as_u64());
    assert_eq!(back["reason"], "rollback to version 1");
    let clocks = the(&stopped(dir.path(), run), "done")["clocks"].as_u64().unwrap();
    counted(dir.path(), clocks);
}

#[test]
fn what_does_not_fit_is_refused_with_what_differs_and_the_old_version_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("odd.wasm"), wat::parse_str("(component)").unwrap()).unwrap();
    std::fs::write(dir.path().join("text.wasm"), "no component").unwrap();
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000 --set limits.step_deadline=3s"));
    assert!(run.wait_for("clock", Some(2)));
    let check = |words: &str, exit: i32, says: &[&str]| {
        refused(&say(dir.path(), &format!("job swap --state s {words}")), exit, says);
    };
    check("./odd.wasm", 4, &["odd.wasm", "slackline:plugin"]);
    check("./text.wasm", 4, &["text.wasm", "not WebAssembly"]);
    check("./missing.wasm", 4, &["missing.wasm", "No such file"]);
    check(".", 2, &["the plugin is \".\""]);
    check("./", 4, &["no file"]);
    check("nobody", 4, &["no bundled plugin", "mlr"]);
    check("mlr", 2, &["`every_worker` is not known", "goes on"]);
    let unset = "--param mode= --param rounds= --param from= --param every_worker=";
    check(&format!("mlr {unset}"), 4, &["column \"label\": absent against", "goes on"]);
    check("--param mode=huge-table", 4, &["table \"count\": dense, 1 × 4 f32 against dense, 1099511627776 × 4 f32"]);
    check("--param mode=wrong-width", 4, &["width"]);
    check("--param mode=unrestorable", 4, &["what an older version saved means nothing"]);
    check("--param mode=panic-in-create", 4, &["create was asked to fail"]);
    check("--param mode=more-state", 4, &["local state \"seen\": 1 × u64 against 2 × u64"]);
    check("--param mode=loop-in-restore", 4, &["deadline", "restore"]);
    check("--param mode=backwards", 2, &["mode"]);
    check("--param rouns=3", 2, &["`rouns` is not known", "`rounds`"]);
    check("--param rounds", 2, &["expected key=value"]);
    check("--staleness 2", 2, &["bsp", "no bound"]);
    check("--param rounds=5 --at-clock 1", 2, &["clock 1 has begun", "is the first that has not"]);
    check("--param rounds=5 --at-clock 100000", 2, &["the job ends before clock 100000"]);
    check("--param rounds=1000000", 2, &["nothing would change"]);
    refused(&say(dir.path(), "job swap --param rounds=5"), 2, &["--state DIR is missing"]);
    let shown = answer(&said(dir.path(), "job show --state s --json"));
    assert_eq!((&shown["version"]["version"], &shown["swap_at"]), (&1.into(), &Value::Null));
    let clocks = the(&stopped(dir.path(), run), "done")["clocks"].as_u64().unwrap();
    counted(dir.path(), clocks);
}

#[test]
fn a_version_that_one_worker_cannot_restore_at_its_clock_is_taken_back_from_all() {
    let dir = tempfile::tempdir().unwrap();
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    // The rehearsal comes before `from`, so that only worker 0 at its clock refuses; worker 1 has prepared by then.
    let at = answer(&said(dir.path(), "job show --state s --json"))["clocks"][0].as_u64().unwrap() + 100;
    let words = format!("--param mode=unrestorable-later --param every_worker=false --param from={at} --at-clock {at}");
    refused(
        &say(dir.path(), &format!("job swap --state s {words}")),
        4,
        &["worker 0", &format!("clock {at}"), "this clock means nothing", "every worker stays"],
    );
    assert!(run.wait_for("clock", Some(at + 1)));
    let shown = answer(&said(dir.path(), "job show --state s --json"));
    assert_eq!(shown["version"]["version"], 1);
    let lines = stopped(dir.path(), run);
    assert!(lines.iter().all(|l| l["event"] != "swap"));
    let clocks = the(&lines, "done")["clocks"].as_u64().unwrap();
    counted(dir.path(), clocks);
}

/// Swaps at a clock, kills at moments after it, resumes each, and compares with an undisturbed run that swapped there.
fn check_kills(dir: &Path, run: &str, change: &str, from: u64, clocks: u64, mut seed: u64) {
    println!("moments are chosen by seed {seed:#x}");
    let whole = Watched::start(dir, &format!("{run} --state s"));
    assert!(whole.wait_for("clock", Some(from)));
    let at = answer(&said(dir, &format!("job swap --state s {change} --json")))["clock"].as_u64().unwrap();
    assert!(at < clocks - 30, "swapped as late as {at}");
    let want = the(&rest(&whole.end()), "done")["metrics"].clone();
    let mut beyond = 0;
    for i in 0..5 {
        let state = format!("s{i}");
        let killed = Watched::start(dir, &format!("{run} --state {state}"));
        assert!(killed.wait_for("started", None));
        said(dir, &format!("job swap --state {state} {change} --at-clock {at}"));
        // The first is killed at once: the cut may be from before the swap.
        let later = if i == 0 { 0 } else { 12 + dice(&mut seed, clocks - at - 24) };
        killed.wait_for("clock", Some(at + later));
        std::thread::sleep(Duration::from_micros(dice(&mut seed, 5000)));
        killed.signal("KILL");
        killed.end();
        let out = said(dir, &format!("{run} --state {state} --resume"));
        let lines = rest(&out);
        let resumed = the(&lines, "started")["resumed_from"].as_u64().unwrap();
        let done = the(&lines, "done");
        let versions = done["versions"].as_array().unwrap().len();
        let lost = lines.iter().any(|l| l["message"].as_str().is_some_and(|m| m.contains("is lost: swap again")));
        assert_eq!(
            (versions, lost),
            if resumed < at { (1, true) } else { (2, false) },
            "resumed from {resumed}, at {at}"
        );
        if resumed >= at {
            beyond += 1;
            assert_eq!(done["metrics"], want, "killed {later} clocks after {at}, resumed from {resumed}");
        }
    }
    assert!(beyond >= 4, "{beyond}");
}

#[test]
fn a_swapped_mlr_killed_and_resumed_gives_the_bits_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    digits(dir.path(), "");
    check_kills(dir.path(), DIGITS, "--param l2=0.05 --param learning_rate=0.7", 250, 600, 0x5a1);
}

#[test]
fn a_swapped_lda_killed_and_resumed_gives_the_bits_of_an_undisturbed_run() {
    let dir = tempfile::tempdir().unwrap();
    topics_job(dir.path(), "[cuts]\nevery = 5\n");
    let run = "run job.toml --json --clocks 4000";
    check_kills(dir.path(), run, "--param alpha=0.2", 1500, 4000, 0x5a2);
}

#[test]
fn a_swap_after_the_last_cut_is_lost_with_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let words = counting(dir.path(), "--set cuts.every=100000");
    let run = Watched::start(dir.path(), &format!("{words} --clocks 90000"));
    assert!(run.wait_for("clock", Some(1)));
    said(dir.path(), "job swap --state s --param rounds=900000");
    run.signal("KILL");
    run.end();
    let lines = rest(&said(dir.path(), &format!("{words} --clocks 2 --resume")));
    let lost = lines.iter().find(|l| l["message"].as_str().is_some_and(|m| m.contains("is lost: swap again")));
    assert!(lost.is_some_and(|l| l["message"].as_str().unwrap().contains("rounds = 900000")), "{lines:?}");
    assert_eq!(the(&lines, "done")["versions"].as_array().unwrap().len(), 1);
}

#[test]
fn staleness_changes_for_all_from_the_clock_on() {
    let dir = tempfile::tempdir().unwrap();
    let words = counting(dir.path(), "--consistency ssp --staleness 3 --clocks 100000");
    let run = Watched::start(dir.path(), &words);
    assert!(run.wait_for("clock", Some(2)));
    let swap = answer(&said(dir.path(), "job swap --state s --staleness 0 --json"));
    assert_eq!((&swap["from"]["staleness"], &swap["to"]["staleness"]), (&3.into(), &0.into()));
    assert_eq!(swap["from"]["digest"], swap["to"]["digest"]);
    assert!(run.wait_for("clock", Some(swap["clock"].as_u64().unwrap() + 3)));
    let shown = answer(&said(dir.path(), "job show --state s --json"));
    let clocks: Vec<u64> = shown["clocks"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(clocks[0].abs_diff(clocks[1]) <= 1, "{clocks:?}");
    stopped(dir.path(), run);
    // A resumed run has the bound that it was swapped to.
    let out = said(dir.path(), &format!("{words} --resume").replace("--clocks 100000", "--clocks 1"));
    assert_eq!(the(&rest(&out), "started")["staleness_bound"], 0);
}

#[test]
fn a_second_swap_is_told_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    let at = answer(&said(dir.path(), "job show --state s --json"))["clocks"][0].as_u64().unwrap() + 150;
    let first = Watched::start(dir.path(), &format!("job swap --state s --param rounds=900000 --at-clock {at} --json"));
    while answer(&said(dir.path(), "job show --state s --json"))["swap_at"].is_null() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = say(dir.path(), "job swap --state s --param rounds=800000");
    refused(&second, 2, &["another swap is under way", &format!("for clock {at}")]);
    let first = answer(&first.end());
    assert_eq!(first["clock"], at);
    let third = answer(&said(dir.path(), "job swap --state s --param rounds=800000 --json"));
    assert_eq!(third["from"], first["to"]);
    let clocks = the(&stopped(dir.path(), run), "done")["clocks"].as_u64().unwrap();
    counted(dir.path(), clocks);
}

#[test]
fn a_stop_before_a_planned_swap_withdraws_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    let swap = Watched::start(dir.path(), "job swap --state s --param rounds=900000 --at-clock 90000");
    while answer(&said(dir.path(), "job show --state s --json"))["swap_at"].is_null() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let clocks = the(&stopped(dir.path(), run), "done")["clocks"].as_u64().unwrap();
    refused(&swap.end(), 2, &["the job stops at clock", "before clock 90000"]);
    counted(dir.path(), clocks);
}

#[test]
fn garbage_on_the_socket_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    let connect = || UnixStream::connect(dir.path().join("s/live.sock")).unwrap();
    for garbage in [&b"\x00\xff\xfe\n"[..], b"{}\n", b"{\"op\":\"rm\"}\n", b"GET / HTTP/1.1\r\n\r\n", b"[[[[[[\n"] {
        let mut client = connect();
        client.write_all(garbage).unwrap();
        let mut said = String::new();
        BufReader::new(client).read_line(&mut said).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["ok"], &said["exit"]), (&false.into(), &2.into()), "{said}");
    }
    // Some that never end a line, and one that never ends at all.
    let silent: Vec<_> = (0..4).map(|_| connect()).collect();
    let mut endless = connect();
    endless.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!((0..1000).any(|_| endless.write_all(&[b'x'; 4096]).is_err()), "the server reads without end");
    let shown = answer(&said(dir.path(), "job show --state s --json"));
    let clock = shown["clocks"][0].as_u64().unwrap();
    assert!(run.wait_for("clock", Some(clock + 2)));
    drop(silent);
    stopped(dir.path(), run);
}

#[test]
fn without_a_run_there_is_nobody_to_ask() {
    let dir = tempfile::tempdir().unwrap();
    for words in ["show", "history", "stop", "rollback", "swap mlr"] {
        refused(&say(dir.path(), &format!("job {words} --state nowhere")), 6, &["no state folder nowhere"]);
    }
    let run = Watched::start(dir.path(), &counting(dir.path(), "--clocks 100000"));
    assert!(run.wait_for("clock", Some(1)));
    run.signal("KILL");
    run.end();
    assert!(dir.path().join("s/live.sock").exists(), "a killed run leaves its socket");
    refused(&say(dir.path(), "job show --state s"), 6, &["no job runs in s"]);
    // The next run takes the place, and leaves nothing.
    said(dir.path(), &counting(dir.path(), "--resume --clocks 3"));
    assert!(!dir.path().join("s/live.sock").exists());
    refused(&say(dir.path(), "job swap --state s --param rounds=3"), 6, &["no job runs in s"]);
}
