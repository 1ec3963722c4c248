//! Numbers and summaries in words, the same wherever people read them.

use crate::events::{Metrics, Started, Status, Summary, VersionSummary};
use std::fmt::Write;

/// A metric's value in at most seven significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        value.to_string()
    } else if size != 0.0 && !(1e-4..1e7).contains(&size) {
        format!("{value:.4e}")
    } else {
        let whole = if size < 1.0 { 1 } else { size.log10() as usize + 1 };
        let text = format!("{value:.*}", 7usize.saturating_sub(whole).min(5));
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }
}

/// `name value` pairs.
pub fn metrics(metrics: &Metrics) -> String {
    let pairs: Vec<_> = metrics.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
    pairs.join("  ")
}

/// Bytes with a binary unit.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let place = (n.max(1).ilog2() / 10).min(4) as usize;
    match place {
        0 => format!("{n} B"),
        _ => format!("{:.1} {}", n as f64 / 1024f64.powi(place as i32), UNITS[place]),
    }
}

/// A count with thin groups: 12,345,678.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 worker`, `2 workers`.
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A time span.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
    }
}

/// What starts.
pub fn started(s: &Started) -> String {
    let mut line = format!("{}: {} on {}", s.job, s.plugin.name, plural(u64::from(s.workers), "worker"));
    match s.consistency.as_str() {
        "ssp" | "essp" => _ = write!(line, ", {} with staleness {}", s.consistency, s.staleness_bound),
        other => _ = write!(line, ", {other}"),
    }
    for (name, rows) in &s.rows {
        _ = write!(line, ", {name} {}", plural(*rows, "row"));
    }
    if let Some(clock) = s.resumed_from {
        _ = write!(line, ", resumed at clock {clock}");
    }
    line
}

/// A swap: which version came, and what of it is new.
pub fn swap(clock: u32, from: &VersionSummary, to: &VersionSummary, reason: &str) -> String {
    let mut line = format!("swap at clock {clock}: version {} after {} ({reason})", to.version, from.version);
    if from.plugin != to.plugin || from.digest != to.digest {
        _ = write!(line, ", {} {}", to.plugin, short(&to.digest));
    }
    for (key, value) in to.params.iter().filter(|(key, value)| from.params.get(*key) != Some(value)) {
        _ = write!(line, ", {key} = {value}");
    }
    for key in from.params.keys().filter(|key| !to.params.contains_key(*key)) {
        _ = write!(line, ", no {key}");
    }
    if from.staleness != to.staleness {
        _ = write!(line, ", staleness {}", to.staleness);
    }
    line
}

/// As much of a digest as tells it from others.
pub fn short(digest: &str) -> &str {
    digest.get(.."blake3:".len() + 12).unwrap_or(digest)
}

/// How a run ended, over a few lines.
pub fn summary(s: &Summary) -> String {
    let how = match s.status {
        Status::Done => "done",
        Status::Stopped => "stopped",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    };
    let mut out = format!("{how} after {} in {}", plural(u64::from(s.clocks), "clock"), seconds(s.seconds));
    if let Some(reason) = s.reason.as_ref().filter(|reason| *reason != how) {
        _ = write!(out, ": {reason}");
    }
    if !s.metrics.is_empty() {
        _ = write!(out, "\n  {}", metrics(&s.metrics));
    }
    for view in &s.views {
        _ = write!(out, "\n{}", view.title);
        for (i, labels) in view.lines.iter().enumerate() {
            _ = write!(out, "\n  {i:>3}  {}", labels.join(" "));
        }
    }
    if s.skipped_rows > 0 {
        _ = write!(out, "\n  {} skipped", plural(s.skipped_rows, "malformed row"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_tells_what_is_new() {
        let params = |text: &str| serde_json::from_str(text).unwrap();
        let old = VersionSummary { version: 1, params: params(r#"{"l2":0.1,"seed":3,"x":1}"#), ..Default::default() };
        let new =
            VersionSummary { version: 2, params: params(r#"{"l2":0.5,"seed":3}"#), staleness: 2, ..Default::default() };
        let told = swap(7, &old, &new, "asked");
        assert_eq!(told, "swap at clock 7: version 2 after 1 (asked), l2 = 0.5, no x, staleness 2");
    }

    #[test]
    fn numbers_read_well() {
        for (value, text) in [
            (0.0, "0"),
            (0.912345678, "0.91235"),
            (1498.25, "1498.25"),
            (123456.789, "123456.8"),
            (2.5e-7, "2.5000e-7"),
            (-3.0, "-3"),
            (100.0, "100"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!((count(0), count(999), count(1234567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!((bytes(0), bytes(1023), bytes(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!((seconds(0.002), seconds(125.0)), ("2 ms".into(), "2 min 05 s".into()));
    }
}
