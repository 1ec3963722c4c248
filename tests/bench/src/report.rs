//! The table that the bench prints.

use crate::machine::Machine;
use crate::measure::Samples;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Figure {
    part: String,
    what: String,
    value: f64,
    unit: &'static str,
    /// Half of the distance between the quartiles of the rounds, as a share of the median.
    spread: f64,
    /// The value is not to be above this.
    gate: Option<f64>,
    met: Option<bool>,
}

/// All lines so far, printed as they come.
pub struct Report {
    json: bool,
    quick: bool,
    machine: Machine,
    figures: Vec<Figure>,
}

impl Report {
    /// Begins the table.
    pub fn new(json: bool, quick: bool) -> Self {
        let report = Self { json, quick, machine: Machine::here(), figures: Vec::new() };
        if !json {
            let Machine { cores, cpu, memory_bytes } = &report.machine;
            println!("machine: {cores} cores, {cpu}, {:.0} GiB", *memory_bytes as f64 / f64::from(1 << 30));
            println!(
                "a figure is the median of rounds in which competitors take turns; ± is half their quartiles' distance"
            );
            println!("{:<8} {:<58} {:>10} {:<11} {:>6}  gate", "", "", "", "", "±");
        }
        report
    }

    /// Adds a line.
    pub fn add(&mut self, part: &str, what: impl Into<String>, samples: &Samples, unit: &'static str) {
        self.line(part, what.into(), samples, unit, None);
    }

    /// Adds a line with a bound that its value should not exceed.
    pub fn gate(&mut self, part: &str, what: impl Into<String>, samples: &Samples, unit: &'static str, gate: f64) {
        self.line(part, what.into(), samples, unit, Some(gate));
    }

    fn line(&mut self, part: &str, what: String, samples: &Samples, unit: &'static str, gate: Option<f64>) {
        let (value, spread) = (samples.median(), samples.spread());
        let figure =
            Figure { part: part.to_owned(), what, value, unit, spread, gate, met: gate.map(|gate| value <= gate) };
        if !self.json {
            let gate = match (figure.gate, figure.met) {
                (Some(gate), Some(true)) => format!("≤ {gate}  met"),
                (Some(gate), _) => format!("≤ {gate}  MISSED by {:.0} %", (value / gate - 1.0) * 100.0),
                _ => String::new(),
            };
            let spread = format!("{:.1} %", spread * 100.0);
            println!("{part:<8} {:<58} {:>10} {unit:<11} {spread:>6}  {gate}", figure.what, digits(value));
        }
        self.figures.push(figure);
    }

    /// Ends the table.
    pub fn finish(self) -> Result<()> {
        if self.json {
            let all = serde_json::json!({"machine": self.machine, "quick": self.quick, "figures": self.figures});
            println!("{all}");
            return Ok(std::io::stdout().flush()?);
        }
        let gates = self.figures.iter().filter_map(|f| f.met);
        let (met, all) = gates.fold((0, 0), |(met, all), this| (met + usize::from(this), all + 1));
        println!("{met} of {all} gates met");
        Ok(())
    }
}

/// Three digits or so.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_met_at_its_bound_and_missed_above() {
        let mut report = Report::new(true, true);
        let samples: Samples = [60.0].into_iter().collect();
        report.gate("rows", "read", &samples, "ns/row", 60.0);
        report.gate("rows", "read", &samples.map(|v| v + 0.1), "ns/row", 60.0);
        report.add("rows", "read", &samples, "ns/row");
        let met: Vec<_> = report.figures.iter().map(|f| f.met).collect();
        assert_eq!(met, [Some(true), Some(false), None]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<_> = [1234.5, 12.345, 1.2345].into_iter().map(digits).collect();
        assert_eq!(shown, ["1234", "12.3", "1.23"]);
    }
}
