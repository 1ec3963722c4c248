//! A line chart as SVG: a metric over clocks or over time.

use super::html::Escaped;
use crate::sinks::words::number;
use std::fmt::Write;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// More points than pixels only make the page heavy.
const MOST_POINTS: usize = 500;
/// Few enough points to mark each one.
const MOST_MARKS: usize = 40;

/// A line chart of `points` (x, y), in ascending x; `title` describes it for people who cannot see it.
pub fn line(title: &str, x_label: &str, points: &[(f64, f64)]) -> String {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let mut out =
        format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>", Escaped(title));
    let (Some(x), Some(y)) = (Axis::over(finite.iter().map(|p| p.0)), Axis::over_values(&finite)) else {
        _ = write!(out, "<text x=\"{}\" y=\"{}\" class=\"tick mid\">no values</text></svg>", WIDTH / 2.0, HEIGHT / 2.0);
        return out;
    };
    let place = |(px, py): (f64, f64)| {
        let at_x = LEFT + x.part(px) * (WIDTH - LEFT - RIGHT);
        (at_x, HEIGHT - BOTTOM - y.part(py) * (HEIGHT - TOP - BOTTOM))
    };
    for tick in y.ticks(5) {
        let (_, at) = place((x.low, tick));
        _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            number(tick)
        );
    }
    for tick in x.ticks(7) {
        let (at, _) = place((tick, y.low));
        let base = HEIGHT - BOTTOM;
        _ = write!(out, "<text class=\"tick mid\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>", base + 16.0, number(tick));
    }
    _ = write!(
        out,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\
         <text class=\"label mid\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        WIDTH - RIGHT,
        HEIGHT - BOTTOM,
        HEIGHT - BOTTOM,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        Escaped(x_label)
    );
    let shown = thin(&finite);
    let path: Vec<String> = shown.iter().map(|p| place(*p)).map(|(px, py)| format!("{px:.1},{py:.1}")).collect();
    _ = write!(out, "<polyline class=\"line\" points=\"{}\"/>", path.join(" "));
    let marks = if shown.len() <= MOST_MARKS { shown.as_slice() } else { &shown[shown.len() - 1..] };
    for mark in marks {
        let (px, py) = place(*mark);
        _ = write!(out, "<circle class=\"mark\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"2.8\"/>");
    }
    hover(&mut out, x_label, &shown, place);
    out.push_str("</svg>");
    out
}

/// Invisible strips that show the values under the pointer, without a script.
fn hover(out: &mut String, x_label: &str, shown: &[(f64, f64)], place: impl Fn((f64, f64)) -> (f64, f64)) {
    const MOST_STRIPS: usize = 120;
    let step = shown.len().div_ceil(MOST_STRIPS).max(1);
    let strips: Vec<(f64, f64)> = shown.iter().copied().step_by(step).collect();
    for (i, point) in strips.iter().enumerate() {
        let (at, y) = place(*point);
        let from = if i == 0 { LEFT } else { (place(strips[i - 1]).0 + at) / 2.0 };
        let to = strips.get(i + 1).map_or(WIDTH - RIGHT, |next| (place(*next).0 + at) / 2.0);
        _ = write!(
            out,
            "<g class=\"strip\"><rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\"/>\
             <circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4\"/><title>{} {}: {}</title></g>",
            (to - from).max(0.0),
            HEIGHT - TOP - BOTTOM,
            Escaped(x_label),
            number(point.0),
            number(point.1)
        );
    }
}

/// At most [`MOST_POINTS`]: of each run of neighbours the lowest and the highest stay, so that no spike is lost; the
/// first and last points stay too.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let run = points.len().div_ceil(MOST_POINTS / 2 - 1);
    let mut out = vec![points[0]];
    for chunk in points[1..points.len() - 1].chunks(run) {
        let low = chunk.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(i, _)| i);
        let high = chunk.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(i, _)| i);
        let mut both: Vec<usize> = low.into_iter().chain(high).collect();
        both.sort_unstable();
        both.dedup();
        out.extend(both.into_iter().map(|i| chunk[i]));
    }
    out.push(points[points.len() - 1]);
    out
}

/// A range of values, linear or logarithmic.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From the least to the largest value.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = values.clone().min_by(f64::total_cmp)?;
        let high = values.max_by(f64::total_cmp)?;
        // Keeps differences finite whatever a plugin reports.
        let (low, high) = (low.max(-1e300), high.min(1e300));
        if high > low {
            return Some(Self { low, high, log: false });
        }
        let pad = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
        Some(Self { low: low - pad, high: low + pad, log: false })
    }

    /// Over the y values with some air, logarithmic when they span more than three powers of ten.
    fn over_values(points: &[(f64, f64)]) -> Option<Self> {
        let mut axis = Self::over(points.iter().map(|p| p.1))?;
        if axis.low > 0.0 && axis.high / axis.low > 1e3 {
            axis.log = true;
            return Some(axis);
        }
        let air = (axis.high - axis.low) * 0.04;
        axis.low -= air;
        axis.high += air;
        Some(axis)
    }

    /// Where `value` lies between the ends, 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let part = match self.log {
            true => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    /// About `n` round values inside.
    fn ticks(&self, n: usize) -> Vec<f64> {
        if self.log {
            let (from, to) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            let step = ((to - from) as usize / n + 1).max(1);
            return (from..=to).step_by(step).map(|e| 10f64.powi(e)).collect();
        }
        let raw = (self.high - self.low) / n as f64;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw).unwrap_or(raw);
        let first = (self.low / step).ceil();
        let inside = |i: usize| Some((first + i as f64) * step).filter(|t| *t <= self.high);
        // Adding to zero turns a tick of −0 into 0.
        (0..=2 * n).map_while(inside).map(|t| t + 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        for (low, high, want) in [
            (0.0, 10.0, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (-1.0, 1.0, vec![-1.0, -0.5, 0.0, 0.5, 1.0]),
            (1420.0, 1580.0, vec![1450.0, 1500.0, 1550.0]),
        ] {
            assert_eq!(Axis { low, high, log: false }.ticks(5), want);
        }
        assert_eq!(Axis { low: 0.5, high: 2000.0, log: true }.ticks(5), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn thinning_keeps_ends_and_spikes() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 1.0)).collect();
        points[6_543].1 = 99.0;
        let thin = thin(&points);
        assert!(thin.len() <= MOST_POINTS && thin.contains(&(6543.0, 99.0)));
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[9_999]));
        assert!(thin.is_sorted_by(|a, b| a.0 < b.0));
    }
}
