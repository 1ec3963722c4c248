//! The sections of a job file, one function each.

use super::error::{ConfigError, nearest};
use super::section::{Bytes, Section};
use super::tree::{Kind, Node};
use crate::job::*;
use slackline_data::{ColumnMap, DataSpec, Format, Partitioning, Source, Split};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every section with the keys that it takes. Datasets, tables and parameters have names of their own beside these.
const SECTIONS: &[(&str, &[&str])] = &[
    ("job", &["name", "plugin", "workers", "seed", "shards"]),
    ("data", &["train", "test", "batch", "partition", "shuffle", "split", "skip_bad_rows", "memory"]),
    ("consistency", &["model", "staleness"]),
    ("clock", &["every", "max"]),
    ("stop", &["metric", "below", "above", "patience", "min_delta"]),
    ("evaluate", &["every"]),
    ("cuts", &["every", "keep"]),
    ("limits", &["step_deadline", "host_call_deadline", "memory", "log", "interrupt"]),
    ("tables", &[]),
    ("params", &[]),
];

const SOURCE_KEYS: &[&str] = &["path", "format", "vocab", "columns", "header", "delimiter"];

/// The bound that ssp and essp have when a job gives none.
const DEFAULT_STALENESS: u32 = 2;

/// Complete cuts that stay when a job does not say.
const DEFAULT_CUTS_KEPT: u32 = 2;

/// Reads the whole file.
pub fn job(root: &Node, base: &Path) -> Result<Job, ConfigError> {
    refuse_unknown_sections(root)?;
    // All sections are opened first, so that a slip in one is named before something that is missing in another.
    let job = open(root, "job")?;
    let [consistency, clock, stop, evaluate, cuts, limits] =
        ["consistency", "clock", "stop", "evaluate", "cuts", "limits"].map(|name| open(root, name));
    let data = Section::open_any(root, "data")?;
    let clock = clock?;
    let workers = job.at_least("workers", 1)?.unwrap_or(1);
    let mut out = Job {
        name: name(&job)?,
        plugin: plugin(&job, base)?,
        workers,
        seed: job.get("seed")?.unwrap_or(0),
        data: DataSpec::default(),
        partition_given: data.node("partition").is_some(),
        consistency: self::consistency(&consistency?)?,
        clock: clock_length(&clock)?,
        max_clocks: clock.at_least("max", 1)?,
        stop: stop_rule(&stop?)?,
        evaluate_every: evaluate?.at_least("every", 1)?,
        cuts: self::cuts(&cuts?)?,
        tables: tables(root)?,
        params: params(root)?,
        limits: self::limits(&limits?)?,
        shards: job.at_least("shards", 1)?.unwrap_or_else(|| default_shards(workers)),
        base_dir: base.to_owned(),
    };
    out.data = data_spec(&data, base)?;
    if out.max_clocks.is_none() && out.stop.is_none() {
        let error =
            ConfigError::new(clock.place.clone(), "nothing ends this job: it has neither `clock.max` nor [stop]");
        return Err(error.hint("add `max = 50` under [clock], or pass --clocks 50"));
    }
    Ok(out)
}

fn open<'a>(root: &'a Node, name: &str) -> Result<Section<'a>, ConfigError> {
    Section::open(root, name, keys_of(name), &section_of)
}

fn keys_of(section: &str) -> &'static [&'static str] {
    SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[], |(_, keys)| keys)
}

fn section_of(key: &str) -> Option<&'static str> {
    SECTIONS.iter().find(|(_, keys)| keys.contains(&key)).map(|(name, _)| *name)
}

fn refuse_unknown_sections(root: &Node) -> Result<(), ConfigError> {
    let Kind::Table(sections) = &root.kind else { return Ok(()) };
    let names = || SECTIONS.iter().map(|(name, _)| *name);
    let Some((key, node)) = sections.iter().find(|(key, _)| !names().any(|n| n == key.as_str())) else {
        return Ok(());
    };
    let what = if matches!(node.kind, Kind::Table(_)) { "section" } else { "key" };
    let error = ConfigError::new(node.place.clone(), format!("unknown {what} `{key}`"));
    Err(match (nearest(key, names()), section_of(key)) {
        (_, Some(section)) if what == "key" => error.hint(format!("`{key}` belongs in [{section}]")),
        (Some(meant), _) => error.hint(format!("did you mean [{meant}]?")),
        _ => error.hint(format!("a job file has the sections {}", names().collect::<Vec<_>>().join(", "))),
    })
}

fn name(job: &Section<'_>) -> Result<String, ConfigError> {
    let name: String = job.need("name")?;
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(sound) {
        let why = format!("is {name:?}, expected 1 to 64 letters, digits, `-`, `_` or `.`, not beginning with a dot");
        return Err(job.bad("name", why));
    }
    Ok(name)
}

fn plugin(job: &Section<'_>, base: &Path) -> Result<PluginRef, ConfigError> {
    let typed: String = job.need("plugin")?;
    parse_plugin(&typed, base).map_err(|why| job.bad("plugin", why))
}

