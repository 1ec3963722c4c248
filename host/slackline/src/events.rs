//! What a run tells people and programs while it goes on.
//!
//! The JSON form of an [`Event`], one object a line, is fixed: scripts read it. Keys may be added, never renamed.
//! Floating numbers that are not finite become `null`, which every JSON reader takes.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Metric values by name.
pub type Metrics = BTreeMap<String, f64>;

/// Reads metrics back: what was not finite was written as `null`.
fn metrics_or_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
    let read = BTreeMap::<String, Option<f64>>::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// Something that happened in a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The job is loaded and its first clock begins.
    Started(Started),
    /// Every worker has ended a clock.
    Clock {
        /// The clock that ended; the first is 0.
        clock: u32,
        /// The plugin's metrics of that clock, and those of an evaluation where one fell on it.
        #[serde(deserialize_with = "metrics_or_null")]
        metrics: Metrics,
        /// Since the run started.
        seconds: f64,
    },
    /// A plugin's log line.
    Log {
        /// Which worker.
        worker: u32,
        /// `debug`, `info`, `warn` or `error`.
        level: Cow<'static, str>,
        /// As the plugin wrote it.
        line: String,
    },
    /// A cut is complete and durable.
    Cut {
        /// The clock that it stands at.
        clock: u32,
        /// Its size.
        bytes: u64,
        /// What it took from the tick to the disk.
        seconds: f64,
    },
    /// Every worker begins a clock on another version than the one before.
    Swap {
        /// The first clock of the new version.
        clock: u32,
        /// What ran.
        from: VersionSummary,
        /// What runs.
        to: VersionSummary,
        /// Why.
        reason: String,
    },
    /// The datasets other than `train` were evaluated apart from a clock's end: once more on the final model.
    Evaluated {
        /// Clocks ended before.
        clock: u32,
        /// What was found.
        #[serde(deserialize_with = "metrics_or_null")]
        metrics: Metrics,
    },
    /// Something that the user should know.
    Notice {
        /// A line.
        message: String,
    },
    /// The run is over; always last.
    Done(Box<Summary>),
}

/// The facts of a run that are known when it starts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Started {
    /// The job's name.
    pub job: String,
    /// Which plugin, exactly.
    pub plugin: PluginSummary,
    /// Logical workers.
    pub workers: u32,
    /// The consistency model.
    pub consistency: String,
    /// Its bound.
    pub staleness_bound: u32,
    /// The clock after which the job ends, if it is bounded.
    pub max_clocks: Option<u32>,
    /// Clocks already done by an earlier run, when this one resumes.
    pub resumed_from: Option<u32>,
    /// Rows of each dataset.
    pub rows: BTreeMap<String, u64>,
}

/// Which plugin ran.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PluginSummary {
    /// Its name.
    pub name: String,
    /// `blake3:` and the digest of its bytes.
    pub digest: String,
}

/// One version of a job.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct VersionSummary {
    /// Its number, from 1.
    pub version: u32,
    /// The plugin's name.
    pub plugin: String,
    /// `blake3:` and the digest of its bytes.
    pub digest: String,
    /// Its parameters.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// Its staleness bound.
    pub staleness: u32,
    /// Its first clock.
    pub since: u32,
    /// Why it came.
    pub reason: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All clocks were done.
    #[default]
    Done,
    /// A stop rule held.
    Stopped,
    /// A person ended it; a cut was made.
    Interrupted,
    /// The plugin or the machine failed; the newest cut is good.
    Failed,
}

/// The whole of a run, for the last line, the report and whoever embeds the engine.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Summary {
    /// How it ended.
    pub status: Status,
    /// Why, in words, unless all clocks were simply done.
    pub reason: Option<String>,
    /// Clocks that every worker has ended, those before a resume included.
    pub clocks: u32,
    /// From start to end.
    pub seconds: f64,
    /// Evaluated on the final model, test metrics included.
    #[serde(deserialize_with = "metrics_or_null")]
    pub metrics: Metrics,
    /// Reads by how many clocks their row was behind the reader.
    pub staleness: BTreeMap<u32, u64>,
    /// The model.
    pub tables: BTreeMap<String, TableSummary>,
    /// Which plugin.
    pub plugin: PluginSummary,
    /// The job's name.
    pub job: String,
    /// Where each worker's time went.
    pub workers: Vec<WorkerTime>,
    /// What moved between workers and shards.
    pub traffic: Traffic,
    /// Cuts made in this run.
    pub cuts: CutSummary,
    /// Most bytes of memory that the process held.
    pub peak_memory_bytes: u64,
    /// The clock of the cut that the run began from.
    pub resumed_from: Option<u32>,
    /// Bad rows that were skipped, as `--skip-bad-rows` allowed.
    pub skipped_rows: u64,
    /// Things that a reader of the results must know, such as that a model gives no guarantee.
    pub notices: Vec<String>,
    /// What of the model is worth showing.
    pub views: Vec<ViewResult>,
    /// Every version that ran, oldest first.
    pub versions: Vec<VersionSummary>,
    /// Metrics over the run, oldest first. Not in the JSON line: the clock lines said it already.
    #[serde(skip)]
    pub history: Vec<HistoryPoint>,
    /// The job as it ran, defaults included, as (key path, value) lines.
    #[serde(skip)]
    pub config: Vec<(String, String)>,
}

