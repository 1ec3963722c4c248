//! `make bench`: what the sandbox costs, as ratios and per-row costs measured in one run.
//!
//! Absolute times mean little on a machine that others use too, so things that are compared take turns: every figure is
//! the median of rounds in which each competitor ran once. The table says how far the rounds were apart, which bounds
//! (gates) the project holds itself to, and whether this run met them.

mod border;
mod cuts;
mod jobs;
mod machine;
mod measure;
mod memory;
mod report;
mod worker;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use report::Report;
use std::path::PathBuf;

/// Measures the sandbox, the tables, whole jobs, cuts and memory.
#[derive(Parser)]
#[command(name = "slackline-bench")]
pub struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure this alone; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<Part>,
    /// Fewer rounds and smaller data: a look, not a figure to quote
    #[arg(long)]
    quick: bool,
    /// Folder with the corpora `ap` and `mnist10k`; generated sets stand in where it is absent
    #[arg(long, value_name = "DIR", default_value = "../shared/data/sets")]
    sets: PathBuf,
}

/// The parts of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Calls across the border
    Calls,
    /// Rows across the border
    Rows,
    /// Matrix factorisation, as WebAssembly and natively
    Mf,
    /// Logistic regression, as WebAssembly and natively
    Mlr,
    /// Topics, as WebAssembly and natively
    Lda,
    /// What a cut costs
    Cuts,
    /// Peak memory of the binary
    Memory,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// `full`, or a third of it (at least 1) for a quick look.
    fn rounds(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(3) } else { full }
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let mut report = Report::new(options.json, options.quick);
    if options.wants(Part::Calls) {
        border::calls(&options, &mut report)?;
    }
    if options.wants(Part::Rows) {
        border::rows(&options, &mut report)?;
    }
    for (part, workload) in [(Part::Mf, jobs::mf as jobs::Make), (Part::Mlr, jobs::mlr), (Part::Lda, jobs::lda)] {
        if options.wants(part) || options.wants(Part::Memory) {
            let workload = workload(&options, scratch.path())?;
            if options.wants(part) {
                jobs::compare(&options, &workload, &mut report)?;
            }
            if options.wants(Part::Memory) {
                memory::measure(&options, &workload, scratch.path(), &mut report)?;
            }
        }
    }
    if options.wants(Part::Cuts) {
        cuts::measure(&options, scratch.path(), &mut report)?;
    }
    report.finish()
}
