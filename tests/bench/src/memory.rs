//! Memory and time of the real binary on whole jobs, loading and compiling included.

use crate::Options;
use crate::jobs::Workload;
use crate::measure::turns;
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs `slackline run` on the workload's job file.
pub fn measure(options: &Options, workload: &Workload, scratch: &Path, report: &mut Report) -> Result<()> {
    let binary = std::env::current_exe()?.with_file_name("slackline");
    ensure!(binary.exists(), "{} is not there: `make bench` builds it first", binary.display());
    for workers in [1, 2] {
        let state = scratch.join(format!("{}-state", workload.name));
        let run = || -> Result<[f64; 3]> {
            let begun = Instant::now();
            let output = Command::new(&binary)
                .arg("run")
                .arg(&workload.file)
                .args(["--json", "--fresh", "--workers", &workers.to_string(), "--state"])
                .arg(&state)
                .output()
                .with_context(|| binary.display().to_string())?;
            let wall = begun.elapsed().as_secs_f64();
            let errors = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "slackline run {}: {errors}", workload.file.display());
            let text = String::from_utf8(output.stdout)?;
            let done: Value = serde_json::from_str(text.lines().last().context("no line")?)?;
            let number = |key: &str| done[key].as_f64().with_context(|| format!("the last line has no {key}"));
            Ok([number("peak_memory_bytes")? / f64::from(1 << 20), wall, number("seconds")?])
        };
        let measured = turns(options.rounds(3), &mut [Box::new(run)])?;
        let [[peak, wall, training]] = &measured[..] else { continue };
        let of = if workers == 1 { "1 worker" } else { "2 workers" };
        report.add("memory", format!("slackline run, {}, {of}: peak", workload.name), peak, "MiB");
        report.add("memory", format!("slackline run, {}, {of}: whole process", workload.name), wall, "s");
        report.add("memory", format!("slackline run, {}, {of}: training", workload.name), training, "s");
    }
    Ok(())
}
