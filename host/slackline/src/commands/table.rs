//! `slackline table`: the model out of a state folder, as a file that other tools read.

use crate::export::{Cells, Export};
use crate::failure::{Exit, Failure};
use crate::sinks::words::plural;
use clap::Args;
use serde_json::json;
use slackline_core::{Clock, Layout, TableId};
use slackline_storage::{CutReader, Mode, State};
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline table export word_topics --state runs/a --to topics.parquet
  slackline table export items --state runs/a --to items.npy --cut 40

A dense table becomes rows × columns; in .npy and .safetensors a sparse one becomes dense.";

/// Flags of `slackline table export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Which table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The state folder of the run
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// The file; its ending says the format: .parquet, .npy, .csv, .arrow or .safetensors
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// The cut at this clock instead of the newest
    #[arg(long, value_name = "CLOCK")]
    pub cut: Option<Clock>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Writes a table of a cut to a file.
pub fn export(args: &ExportArgs) -> Result<Exit, Failure> {
    let state = State::open(&args.state, Mode::ReadOnly)?;
    let cut = open_cut(&state, args.cut)?;
    let Some((id, spec)) = (0..).map(TableId).zip(cut.tables()).find(|(_, t)| t.name == args.table) else {
        let known: Vec<_> = cut.tables().map(|t| t.name.as_str()).collect();
        return Err(Failure::new(
            Exit::Usage,
            format!("there is no table {:?} in {}", args.table, args.state.display()),
        )
        .hint(format!("it has {}", known.join(", "))));
    };
    let mut export = Export::table(&args.to, spec)?;
    match spec.layout {
        Layout::Dense => {
            for chunk in cut.dense_rows(id, 0..spec.rows)? {
                let values = chunk?.values;
                export.write(values.len() / spec.width.max(1) as usize, &[Cells::Dense(values)])?;
            }
        }
        Layout::Sparse => {
            for chunk in cut.sparse_rows(id, 0..spec.rows)? {
                let rows = chunk?.rows;
                export.write(rows.offsets.len().saturating_sub(1), &[Cells::Sparse(rows)])?;
            }
        }
    }
    let rows = export.finish()?;
    let (table, to, clock) = (&args.table, args.to.display(), cut.clock());
    if args.json {
        println!("{}", json!({"table": table, "rows": rows, "clock": clock, "to": to.to_string()}));
    } else {
        println!("{to}: {} of {table} as of clock {clock}", plural(rows, "row"));
    }
    Ok(Exit::Done)
}

/// The cut at a clock, or the newest that is whole; says on standard error what had to be passed over.
pub fn open_cut(state: &State, clock: Option<Clock>) -> Result<CutReader, Failure> {
    if let Some(clock) = clock {
        return Ok(state.open_cut(clock)?);
    }
    let found = state.newest_intact()?;
    for skipped in &found.skipped {
        eprintln!("warning: the cut at clock {} is damaged and is passed over: {}", skipped.clock, skipped.reason);
    }
    found.cut.ok_or_else(|| {
        Failure::new(Exit::State, format!("{} holds no complete cut", state.dir().display()))
            .hint("a run writes one every `cuts.every` clocks and at its end")
    })
}
