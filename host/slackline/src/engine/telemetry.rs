//! A plugin's words and numbers on their way out: metrics summed per clock, lines passed on to the run's sink.

use crate::engine::run::News;
use crossbeam_channel::Sender;
use slackline_core::HostError;
use slackline_core::manifest::MetricSpec;
use slackline_core::ports::{Level, Telemetry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Σ value·weight and Σ weight of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighted {
    /// Σ value·weight.
    pub sum: f64,
    /// Σ weight.
    pub weight: f64,
}

/// Sums by metric.
pub type Sums = BTreeMap<String, Weighted>;

/// A line that a plugin wrote.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Which worker.
    pub worker: u32,
    /// How loud.
    pub level: Level,
    /// The line.
    pub line: String,
}

/// One worker's account.
pub struct WorkerTelemetry {
    worker: u32,
    known: Arc<[MetricSpec]>,
    sums: Sums,
    lines: Sender<News>,
    complained: bool,
}

impl WorkerTelemetry {
    /// For `worker`, taking the metrics that its plugin's manifest declares.
    pub fn new(worker: u32, known: Arc<[MetricSpec]>, lines: Sender<News>) -> Self {
        Self { worker, known, sums: Sums::new(), lines, complained: false }
    }

    /// Takes the metrics that another version declares.
    pub fn expect(&mut self, known: Arc<[MetricSpec]>) {
        self.known = known;
    }

    /// What was summed since the last call.
    pub fn take(&mut self) -> Sums {
        std::mem::take(&mut self.sums)
    }
}

impl Telemetry for WorkerTelemetry {
    fn log(&mut self, level: Level, line: &str) {
        // The listener may be gone at the very end of a run; a line is no reason to fail.
        let _ = self.lines.send(News::Log(LogLine { worker: self.worker, level, line: line.to_owned() }));
    }

    fn metric(&mut self, name: &str, value: f64, weight: f64) -> Result<(), HostError> {
        if let Some(sum) = self.sums.get_mut(name) {
            sum.sum += value * weight;
            sum.weight += weight;
            return Ok(());
        }
        if self.known.iter().any(|m| m.name == name) {
            self.sums.insert(name.to_owned(), Weighted { sum: value * weight, weight });
            return Ok(());
        }
        if !std::mem::replace(&mut self.complained, true) {
            let known: Vec<_> = self.known.iter().map(|m| m.name.as_str()).collect();
            let line = format!("metric {name:?} is dropped: the manifest declares {}", known.join(", "));
            self.log(Level::Warn, &line);
        }
        Err(HostError::Invalid(format!("metric {name:?} is not in the manifest")))
    }
}

/// The metrics of all workers, in worker order so that the same run gives the same bits.
pub fn combine(specs: &[MetricSpec], workers: &[Sums]) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    for spec in specs {
        let mut total = Weighted::default();
        for sums in workers {
            if let Some(w) = sums.get(&spec.name) {
                total.sum += w.sum;
                total.weight += w.weight;
            }
        }
        if total.weight != 0.0 {
            metrics.insert(spec.name.clone(), spec.then.apply(total.sum / total.weight));
        } else if workers.iter().any(|s| s.contains_key(&spec.name)) {
            metrics.insert(spec.name.clone(), f64::NAN);
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_core::manifest::{Goal, Then};

    #[test]
    fn a_metric_is_the_weighted_mean_over_workers_and_then_its_transform() {
        let spec = |name: &str, then| MetricSpec { name: name.into(), then, goal: Goal::Lower, finite: true };
        let specs = [spec("rmse", Then::Sqrt), spec("absent", Then::Nothing), spec("empty", Then::Nothing)];
        let sums = |pairs: &[(&str, f64, f64)]| -> Sums {
            pairs.iter().map(|(n, sum, weight)| (n.to_string(), Weighted { sum: *sum, weight: *weight })).collect()
        };
        let workers =
            [sums(&[("rmse", 8.0, 1.0), ("empty", 0.0, 0.0)]), sums(&[("rmse", 1.0, 0.0), ("rmse", 10.0, 1.0)])];
        let got = combine(&specs, &workers);
        assert_eq!(got["rmse"], 3.0);
        assert!(got["empty"].is_nan());
        assert!(!got.contains_key("absent"));
    }
}
