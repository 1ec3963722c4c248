//! Bars as SVG: a histogram, and shares of a whole.

use super::html::Escaped;
use crate::sinks::words::{count, seconds};
use std::fmt::Write;

/// A histogram of counts by a small number.
pub fn histogram(title: &str, x_label: &str, counts: &[(String, u64)]) -> String {
    const WIDTH: f64 = 560.0;
    const HEIGHT: f64 = 220.0;
    const BASE: f64 = 176.0;
    const TOP: f64 = 24.0;
    let mut out =
        format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>", Escaped(title));
    let most = counts.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1) as f64;
    let total = counts.iter().map(|(_, n)| *n).sum::<u64>().max(1) as f64;
    let slot = (WIDTH - 40.0) / counts.len().max(1) as f64;
    let bar = (slot * 0.72).min(90.0);
    for (i, (name, n)) in counts.iter().enumerate() {
        let mid = 20.0 + slot * (i as f64 + 0.5);
        let height = (BASE - TOP) * *n as f64 / most;
        let share = 100.0 * *n as f64 / total;
        _ = write!(
            out,
            "<g class=\"bar\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\" rx=\"3\"/>\
             <title>{}: {} ({share:.1} %)</title></g><text class=\"tick mid\" x=\"{mid:.1}\" y=\"{:.1}\">{}</text>",
            mid - bar / 2.0,
            BASE - height,
            Escaped(name),
            count(*n),
            BASE + 16.0,
            Escaped(name)
        );
        if slot > 44.0 {
            let at = BASE - height - 6.0;
            _ = write!(out, "<text class=\"value mid\" x=\"{mid:.1}\" y=\"{at:.1}\">{share:.1} %</text>");
        }
    }
    _ = write!(
        out,
        "<line class=\"axis\" x1=\"20\" x2=\"{}\" y1=\"{BASE}\" y2=\"{BASE}\"/>\
         <text class=\"label mid\" x=\"{}\" y=\"{}\">{}</text></svg>",
        WIDTH - 20.0,
        WIDTH / 2.0,
        HEIGHT - 8.0,
        Escaped(x_label)
    );
    out
}

/// Rows of parts on one scale, each row with its total. `names` are the parts', in the order of the colours.
pub fn stacked(title: &str, names: &[&str], rows: &[(String, Vec<f64>)]) -> String {
    const WIDTH: f64 = 1140.0;
    const LEFT: f64 = 92.0;
    const RIGHT: f64 = 86.0;
    const ROW: f64 = 30.0;
    const TOP: f64 = 34.0;
    let height = TOP + ROW * rows.len() as f64 + 6.0;
    let mut out =
        format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title>", Escaped(title));
    let mut at = LEFT;
    for (i, name) in names.iter().enumerate() {
        _ = write!(
            out,
            "<rect class=\"part{i}\" x=\"{at:.0}\" y=\"6\" width=\"12\" height=\"12\" rx=\"3\"/>\
             <text class=\"tick\" x=\"{:.0}\" y=\"16\">{}</text>",
            at + 18.0,
            Escaped(name)
        );
        at += 42.0 + 6.2 * name.chars().count() as f64;
    }
    let part_of = |v: f64| if v.is_finite() { v.max(0.0) } else { 0.0 };
    let total = |parts: &[f64]| parts.iter().map(|v| part_of(*v)).sum::<f64>();
    let most = rows.iter().map(|(_, parts)| total(parts)).fold(f64::MIN_POSITIVE, f64::max);
    for (i, (name, parts)) in rows.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        _ = write!(
            out,
            "<text class=\"tick end\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            LEFT - 10.0,
            y + 16.0,
            Escaped(name)
        );
        let mut x = LEFT;
        for (part, value) in parts.iter().enumerate() {
            let width = (WIDTH - LEFT - RIGHT) * part_of(*value) / most;
            let share = 100.0 * part_of(*value) / total(parts).max(f64::MIN_POSITIVE);
            _ = write!(
                out,
                "<g><rect class=\"part{part}\" x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"22\"/>\
                 <title>{}: {} ({share:.0} %)</title></g>",
                Escaped(names.get(part).unwrap_or(&"")),
                seconds(part_of(*value))
            );
            x += width;
        }
        _ = write!(
            out,
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            x + 8.0,
            y + 16.0,
            seconds(total(parts))
        );
    }
    out.push_str("</svg>");
    out
}
