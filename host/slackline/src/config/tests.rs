//! Job files as data: what they mean, and what is said of those that mean nothing.

use super::*;
use crate::job::*;
use slackline_core::Init;
use slackline_data::{ColumnMap, Format, Partitioning, Split};
use std::time::Duration;

const FULL: &str = r#"
[job]
name = "topics"
plugin = "lda"
workers = 2
seed = 1

[data]
train = { path = "docword.train.txt", format = "uci-bow", vocab = "vocab.txt" }
test  = { path = "/abs/docword.test.txt", format = "uci-bow" }
batch = 64
partition = "rows"
shuffle = true

[consistency]
model = "ssp"
staleness = 2

[clock]
every = "epoch"
max = 50

[stop]
metric = "test_perplexity"
below = 1500.0
patience = 5

[evaluate]
every = 10

[cuts]
every = 10

[tables.word_topic]
init = { kind = "uniform", low = -1, high = 1.5 }

[limits]
step_deadline = "90s"
memory = "512 MiB"
interrupt = "epoch"

[params]
topics = 20
alpha = 0.1
nested = { a = [1, "x", true] }
"#;

const SHORT: &str = "[job]\nname = \"x\"\nplugin = \"mlr\"\n[data]\ntrain = \"a.csv\"\n[clock]\nmax = 1\n";

fn read_text(text: &str, overrides: &Overrides) -> Result<Job, ConfigError> {
    parse(Path::new("job.toml"), text, Path::new("base"), overrides)
}

#[test]
fn the_documented_file_means_what_it_says() {
    let job = read_text(FULL, &Overrides::default()).unwrap();
    assert_eq!((job.name.as_str(), job.workers, job.seed), ("topics", 2, 1));
    assert_eq!(job.plugin, PluginRef::Name("lda".into()));
    let train = &job.data.datasets["train"];
    assert_eq!(train.path, Path::new("base/docword.train.txt"));
    assert_eq!(train.format, Some(Format::UciBow));
    assert_eq!(train.vocab.as_deref(), Some(Path::new("base/vocab.txt")));
    assert_eq!(job.data.datasets["test"].path, Path::new("/abs/docword.test.txt"));
    assert_eq!((job.data.batch, job.data.shuffle, job.partition_given), (64, true, true));
    assert_eq!(job.consistency, Consistency { model: Model::Ssp, staleness: 2 });
    assert_eq!((job.clock, job.max_clocks), (ClockLength::Epoch, Some(50)));
    let rule = job.stop.unwrap();
    assert_eq!((rule.metric.as_str(), rule.below, rule.patience), ("test_perplexity", Some(1500.0), Some(5)));
    assert_eq!((job.evaluate_every, job.cuts.every), (Some(10), Some(10)));
    assert_eq!(job.tables["word_topic"].init, Some(Init::Uniform { low: -1.0, high: 1.5 }));
    assert_eq!(job.limits.step_deadline, Duration::from_secs(90));
    assert_eq!((job.limits.memory_bytes, job.limits.interrupt), (512 << 20, Interrupt::Epoch));
    let params = serde_json::json!({"topics": 20, "alpha": 0.1, "nested": {"a": [1, "x", true]}});
    assert_eq!(serde_json::Value::Object(job.params), params);
}

#[test]
fn what_is_left_out_has_a_default() {
    let job = read_text(SHORT, &Overrides::default()).unwrap();
    assert_eq!((job.workers, job.shards, job.seed), (1, 1, 0));
    assert_eq!(job.consistency, Consistency { model: Model::Bsp, staleness: 0 });
    assert_eq!((job.clock, job.evaluate_every, job.cuts.every), (ClockLength::Epoch, None, None));
    assert!(!job.partition_given && job.stop.is_none() && job.params.is_empty());
    assert_eq!(job.limits, Limits::default());
}

#[test]
fn data_takes_other_datasets_rules_and_column_names() {
    let text = SHORT.replace(
        "train = \"a.csv\"",
        "train = { path = \"a.csv\", columns = { user = \"u\", x = [\"a\", \"b*\"] }, delimiter = \";\" }\n\
         holdout = { path = \"b.csv\" }\npartition = \"hash:user\"\nsplit = \"every:5\"\n",
    );
    let data = read_text(&text, &Overrides::default()).unwrap().data;
    assert_eq!(data.datasets.keys().collect::<Vec<_>>(), ["holdout", "train"]);
    let train = &data.datasets["train"];
    assert_eq!(train.columns["user"], ColumnMap::One("u".into()));
    assert_eq!(train.columns["x"], ColumnMap::Many(vec!["a".into(), "b*".into()]));
    assert_eq!(train.delimiter, Some(b';'));
    assert_eq!(data.partition, Partitioning::Hash("user".into()));
    assert_eq!(data.split, Some(Split::Every { every: 5, at: 4 }));
}