/// One table's shape and size.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TableSummary {
    /// Type of its values.
    pub dtype: String,
    /// `dense` or `sparse`.
    pub layout: String,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub width: u32,
    /// Bytes that it holds.
    pub bytes: u64,
}

/// Where a worker's time went, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct WorkerTime {
    /// Which worker.
    pub worker: u32,
    /// In the plugin's own code.
    pub compute: f64,
    /// Blocked until rows were fresh enough.
    pub gate: f64,
    /// In host functions, without the wait at the gate.
    pub host: f64,
    /// Sealing and handing over updates, and applying them at shards on its behalf.
    pub apply: f64,
}

/// What moved between workers and shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Traffic {
    /// Rows that plugins read.
    pub rows_read: u64,
    /// Rows that plugins incremented, before coalescing.
    pub rows_updated: u64,
    /// Rows that shards sent, answers and pushes together.
    pub rows_pulled: u64,
    /// Their bytes.
    pub bytes_pulled: u64,
    /// Rows of sealed updates.
    pub rows_pushed: u64,
    /// Their bytes.
    pub bytes_pushed: u64,
}

/// The cuts of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CutSummary {
    /// How many were completed.
    pub count: u32,
    /// The newest one's clock.
    pub newest: Option<u32>,
    /// Bytes written.
    pub bytes: u64,
    /// Time from tick to disk, summed; training goes on meanwhile.
    pub seconds: f64,
    /// Each cut's clock.
    #[serde(skip)]
    pub clocks: Vec<u32>,
}

/// Metrics at the end of a clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPoint {
    /// The clock that ended.
    pub clock: u32,
    /// Since the run started.
    pub seconds: f64,
    /// Their values.
    pub metrics: Metrics,
}

/// A view of the model, filled in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ViewResult {
    /// Its heading.
    pub title: String,
    /// A line a column of the table: its best rows' labels, best first.
    pub lines: Vec<Vec<String>>,
}

/// Where events go.
pub trait Sink: Send {
    /// Takes an event. A sink that cannot write (a closed pipe, say) says so in [`Sink::failed`] and stays quiet.
    fn event(&mut self, event: &Event);
    /// The first failure to write, if there was one; the run goes on without a listener.
    fn failed(&self) -> Option<&std::io::Error> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_lines_that_scripts_read_keep_their_form() {
        let metrics = Metrics::from([("train_loss".to_owned(), 0.5), ("test_loss".to_owned(), f64::NAN)]);
        let line = serde_json::to_value(Event::Clock { clock: 3, metrics: metrics.clone(), seconds: 1.5 }).unwrap();
        assert_eq!(
            line,
            json!({"event": "clock", "clock": 3, "metrics": {"train_loss": 0.5, "test_loss": null}, "seconds": 1.5})
        );
        let summary = Summary {
            clocks: 4,
            metrics,
            staleness: [(0, 10), (2, 1)].into(),
            plugin: PluginSummary { name: "mlr".into(), digest: "blake3:00".into() },
            history: vec![HistoryPoint::default()],
            ..Summary::default()
        };
        let line = serde_json::to_value(Event::Done(Box::new(summary))).unwrap();
        assert_eq!(line["event"], "done");
        assert_eq!(line["status"], "done");
        assert_eq!(line["staleness"], json!({"0": 10, "2": 1}));
        assert_eq!(line["plugin"], json!({"name": "mlr", "digest": "blake3:00"}));
        for key in ["clocks", "seconds", "metrics", "tables"] {
            assert!(line.get(key).is_some_and(|v| *v != Value::Null), "no {key}");
        }
        assert!(line.get("history").is_none());
    }

    #[test]
    fn a_line_is_read_back_as_the_event_that_it_was() {
        let metrics = Metrics::from([("loss".to_owned(), f64::NAN)]);
        for event in [
            Event::Started(Started { job: "j".into(), workers: 2, ..Started::default() }),
            Event::Clock { clock: 3, metrics: metrics.clone(), seconds: 0.5 },
            Event::Log { worker: 1, level: "warn".into(), line: "x".into() },
            Event::Cut { clock: 4, bytes: 5, seconds: 0.5 },
            Event::Evaluated { clock: 4, metrics },
            Event::Notice { message: "m".into() },
            Event::Done(Box::default()),
        ] {
            let line = serde_json::to_string(&event).unwrap();
            let back: Event = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), line);
        }
    }
}
