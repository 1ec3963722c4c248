//! How a cluster's things read.

use slackline_wire::v1;
use std::time::{SystemTime, UNIX_EPOCH};

/// A state's word.
pub fn state(state: i32) -> &'static str {
    match v1::JobState::try_from(state) {
        Ok(v1::JobState::Queued) => "queued",
        Ok(v1::JobState::Running) => "running",
        Ok(v1::JobState::Ending) => "ending",
        Ok(v1::JobState::Paused) => "paused",
        Ok(v1::JobState::Done) => "done",
        Ok(v1::JobState::Stopped) => "stopped",
        Ok(v1::JobState::Failed) => "failed",
        Ok(v1::JobState::Unspecified) | Err(_) => "unknown",
    }
}

/// How long ago.
pub fn ago(at: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    format!("{} ago", span(now.saturating_sub(at)))
}

/// A time span in its largest units.
pub fn span(seconds: u64) -> String {
    match seconds {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min", s / 60),
        s if s < 86_400 => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// Clocks done, of how many.
pub fn clocks(job: &v1::Job) -> String {
    match job.max_clocks {
        Some(max) => format!("{}/{max}", job.clock),
        None => job.clock.to_string(),
    }
}

/// A job as a row of a table, under [`HEADINGS`].
pub fn row(job: &v1::Job) -> Vec<String> {
    let plugin = match job.revision {
        0 => job.plugin.clone(),
        n if job.plugin.contains('@') || job.plugin.starts_with("blake3:") => format!("{} (r{n})", short(&job.plugin)),
        n => format!("{}@{n}", job.plugin),
    };
    vec![
        job.id.clone(),
        state(job.state).to_owned(),
        plugin,
        job.workers.to_string(),
        clocks(job),
        ago(job.submitted_at),
        job.reason.clone(),
    ]
}

/// What the columns of [`row`] are.
pub const HEADINGS: [&str; 7] = ["JOB", "STATE", "PLUGIN", "WORKERS", "CLOCKS", "SUBMITTED", "WHY"];

/// A digest that fits a table.
pub fn short(digest: &str) -> String {
    digest.chars().take("blake3:".len() + 12).collect()
}

/// The headings of a table as its first row.
pub fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

/// A job as JSON.
pub fn json(job: &v1::Job) -> serde_json::Value {
    let metrics: serde_json::Map<String, serde_json::Value> =
        job.metrics.iter().map(|(k, v)| (k.clone(), serde_json::json!(v))).collect();
    serde_json::json!({
        "id": job.id, "name": job.name, "state": state(job.state), "reason": job.reason, "plugin": job.plugin,
        "digest": job.digest, "revision": job.revision, "workers": job.workers, "clock": job.clock,
        "max_clocks": job.max_clocks, "metrics": metrics, "submitted_at": job.submitted_at,
        "changed_at": job.changed_at, "attempts": job.attempts, "state_folder": job.state_folder,
        "process": job.process,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let read = [5, 65, 3_700, 90_000].map(span);
        assert_eq!(read, ["5 s", "1 min", "1 h 01 min", "1 d 1 h"]);
    }
}
