//! A job, as it is meant: checked, complete and with every default filled in.
//!
//! [`crate::config`] makes a [`Job`] from what was typed (a file and the command line). Nothing here is serialised, so
//! the file format can stay fixed while these types follow the engine.

pub use slackline_core::{Consistency, Model};

use serde_json::{Map, Value};
use slackline_core::Init;
use slackline_core::manifest::Goal;
use slackline_data::DataSpec;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a run needs to know, apart from where its state lies.
#[derive(Clone, Debug)]
pub struct Job {
    /// Unique within the tenant; also names the job's part of the state folder.
    pub name: String,
    /// Which algorithm.
    pub plugin: PluginRef,
    /// Logical workers, one a partition.
    pub workers: u32,
    /// Seeds row initialisers, shuffling and every worker's random stream.
    pub seed: u64,
    /// Datasets, and how they are cut up.
    pub data: DataSpec,
    /// Whether the job says how rows are shared out; if not, what the plugin needs is taken.
    pub partition_given: bool,
    /// What a read may miss.
    pub consistency: Consistency,
    /// How long a clock is.
    pub clock: ClockLength,
    /// The job ends after so many clocks.
    pub max_clocks: Option<u32>,
    /// The job ends when this holds.
    pub stop: Option<StopRule>,
    /// Clocks between evaluations; evaluation always happens once more at the end.
    pub evaluate_every: Option<u32>,
    /// When cuts are made.
    pub cuts: Cuts,
    /// What the job changes about the plugin's tables, by table.
    pub tables: BTreeMap<String, TableOverride>,
    /// The plugin's own parameters; checked against its schema when it is loaded.
    pub params: Map<String, Value>,
    /// What a plugin may use.
    pub limits: Limits,
    /// Shards that tables are split over.
    pub shards: u32,
    /// Where relative paths of the job file start.
    pub base_dir: PathBuf,
}

/// How a job names its plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginRef {
    /// Bundled or registered; the newest revision.
    Name(String),
    /// A registered revision by its number or tag: `name@3`, `name@stable`.
    NameRev(String, String),
    /// BLAKE3 of the component's bytes, 64 hexadecimal digits.
    Digest(String),
    /// A component file.
    Path(PathBuf),
}

impl fmt::Display for PluginRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PluginRef::Name(name) => f.write_str(name),
            PluginRef::NameRev(name, rev) => write!(f, "{name}@{rev}"),
            PluginRef::Digest(hex) => write!(f, "blake3:{hex}"),
            PluginRef::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How long a clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockLength {
    /// One pass over the worker's partition.
    Epoch,
    /// So many batches (at least 1), going round the partition.
    Batches(u32),
}

/// When cuts are made. One is always made when a job ends or is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// Clocks between cuts.
    pub every: Option<u32>,
    /// How many complete cuts stay; at least 1.
    pub keep: u32,
}

/// What a job changes about one of its plugin's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TableOverride {
    /// How rows begin.
    pub init: Option<Init>,
}

/// What a plugin may use, and what happens when it will not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long one step may take.
    pub step_deadline: Duration,
    /// How long one host call may block.
    pub host_call_deadline: Duration,
    /// Bytes of guest memory, host buffers and local state of one instance, together.
    pub memory_bytes: u64,
    /// Bytes of log lines that one call into the plugin may write.
    pub log_bytes: u64,
    /// How a runaway guest is ended.
    pub interrupt: Interrupt,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            step_deadline: Duration::from_secs(600),
            host_call_deadline: Duration::from_secs(600),
            memory_bytes: 2 << 30,
            log_bytes: 64 << 10,
            interrupt: Interrupt::Process,
        }
    }
}

/// How a runaway guest is ended (DESIGN §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupt {
    /// A watchdog ends the process; guests run without checks.
    #[default]
    Process,
    /// Compiled-in epoch checks interrupt the guest; the process lives.
    Epoch,
}

