//! The parts of the page, in the order in which people ask.

use super::html::Escaped;
use super::{bars, chart};
use crate::events::{Status, Summary};
use crate::sinks::words::{bytes, count, number, plural, seconds, short};
use std::collections::BTreeSet;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(s: &Summary) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{} · Slackline</title><style>{STYLE}</style></head><body><main>\n",
        Escaped(&s.job)
    );
    header(&mut out, s);
    cards(&mut out, s);
    metrics(&mut out, s);
    views(&mut out, s);
    staleness_and_traffic(&mut out, s);
    workers(&mut out, s);
    tables_and_cuts(&mut out, s);
    versions(&mut out, s);
    config(&mut out, s);
    _ = writeln!(out, "<footer>Slackline {}</footer></main></body></html>", env!("CARGO_PKG_VERSION"));
    out
}

fn header(out: &mut String, s: &Summary) {
    let status = match s.status {
        Status::Done => "done",
        Status::Stopped => "stopped",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    };
    _ = write!(out, "<header><h1>{}</h1><span class=\"pill {status}\">{status}</span>", Escaped(&s.job));
    _ = write!(out, "<div class=\"sub\">{}", Escaped(&s.plugin.name));
    if !s.workers.is_empty() {
        _ = write!(out, " on {}", plural(s.workers.len() as u64, "worker"));
    }
    if let Some(clock) = s.resumed_from {
        _ = write!(out, ", resumed at clock {clock}");
    }
    if let Some(reason) = &s.reason {
        _ = write!(out, " — {}", Escaped(reason));
    }
    out.push_str("</div></header>\n");
}

fn cards(out: &mut String, s: &Summary) {
    let mut cards: Vec<(&str, String)> = s.metrics.iter().map(|(name, v)| (name.as_str(), number(*v))).collect();
    cards.push(("clocks", count(u64::from(s.clocks))));
    cards.push(("time", seconds(s.seconds)));
    if s.clocks > s.resumed_from.unwrap_or(0) && s.seconds > 0.0 {
        cards.push(("time a clock", seconds(s.seconds / f64::from(s.clocks - s.resumed_from.unwrap_or(0)))));
    }
    if s.peak_memory_bytes > 0 {
        cards.push(("peak memory", bytes(s.peak_memory_bytes)));
    }
    if s.skipped_rows > 0 {
        cards.push(("rows skipped", count(s.skipped_rows)));
    }
    out.push_str("<section class=\"cards\">");
    for (name, value) in cards {
        let (name, value) = (Escaped(name), Escaped(&value));
        _ = write!(out, "<div class=\"card\"><div class=\"name\">{name}</div><div class=\"big\">{value}</div></div>");
    }
    out.push_str("</section>\n");
    for notice in &s.notices {
        _ = writeln!(out, "<div class=\"card note\">{}</div>", Escaped(notice));
    }
}

fn metrics(out: &mut String, s: &Summary) {
    let names: BTreeSet<&str> = s.history.iter().flat_map(|p| p.metrics.keys().map(String::as_str)).collect();
    if names.is_empty() {
        return;
    }
    out.push_str("<h2>Metrics</h2><section class=\"grid2\">");
    for name in names {
        let over = |x: &dyn Fn(u32, f64) -> f64| -> Vec<(f64, f64)> {
            s.history.iter().filter_map(|p| Some((x(p.clock, p.seconds), *p.metrics.get(name)?))).collect()
        };
        let by_clock = over(&|clock, _| f64::from(clock));
        let by_time = over(&|_, seconds| seconds);
        for (against, label, points) in [("clock", "clock", by_clock), ("time", "seconds", by_time)] {
            let title = format!("{name} against {against}");
            let svg = chart::line(&title, label, &points);
            let name = Escaped(name);
            _ = write!(out, "<div class=\"card\"><h3>{name} <span>against {against}</span></h3>{svg}</div>");
        }
    }
    out.push_str("</section>\n");
}

fn views(out: &mut String, s: &Summary) {
    for view in &s.views {
        _ = write!(out, "<h2>{}</h2><div class=\"card\"><table>", Escaped(&view.title));
        for (i, labels) in view.lines.iter().enumerate() {
            _ = write!(out, "<tr><td class=\"num\">{i}</td><td class=\"words\">");
            for label in labels {
                _ = write!(out, "<span>{}</span> ", Escaped(label));
            }
            out.push_str("</td></tr>");
        }
        out.push_str("</table></div>\n");
    }
}

