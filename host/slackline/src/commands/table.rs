//! `slackline table`: the model out of a state folder, as a file that other tools read.

use crate::commands::cluster::{self, ClusterArgs};
use crate::export::{Cells, Export};
use crate::failure::{Exit, Failure};
use crate::sinks::words::plural;
use clap::Args;
use serde_json::json;
use slackline_core::{Clock, Layout, TableId, TableSpec};
use slackline_storage::{CutReader, Mode, State};
use std::path::{Path, PathBuf};

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline table export word_topics --state runs/a --to topics.parquet
  slackline table export items --state runs/a --to items.npy --cut 40
  slackline table export items --job ratings --to items.parquet      from a cluster

A dense table becomes rows × columns; in .npy and .safetensors a sparse one becomes dense.";

/// Flags of `slackline table export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Which table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The state folder of a run…
    #[arg(long, value_name = "DIR", required_unless_present = "job", conflicts_with = "job")]
    pub state: Option<PathBuf>,
    /// …or a job of a cluster, by its id or name
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// The file; its ending says the format: .parquet, .npy, .csv, .arrow or .safetensors
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// The cut at this clock instead of the newest
    #[arg(long, value_name = "CLOCK", conflicts_with = "job")]
    pub cut: Option<Clock>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Writes a table of a cut to a file.
pub fn export(args: &ExportArgs) -> Result<Exit, Failure> {
    let dir = match (&args.job, &args.state) {
        (Some(job), _) => return cluster::table::export(&args.cluster, job, &args.table, &args.to, args.json),
        (None, Some(state)) => state,
        (None, None) => return Err(Failure::new(Exit::Usage, "--state or --job says of which model")),
    };
    let state = State::open(dir, Mode::ReadOnly)?;
    let cut = open_cut(&state, args.cut)?;
    let rows = write(&cut, &args.table, &args.to)?;
    let (table, to, clock) = (&args.table, args.to.display(), cut.clock());
    if args.json {
        println!("{}", json!({"table": table, "rows": rows, "clock": clock, "to": to.to_string()}));
    } else {
        println!("{to}: {} of {table} as of clock {clock}", plural(rows, "row"));
    }
    Ok(Exit::Done)
}

/// The table of this name.
pub fn find<'a>(cut: &'a CutReader, table: &str) -> Result<(TableId, &'a TableSpec), Failure> {
    (0..).map(TableId).zip(cut.tables()).find(|(_, t)| t.name == table).ok_or_else(|| {
        let known: Vec<_> = cut.tables().map(|t| t.name.as_str()).collect();
        Failure::new(Exit::Usage, format!("there is no table {table:?} in the cut at clock {}", cut.clock()))
            .hint(format!("it has {}", known.join(", ")))
    })
}

/// Writes a table to a file; gives the number of its rows.
pub fn write(cut: &CutReader, table: &str, to: &Path) -> Result<u64, Failure> {
    let (id, spec) = find(cut, table)?;
    let mut export = Export::table(to, spec)?;
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
    Ok(export.finish()?)
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