/// A condition on a metric that ends a job.
#[derive(Clone, Debug, PartialEq)]
pub struct StopRule {
    /// The metric that is watched.
    pub metric: String,
    /// Holds when the metric is at or below this.
    pub below: Option<f64>,
    /// Holds when the metric is at or above this.
    pub above: Option<f64>,
    /// Holds after so many clocks without improvement.
    pub patience: Option<u32>,
    /// The least change that counts as an improvement; 0 or more.
    pub min_delta: f64,
}

/// Watches one [`StopRule`] over a run. Its state follows from the values seen, so a resumed run rebuilds it from the
/// metric history of the cut.
#[derive(Clone, Debug)]
pub struct StopWatch {
    rule: StopRule,
    goal: Goal,
    best: Option<(u32, f64)>,
}

impl StopWatch {
    /// At the beginning of a run. `goal` says which way the metric improves.
    pub fn new(rule: StopRule, goal: Goal) -> Self {
        Self { rule, goal, best: None }
    }

    /// The metric that it wants to see.
    pub fn metric(&self) -> &str {
        &self.rule.metric
    }

    /// Takes the metric's value at the end of `clock`; answers why the job ends, if it does.
    pub fn observe(&mut self, clock: u32, value: f64) -> Option<String> {
        let metric = &self.rule.metric;
        if let Some(bound) = self.rule.below.filter(|b| value <= *b) {
            return Some(format!("{metric} is {value}, at or below {bound}"));
        }
        if let Some(bound) = self.rule.above.filter(|b| value >= *b) {
            return Some(format!("{metric} is {value}, at or above {bound}"));
        }
        let better = |best: f64| match self.goal {
            Goal::Lower => value < best - self.rule.min_delta,
            Goal::Higher => value > best + self.rule.min_delta,
        };
        match self.best {
            Some((since, best)) if !better(best) => {
                let waited = clock.saturating_sub(since);
                let patience = self.rule.patience.filter(|p| waited >= *p)?;
                Some(format!("{metric} has not improved on {best} for {patience} clocks"))
            }
            // NaN never improves on anything, so it must not become the best either.
            _ if value.is_nan() => None,
            _ => {
                self.best = Some((clock, value));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock at which the rule holds for `values`, one a clock.
    fn check(rule: StopRule, goal: Goal, values: &[f64]) -> Option<u32> {
        let mut watch = StopWatch::new(rule, goal);
        (0..).zip(values).find(|(clock, v)| watch.observe(*clock, **v).is_some()).map(|(clock, _)| clock)
    }

    fn rule() -> StopRule {
        StopRule { metric: "m".into(), below: None, above: None, patience: None, min_delta: 0.0 }
    }

    #[test]
    fn bounds_hold_at_the_first_value_that_reaches_them() {
        let falling = [3.0, 2.0, 1.0, 0.5];
        assert_eq!(check(StopRule { below: Some(1.0), ..rule() }, Goal::Lower, &falling), Some(2));
        assert_eq!(check(StopRule { above: Some(1.5), ..rule() }, Goal::Higher, &[0.0, 1.0, 2.0]), Some(2));
        assert_eq!(check(StopRule { below: Some(0.1), ..rule() }, Goal::Lower, &falling), None);
        assert_eq!(check(StopRule { below: Some(0.1), ..rule() }, Goal::Lower, &[f64::NAN]), None);
    }

    #[test]
    fn patience_counts_clocks_since_the_best_value() {
        let patient = StopRule { patience: Some(2), ..rule() };
        assert_eq!(check(patient.clone(), Goal::Lower, &[3.0, 2.0, 2.0, 2.5]), Some(3));
        assert_eq!(check(patient.clone(), Goal::Higher, &[3.0, 2.0, 4.0, 4.0, 4.0]), Some(4));
        assert_eq!(check(patient.clone(), Goal::Lower, &[f64::NAN, 2.0, 1.0, 0.5]), None);
        let coarse = StopRule { min_delta: 0.5, ..patient };
        assert_eq!(check(coarse, Goal::Lower, &[3.0, 2.9, 2.8, 2.7]), Some(2));
    }
}