fn staleness_and_traffic(out: &mut String, s: &Summary) {
    out.push_str("<h2>Reads and traffic</h2><section class=\"grid2\">");
    if !s.staleness.is_empty() {
        let counts: Vec<(String, u64)> = s.staleness.iter().map(|(gap, n)| (gap.to_string(), *n)).collect();
        let title = "How old reads were";
        let svg = bars::histogram(title, "clocks behind the reader", &counts);
        _ = write!(out, "<div class=\"card\"><h3>{title}</h3>{svg}</div>");
    }
    let t = &s.traffic;
    out.push_str("<div class=\"card\"><h3>Rows and bytes moved</h3><table>");
    row(out, true, &["", "rows", "bytes"]);
    row(out, false, &["read by the plugin", &count(t.rows_read), ""]);
    row(out, false, &["updated by the plugin", &count(t.rows_updated), ""]);
    row(out, false, &["from shards to workers", &count(t.rows_pulled), &bytes(t.bytes_pulled)]);
    row(out, false, &["from workers to shards", &count(t.rows_pushed), &bytes(t.bytes_pushed)]);
    out.push_str("</table></div></section>\n");
}

fn workers(out: &mut String, s: &Summary) {
    if s.workers.is_empty() {
        return;
    }
    let rows: Vec<(String, Vec<f64>)> =
        s.workers.iter().map(|w| (format!("worker {}", w.worker), vec![w.compute, w.gate, w.host, w.apply])).collect();
    let title = "Where the time went";
    let svg = bars::stacked(title, &["compute", "wait at the gate", "host calls", "apply"], &rows);
    _ = writeln!(out, "<h2>{title}</h2><div class=\"card\">{svg}</div>");
}

fn tables_and_cuts(out: &mut String, s: &Summary) {
    if !s.tables.is_empty() {
        out.push_str("<h2>Tables</h2><div class=\"card\"><table>");
        row(out, true, &["table", "type", "layout", "rows", "width", "size"]);
        for (name, t) in &s.tables {
            let (rows, width) = (count(t.rows), count(u64::from(t.width)));
            row(out, false, &[name, &t.dtype, &t.layout, &rows, &width, &bytes(t.bytes)]);
        }
        out.push_str("</table></div>\n");
    }
    if s.cuts.count > 0 {
        let clocks: Vec<String> = s.cuts.clocks.iter().map(u32::to_string).collect();
        out.push_str("<h2>Cuts</h2><div class=\"card\"><table>");
        row(out, true, &["cuts", "written", "time from tick to disk", "at clocks"]);
        let (n, size) = (count(u64::from(s.cuts.count)), bytes(s.cuts.bytes));
        row(out, false, &[&n, &size, &seconds(s.cuts.seconds), &clocks.join(", ")]);
        out.push_str("</table></div>\n");
    }
}

fn versions(out: &mut String, s: &Summary) {
    if s.versions.len() < 2 {
        return;
    }
    out.push_str("<h2>Versions</h2><div class=\"card\"><table>");
    row(out, true, &["version", "from clock", "plugin", "digest", "parameters", "staleness", "why"]);
    for v in &s.versions {
        let params = serde_json::Value::Object(v.params.clone()).to_string();
        let numbers = [v.version, v.since, v.staleness].map(|n| count(u64::from(n)));
        row(out, false, &[&numbers[0], &numbers[1], &v.plugin, short(&v.digest), &params, &numbers[2], &v.reason]);
    }
    out.push_str("</table></div>\n");
}

fn config(out: &mut String, s: &Summary) {
    out.push_str("<h2>Plugin and configuration</h2><div class=\"card\"><table>");
    row(out, false, &["plugin", &s.plugin.name]);
    _ = write!(out, "<tr><td>digest</td><td><code>{}</code></td></tr>", Escaped(&s.plugin.digest));
    for (key, value) in &s.config {
        _ = write!(out, "<tr><td><code>{}</code></td><td>{}</td></tr>", Escaped(key), Escaped(value));
    }
    out.push_str("</table></div>\n");
}

fn row(out: &mut String, head: bool, cells: &[&str]) {
    let tag = if head { "th" } else { "td" };
    out.push_str("<tr>");
    for cell in cells {
        _ = write!(out, "<{tag}>{}</{tag}>", Escaped(cell));
    }
    out.push_str("</tr>");
}
