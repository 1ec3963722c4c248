//! A job as it will run, defaults included, for people: the report shows it.

use crate::job::{ClockLength, Interrupt, Job};
use slackline_data::{ColumnMap, Source};

/// (key path, value) lines in the order of the job file.
pub fn echo(job: &Job) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |key: &str, value: String| lines.push((key.to_owned(), value));
    line("job.name", job.name.clone());
    line("job.plugin", job.plugin.to_string());
    line("job.workers", job.workers.to_string());
    line("job.seed", job.seed.to_string());
    line("job.shards", job.shards.to_string());
    for (name, source) in &job.data.datasets {
        line(&format!("data.{name}"), describe(source));
    }
    line("data.batch", job.data.batch.to_string());
    line("data.partition", job.data.partition.to_string());
    line("data.shuffle", job.data.shuffle.to_string());
    if let Some(split) = &job.data.split {
        line("data.split", split.to_string());
    }
    line("data.skip_bad_rows", job.data.skip_bad_rows.to_string());
    line("data.memory", job.data.memory_bytes.to_string());
    line("consistency.model", job.consistency.model.to_string());
    line("consistency.staleness", job.consistency.staleness.to_string());
    line(
        "clock.every",
        match job.clock {
            ClockLength::Epoch => "epoch".into(),
            ClockLength::Batches(1) => "batch".into(),
            ClockLength::Batches(n) => n.to_string(),
        },
    );
    let mut number = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            line(key, value);
        }
    };
    number("clock.max", job.max_clocks.map(|n| n.to_string()));
    if let Some(rule) = &job.stop {
        number("stop.metric", Some(rule.metric.clone()));
        number("stop.below", rule.below.map(|v| v.to_string()));
        number("stop.above", rule.above.map(|v| v.to_string()));
        number("stop.patience", rule.patience.map(|n| n.to_string()));
        number("stop.min_delta", Some(rule.min_delta.to_string()));
    }
    number("evaluate.every", job.evaluate_every.map(|n| n.to_string()));
    number("cuts.every", job.cuts.every.map(|n| n.to_string()));
    number("cuts.keep", Some(job.cuts.keep.to_string()));
    for (name, table) in &job.tables {
        number(&format!("tables.{name}.init"), table.init.map(|init| format!("{init:?}")));
    }
    let limits = &job.limits;
    number("limits.step_deadline", Some(format!("{:?}", limits.step_deadline)));
    number("limits.host_call_deadline", Some(format!("{:?}", limits.host_call_deadline)));
    number("limits.memory", Some(limits.memory_bytes.to_string()));
    number("limits.log", Some(limits.log_bytes.to_string()));
    let interrupt = match limits.interrupt {
        Interrupt::Process => "process",
        Interrupt::Epoch => "epoch",
    };
    number("limits.interrupt", Some(interrupt.into()));
    for (name, value) in &job.params {
        number(&format!("params.{name}"), Some(value.to_string()));
    }
    lines
}

fn describe(source: &Source) -> String {
    let mut text = source.path.display().to_string();
    if let Some(format) = source.format {
        text += &format!(" ({format})");
    }
    if let Some(vocab) = &source.vocab {
        text += &format!(", words in {}", vocab.display());
    }
    for (wanted, column) in &source.columns {
        match column {
            ColumnMap::One(name) => text += &format!(", {wanted} = {name}"),
            ColumnMap::Many(names) => text += &format!(", {wanted} = {}", names.join("+")),
        }
    }
    text
}
