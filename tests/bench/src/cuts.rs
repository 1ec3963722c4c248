//! What a cut costs: its own time, and what it takes from a job that trains on meanwhile.

use crate::Options;
use crate::jobs::Ready;
use crate::measure::turns;
use crate::report::Report;
use crate::worker::Crossing;
use anyhow::Result;
use slackline::job::Interrupt;
use slackline_storage::{Mode, State};
use std::path::Path;

/// Cuts of a table of 64 MB.
pub fn measure(options: &Options, scratch: &Path, report: &mut Report) -> Result<()> {
    const CLOCKS: u32 = 10;
    let folder = scratch.join("cuts");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("train.csv"), "x\n0\n0\n0\n0\n")?;
    let params: serde_json::Map<_, _> =
        serde_json::from_str(&Crossing { work: "inc", calls: 256, rows: 1024 }.params())?;
    let params: String = params.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let file = folder.join("job.toml");
    let text = format!(
        "[job]\nname = \"cuts\"\nplugin = \"rows\"\n[data]\ntrain = \"train.csv\"\nbatch = 1\n\
         [clock]\nmax = {CLOCKS}\n[params]\n{params}"
    );
    std::fs::write(&file, text)?;
    let without = Ready::load(&file, 1, Interrupt::Process, &folder.join("loading"))?;
    let mut with = Ready::load(&file, 1, Interrupt::Process, &folder.join("loading-too"))?;
    with.job_mut().cuts.every = Some(1);
    let state = folder.join("state");
    let mut competitors: Vec<Box<dyn FnMut() -> Result<[f64; 3]> + '_>> = vec![
        Box::new(|| {
            let (_, wall) = without.run(None, None)?;
            Ok([wall, f64::NAN, f64::NAN])
        }),
        Box::new(|| {
            // A new folder each time: the cuts of an earlier run would be later than this one's.
            let _ = std::fs::remove_dir_all(&state);
            let state = State::open(&state, Mode::Create)?;
            state.keep_cuts(2);
            let (summary, wall) = with.run(None, Some(&state))?;
            let count = f64::from(summary.cuts.count.max(1));
            Ok([wall, summary.cuts.seconds / count, summary.cuts.bytes as f64 / count])
        }),
    ];
    let measured = turns(options.rounds(5), &mut competitors)?;
    let [without, with] = &measured[..] else { return Ok(()) };
    let clock = without[0].map(|wall| wall / f64::from(CLOCKS) * 1e3);
    report.add("cuts", "a cut of a table of 64 MB, from the tick to the disk", &with[1].map(|s| s * 1e3), "ms");
    report.add("cuts", "size on disk", &with[2].map(|bytes| bytes * 1e-6), "MB");
    report.add("cuts", "a clock of 1 M rows incremented, without cuts", &clock, "ms");
    report.add("cuts", "the same job with a cut every clock / without", &with[0].over(&without[0]), "×");
    Ok(())
}