/// A plugin by its name.
pub fn parse_plugin(typed: &str, base: &Path) -> Result<PluginRef, String> {
    if let Some(hex) = typed.strip_prefix("blake3:") {
        let sound = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        return match sound {
            true => Ok(PluginRef::Digest(hex.to_ascii_lowercase())),
            false => Err(format!("is {typed:?}, expected 64 hexadecimal digits after `blake3:`")),
        };
    }
    if typed.ends_with(".wasm") || typed.contains(['/', '\\']) {
        return Ok(PluginRef::Path(base.join(typed)));
    }
    let (name, revision) = match typed.split_once('@') {
        Some((name, revision)) => (name, Some(revision)),
        None => (typed, None),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(format!("is {typed:?}, expected a name, name@revision, blake3:DIGEST, or a path to a .wasm file"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match revision {
        None => Ok(PluginRef::Name(name.to_owned())),
        Some(rev) if !rev.is_empty() && rev.chars().all(plain) => {
            Ok(PluginRef::NameRev(name.to_owned(), rev.to_owned()))
        }
        Some(_) => Err(format!("is {typed:?}, expected a revision's number or a tag after `@`")),
    }
}

fn default_shards(workers: u32) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    workers.min(cores)
}

fn consistency(s: &Section<'_>) -> Result<Consistency, ConfigError> {
    let words = [("bsp", Model::Bsp), ("ssp", Model::Ssp), ("essp", Model::Essp), ("async", Model::Async)];
    let model = s.word("model", &words)?.unwrap_or(Model::Bsp);
    let typed = s.get::<u32>("staleness")?;
    let staleness = match (model, typed) {
        (Model::Bsp, Some(bound @ 1..)) => {
            let error = s.bad("staleness", format!("is {bound}, but bsp means 0"));
            return Err(error.hint("use model = \"ssp\" or \"essp\", or leave `staleness` out"));
        }
        (Model::Async, Some(bound @ 1..)) => {
            let error = s.bad("staleness", format!("is {bound}, but async has no bound"));
            return Err(error.hint("use model = \"ssp\" or \"essp\", or leave `staleness` out"));
        }
        (Model::Bsp | Model::Async, _) => 0,
        (Model::Ssp | Model::Essp, bound) => bound.unwrap_or(DEFAULT_STALENESS),
    };
    Ok(Consistency { model, staleness })
}

fn clock_length(s: &Section<'_>) -> Result<ClockLength, ConfigError> {
    match s.node("every").map(|node| &node.kind) {
        None => Ok(ClockLength::Epoch),
        Some(Kind::Text(word)) if word == "epoch" => Ok(ClockLength::Epoch),
        Some(Kind::Text(word)) if word == "batch" => Ok(ClockLength::Batches(1)),
        Some(Kind::Integer(n)) if u32::try_from(*n).is_ok_and(|n| n > 0) => Ok(ClockLength::Batches(*n as u32)),
        Some(other) => {
            let found = match other {
                Kind::Text(text) => format!("`{text}`"),
                Kind::Integer(n) => n.to_string(),
                other => other.name().to_owned(),
            };
            Err(s.bad("every", format!("is {found}, expected \"epoch\", \"batch\" or a number of batches above 0")))
        }
    }
}

fn stop_rule(s: &Section<'_>) -> Result<Option<StopRule>, ConfigError> {
    if !s.is_given() {
        return Ok(None);
    }
    let rule = StopRule {
        metric: s.need("metric")?,
        below: s.get("below")?,
        above: s.get("above")?,
        patience: s.at_least("patience", 1)?,
        min_delta: s.get("min_delta")?.unwrap_or(0.0),
    };
    if rule.below.is_none() && rule.above.is_none() && rule.patience.is_none() {
        let error = ConfigError::new(s.place.clone(), "[stop] names a metric but no condition");
        return Err(error.hint("add `below`, `above` or `patience`"));
    }
    if rule.min_delta < 0.0 {
        return Err(s.bad("min_delta", format!("is {}, expected 0 or more", rule.min_delta)));
    }
    Ok(Some(rule))
}

fn cuts(s: &Section<'_>) -> Result<Cuts, ConfigError> {
    Ok(Cuts { every: s.at_least("every", 1)?, keep: s.at_least("keep", 1)?.unwrap_or(DEFAULT_CUTS_KEPT) })
}

fn limits(s: &Section<'_>) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    let bytes = |key| s.get::<Bytes>(key).map(|b| b.map(|b| b.0));
    Ok(Limits {
        step_deadline: s.get("step_deadline")?.unwrap_or(default.step_deadline),
        host_call_deadline: s.get("host_call_deadline")?.unwrap_or(default.host_call_deadline),
        memory_bytes: bytes("memory")?.unwrap_or(default.memory_bytes),
        log_bytes: bytes("log")?.unwrap_or(default.log_bytes),
        interrupt: s
            .word("interrupt", &[("process", Interrupt::Process), ("epoch", Interrupt::Epoch)])?
            .unwrap_or(default.interrupt),
    })
}

fn tables(root: &Node) -> Result<BTreeMap<String, TableOverride>, ConfigError> {
    let tables = Section::open_any(root, "tables")?;
    let entries = tables.entries().map(|(name, node)| {
        let table = Section::of(node, &format!("tables.{name}"))?;
        table.refuse_unknown(&["init"], &|_| None)?;
        Ok((name.to_owned(), TableOverride { init: table.get("init")? }))
    });
    entries.collect()
}

fn params(root: &Node) -> Result<serde_json::Map<String, serde_json::Value>, ConfigError> {
    let params = Section::open_any(root, "params")?;
    params.entries().map(|(name, node)| Ok((name.to_owned(), node.to_json(&format!("params.{name}"))?))).collect()
}

fn data_spec(s: &Section<'_>, base: &Path) -> Result<DataSpec, ConfigError> {
    let known = keys_of("data");
    let options: Vec<&str> = known.iter().copied().filter(|k| !matches!(*k, "train" | "test")).collect();
    let mut datasets = BTreeMap::new();
    for (key, node) in s.entries().filter(|(key, _)| !options.contains(key)) {
        match &node.kind {
            Kind::Text(path) if matches!(key, "train" | "test") => {
                datasets.insert(key.to_owned(), Source { path: base.join(path), ..Source::default() });
            }
            // A table is another dataset, unless its name is a slip.
            Kind::Table(_) if known.contains(&key) || nearest(key, known.iter().copied()).is_none() => {
                datasets.insert(key.to_owned(), source(&Section::of(node, &format!("data.{key}"))?, base)?);
            }
            other if matches!(key, "train" | "test") => {
                let why = format!("is {}, expected {{ path = \"…\" }}", other.name());
                return Err(s.bad(key, why));
            }
            _ => return Err(s.unknown(key, node, known, &section_of)),
        }
    }
    if !datasets.contains_key("train") {
        let error = ConfigError::new(s.place.clone(), "`train` is missing in [data]");
        return Err(error.hint("add `train = { path = \"…\" }`"));
    }
    let default = DataSpec::default();
    let rule = |key: &str| s.get::<String>(key);
    let spec = DataSpec {
        datasets,
        batch: s.at_least("batch", 1)?.map_or(default.batch, |n| n as usize),
        partition: match rule("partition")? {
            Some(text) => text.parse().map_err(|_| {
                s.bad("partition", format!("is {text:?}, expected \"rows\", \"round-robin\" or \"hash:COLUMN\""))
            })?,
            None => Partitioning::default(),
        },
        shuffle: s.get("shuffle")?.unwrap_or(default.shuffle),
        skip_bad_rows: s.get("skip_bad_rows")?.unwrap_or(default.skip_bad_rows),
        memory_bytes: s.get::<Bytes>("memory")?.map_or(default.memory_bytes, |b| b.0),
        split: match rule("split")? {
            Some(text) => Some(text.parse::<Split>().map_err(|e| s.bad("split", format!("is {text:?}: {e}")))?),
            None => None,
        },
    };
    if spec.split.is_some() && spec.datasets.contains_key("test") {
        return Err(s
            .bad("split", "makes `test` from `train`, but `test` is given too".into())
            .hint("keep one of them"));
    }
    Ok(spec)
}

fn source(s: &Section<'_>, base: &Path) -> Result<Source, ConfigError> {
    s.refuse_unknown(SOURCE_KEYS, &|key| section_of(key))?;
    let formats: Vec<(&str, &str)> = Format::NAMES.iter().map(|n| (*n, *n)).collect();
    let path: String = s.need("path")?;
    Ok(Source {
        path: base.join(path),
        format: match s.word("format", &formats)? {
            Some(name) => Some(name.parse::<Format>().map_err(|e| s.bad("format", format!("is {name:?}: {e}")))?),
            None => None,
        },
        vocab: s.get::<String>("vocab")?.map(|path| -> PathBuf { base.join(path) }),
        columns: columns(s)?,
        header: s.get("header")?,
        delimiter: match s.get::<String>("delimiter")? {
            Some(text) => match text.as_bytes() {
                [byte] => Some(*byte),
                _ => return Err(s.bad("delimiter", format!("is {text:?}, expected one ASCII character"))),
            },
            None => None,
        },
    })
}

fn columns(s: &Section<'_>) -> Result<BTreeMap<String, ColumnMap>, ConfigError> {
    let Some(node) = s.node("columns") else { return Ok(BTreeMap::new()) };
    let names = Section::of(node, &format!("{}.columns", s.path))?;
    let entries = names.entries().map(|(wanted, node)| {
        let map = match &node.kind {
            Kind::Text(name) => Some(ColumnMap::One(name.clone())),
            Kind::Array(items) => {
                let text = |item: &Node| match &item.kind {
                    Kind::Text(name) => Some(name.clone()),
                    _ => None,
                };
                items.iter().map(text).collect::<Option<Vec<_>>>().filter(|n| !n.is_empty()).map(ColumnMap::Many)
            }
            _ => None,
        };
        let expected = || names.bad(wanted, "expected the name of a column of the file, or a list of names".into());
        Ok((wanted.to_owned(), map.ok_or_else(expected)?))
    });
    entries.collect()
}