#[test]
fn plugins_are_named_four_ways() {
    let digest = "ab".repeat(32);
    for (typed, want) in [
        ("lda", PluginRef::Name("lda".into())),
        ("lda@3", PluginRef::NameRev("lda".into(), "3".into())),
        (&format!("blake3:{digest}"), PluginRef::Digest(digest.clone())),
        ("mine.wasm", PluginRef::Path("base/mine.wasm".into())),
        ("../x/mine.wasm", PluginRef::Path("base/../x/mine.wasm".into())),
    ] {
        let job = read_text(&SHORT.replace("\"mlr\"", &format!("{typed:?}")), &Overrides::default()).unwrap();
        assert_eq!(job.plugin, want, "{typed}");
    }
}

#[test]
fn the_command_line_wins() {
    let mut o = Overrides::default();
    o.flag("--workers", "job.workers", Some(4));
    o.flag("--consistency", "consistency.model", Some("bsp"));
    o.flag("--clocks", "clock.max", Some(7));
    o.flag("--seed", "job.seed", None::<u64>);
    o.set("topics=50").unwrap();
    o.set("params.beta = 0.5").unwrap();
    o.set("params.optimizer=adagrad").unwrap();
    o.set("data.batch=9").unwrap();
    o.set("cuts.every=3").unwrap();
    let job = read_text(FULL, &o).unwrap();
    assert_eq!((job.workers, job.max_clocks, job.seed, job.data.batch), (4, Some(7), 1, 9));
    // The file's staleness of 2 belongs to its ssp and goes with it.
    assert_eq!(job.consistency, Consistency { model: Model::Bsp, staleness: 0 });
    assert_eq!((&job.params["topics"], &job.params["beta"]), (&50.into(), &0.5.into()));
    assert_eq!((&job.params["optimizer"], job.cuts.every), (&"adagrad".into(), Some(3)));
}

/// Replaces `from` by `to` in the short file; the error must hold all `words`, in message, place or hint.
fn check(from: &str, to: &str, words: &[&str]) {
    assert!(SHORT.contains(from), "{from:?} is not in the file");
    let e = read_text(&SHORT.replacen(from, to, 1), &Overrides::default()).expect_err(to);
    let all = format!("{e} {}", e.hint.as_deref().unwrap_or_default());
    for word in words {
        assert!(all.contains(word), "{to:?}: {word:?} is not in: {all}");
    }
}

