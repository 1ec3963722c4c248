//! Job files and data that are wrong: a message that says what, where and what to do, before anything runs.

use slackline_blackbox::{done, misfit_job, refused, said, say, write_job};

/// That the job, run in a folder with a few small files, is refused.
#[track_caller]
fn check(job: &str, exit: i32, words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("empty.libsvm", ""),
        ("two.libsvm", "0 1:1\n1 2:1\n"),
        ("bad.libsvm", "0 1:1\n1 2:oops\n"),
        ("two.csv", "a,b\n1,2\n"),
        ("two.what", "0 1:1\n"),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    write_job(dir.path(), job);
    refused(&say(dir.path(), "run job.toml --state s"), exit, words);
    assert!(!dir.path().join("s/cuts").read_dir().is_ok_and(|mut cuts| cuts.next().is_some()), "nothing was trained");
}

/// A sound job with `from` replaced by `to`.
#[track_caller]
fn check_edit(from: &str, to: &str, exit: i32, words: &[&str]) {
    const SOUND: &str = "[job]\nname = \"x\"\nplugin = \"mlr\"\nworkers = 1\n[data]\ntrain = \"two.libsvm\"\n\
                         [clock]\nmax = 1\n[params]\nl2 = 0.1\n";
    assert!(SOUND.contains(from), "{from}");
    check(&SOUND.replace(from, to), exit, words);
}

#[test]
fn a_wrong_key_is_named_with_its_line_and_the_nearest() {
    check_edit("workers", "workrs", 2, &["job.toml:4", "unknown key `workrs` in [job]", "did you mean `workers`?"]);
    check_edit("[clock]", "[clcok]", 2, &["unknown section `clcok`", "did you mean [clock]?"]);
    check_edit("workers = 1", "staleness = 1", 2, &["`staleness` belongs in [consistency]"]);
    check_edit("l2", "l3", 2, &["`l3` is not known", "l2"]);
}

#[test]
fn a_wrong_type_and_a_bad_value_say_what_is_expected() {
    check_edit("workers = 1", "workers = \"two\"", 2, &["`job.workers` is the text \"two\"", "whole number"]);
    check_edit("workers = 1", "workers = 0", 2, &["`job.workers` is 0", "at least 1"]);
    check_edit("max = 1", "max = 1\nevery = \"fortnight\"", 2, &["`clock.every` is `fortnight`", "\"epoch\""]);
    check_edit("[clock]", "[consistency]\nmodel = \"spp\"\n[clock]", 2, &["`spp`", "did you mean `ssp`?"]);
    check_edit("[clock]", "[consistency]\nmodel = \"bsp\"\nstaleness = 2\n[clock]", 2, &["bsp means 0"]);
    check_edit("l2 = 0.1", "l2 = \"much\"", 2, &["`l2` must be"]);
    check_edit("l2 = 0.1", "optimizer = \"newton\"", 2, &["`optimizer`", "saga"]);
    check_edit("l2 = 0.1", "l2 = nan", 2, &["job.toml:10: `params.l2` is NaN", "finite"]);
    check_edit("l2 = 0.1", "l2 = -1.0", 2, &["l2"]);
    check_edit("max = 1", "max = ", 2, &["job.toml:8"]);
}

#[test]
fn what_is_missing_is_named() {
    check_edit("name = \"x\"\n", "", 2, &["`name` is missing in [job]"]);
    check_edit("train = \"two.libsvm\"", "", 2, &["`train` is missing in [data]"]);
    check_edit("max = 1", "", 2, &["nothing ends this job", "clock"]);
    let lda = "[job]\nname = \"x\"\nplugin = \"lda\"\n[data]\ntrain = { path = \"two.libsvm\" }\n[clock]\nmax = 1\n";
    check(lda, 2, &["topics"]);
    let dir = tempfile::tempdir().unwrap();
    refused(&say(dir.path(), "run none.toml"), 2, &["none.toml"]);
}

#[test]
fn a_stop_rule_and_a_table_that_the_plugin_lacks_are_named() {
    let stop = "[stop]\nmetric = \"tain_loss\"\nbelow = 1.0\n[params]";
    check_edit("[params]", stop, 2, &["tain_loss", "train_loss"]);
    check_edit("[params]", "[tables.wieghts]\ninit = \"zero\"\n[params]", 2, &["wieghts", "weights"]);
}

#[test]
fn data_that_cannot_serve_is_named_with_its_place() {
    check_edit("two.libsvm", "none.libsvm", 3, &["none.libsvm"]);
    check_edit("two.libsvm", "empty.libsvm", 3, &["empty.libsvm"]);
    check_edit("two.libsvm", "bad.libsvm", 3, &["bad.libsvm", "2", "oops", "--skip-bad-rows"]);
    check_edit("two.libsvm", "two.csv", 3, &["two.csv", "label"]);
    check_edit("two.libsvm", "two.what", 3, &["two.what", "format"]);
    check_edit("workers = 1", "workers = 9", 3, &["workers", "2 rows"]);
}

#[test]
fn malformed_rows_are_left_out_when_that_is_asked_for_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    let rows = std::fs::read_to_string(dir.path().join("x.csv")).unwrap().replace("\n7\n", "\nseven\n");
    std::fs::write(dir.path().join("x.csv"), rows).unwrap();
    refused(&say(dir.path(), &format!("run {job} --state a")), 3, &["x.csv", "seven"]);
    let end = done(&said(dir.path(), &format!("run {job} --json --state b --skip-bad-rows 1")));
    assert_eq!((&end["skipped_rows"], &end["metrics"]["counted"]), (&1.into(), &(6.0 * 39.0).into()));
}

#[test]
fn wrong_usage_is_told_and_help_has_examples() {
    let dir = tempfile::tempdir().unwrap();
    for words in ["run", "run job.toml --consistency spp", "frobnicate", "run job.toml --resume --fresh"] {
        assert_eq!(say(dir.path(), words).status.code(), Some(2), "{words}");
    }
    misfit_job(dir.path(), "honest", 0);
    refused(&say(dir.path(), "run job.toml --set job.wrokers=2"), 2, &["wrokers", "did you mean `workers`?"]);
    for words in ["run --help", "predict --help", "table export --help", "plugin build --help", "data inspect --help"] {
        assert!(String::from_utf8_lossy(&said(dir.path(), words).stdout).contains("Examples:"), "{words}");
    }
}