#[test]
fn errors_name_line_key_and_remedy() {
    let job = "plugin = \"mlr\"";
    check(job, "plugin = \"mlr\"\nworkrs = 2", &["job.toml:4", "`workrs`", "[job]", "`workers`"]);
    check(job, "plugin = \"mlr\"\nbatch = 2", &["job.toml:4", "`batch`", "belongs in [data]"]);
    check(job, "plugin = \"mlr\"\nelephant = 2", &["`elephant`", "takes", "`workers`"]);
    check(job, "plugin = \"mlr\"\nworkers = \"two\"", &["job.toml:4", "`job.workers`", "\"two\"", "whole number"]);
    check(job, "plugin = \"mlr\"\nworkers = 0", &["`job.workers` is 0", "at least 1"]);
    check(job, "plugin = \"mlr\"\nseed = -1", &["`job.seed` is -1", "0 or more"]);
    check(job, "plugin = 3", &["job.toml:3", "`job.plugin` is 3", "text in quotes"]);
    check(job, "plugin = \"a@\"", &["a@", "a tag after `@`"]);
    check(job, "plugin = \"blake3:12\"", &["64 hexadecimal"]);
    check(job, "plugin = \"no way\"", &["a name, name@revision"]);
    check(job, "", &["`plugin` is missing in [job]", "add `plugin"]);
    check("\"x\"", "\"../x\"", &["`job.name`", "letters"]);
    check("[job]", "[jobb]", &["job.toml:1", "unknown section `jobb`", "[job]"]);
    check("[job]", "max = 3\n[job]", &["unknown key `max`", "[clock]"]);
    check("[job]", "data = 3\n[job]", &["duplicate key"]);
    check("train = \"a.csv\"", "train = 4", &["`data.train` is a whole number", "path"]);
    check("train = \"a.csv\"", "", &["`train` is missing in [data]", "path"]);
    check("train =", "trian =", &["`trian`", "did you mean `train`"]);
    check("train = \"a.csv\"", "trian = { path = \"a.csv\" }", &["`trian`", "did you mean `train`"]);
    check("\"a.csv\"", "{ path = \"a\", fromat = \"csv\" }", &["`fromat`", "[data.train]", "`format`"]);
    check("\"a.csv\"", "{ path = \"a\", format = \"csw\" }", &["`csw`", "did you mean `csv`", "`uci-bow`"]);
    check("\"a.csv\"", "{ format = \"csv\" }", &["`path` is missing in [data.train]"]);
    check("\"a.csv\"", "{ path = \"a\", columns = { x = 3 } }", &["`data.train.columns.x`", "name of a column"]);
    check("\"a.csv\"", "\"a.csv\"\npartition = \"hash\"", &["`data.partition`", "hash:COLUMN"]);
    check("\"a.csv\"", "\"a.csv\"\nsplit = \"half\"", &["`data.split`", "fraction"]);
    check("\"a.csv\"", "\"a.csv\"\ntest = \"b\"\nsplit = \"every:2\"", &["`data.split`", "keep one"]);
    check("\"a.csv\"", "\"a.csv\"\nmemory = \"much\"", &["`data.memory`", "512 MiB"]);
    check("max = 1", "max = 0", &["job.toml:7", "`clock.max` is 0"]);
    check("max = 1", "", &["nothing ends this job", "--clocks"]);
    check("max = 1", "max = 1\nevery = \"epochs\"", &["`clock.every`", "`epochs`", "\"epoch\""]);
    check("max = 1", "max = 1\nevery = 0", &["`clock.every` is 0"]);
    check("max = 1", "max = 1\n[stop]\nmetric = \"m\"", &["[stop]", "`patience`"]);
    check("max = 1", "max = 1\n[stop]\nbelow = 1", &["`metric` is missing in [stop]"]);
    check("max = 1", "max = 1\n[stop]\nmetric = \"m\"\nbelow = nan", &["`stop.below`", "finite"]);
    check("max = 1", "max = 1\n[consistency]\nmodel = \"sspp\"", &["`sspp`", "did you mean `ssp`"]);
    check("max = 1", "max = 1\n[consistency]\nstaleness = 3", &["bsp means 0", "\"ssp\""]);
    check("max = 1", "max = 1\n[tables.w]\ninit = \"one\"", &["`tables.w.init`", "uniform"]);
    check("max = 1", "max = 1\n[tables.w]\nint = 1", &["`int`", "[tables.w]", "`init`"]);
    check("max = 1", "max = 1\n[limits]\nstep_deadline = \"0s\"", &["`limits.step_deadline`", "10m"]);
    check("max = 1", "max = 1\nparams = 3", &["`params`"]);
    check("max = 1", "max = ", &["job.toml:7"]);
}

#[test]
fn errors_on_the_command_line_name_the_flag() {
    for (key, words) in [
        ("job.workrs=2", ["--set job.workrs=2", "`workers`"]),
        ("jobs.workers=2", ["--set jobs.workers=2", "[job]"]),
        ("data.batch=none", ["--set data.batch=none", "`data.batch`"]),
        ("job.name.first=a", ["--set job.name.first=a", "inside text"]),
    ] {
        let mut o = Overrides::default();
        o.set(key).unwrap();
        let e = read_text(SHORT, &o).expect_err(key);
        let all = format!("{e} {}", e.hint.as_deref().unwrap_or_default());
        assert!(words.iter().all(|w| all.contains(w)), "{key}: {all}");
    }
    let e = Overrides::default().set("topics").unwrap_err();
    assert!(e.to_string().contains("key=value"), "{e}");
}

#[test]
fn the_echo_shows_defaults_and_what_was_typed() {
    let lines = echo(&read_text(FULL, &Overrides::default()).unwrap());
    for (key, value) in [
        ("job.workers", "2"),
        ("clock.every", "epoch"),
        ("cuts.keep", "2"),
        ("params.topics", "20"),
        ("stop.below", "1500"),
        ("data.train", "base/docword.train.txt (uci-bow), words in base/vocab.txt"),
    ] {
        assert!(lines.contains(&(key.to_owned(), value.to_owned())), "{key}");
    }
}
