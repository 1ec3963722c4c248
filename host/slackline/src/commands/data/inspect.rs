//! `slackline data inspect`: what a file holds.

use crate::commands::output::{print, table};
use crate::failure::{Exit, Failure};
use crate::sinks::words::{bytes, count, number, plural};
use clap::Args;
use slackline_data::{ColumnInspection, Format, Inspection};
use std::fmt::Write;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline data inspect ratings.csv
  slackline data inspect docword.nips.txt.gz --format uci-bow
  slackline data inspect train.parquet --json | jq .columns";

/// Flags of `slackline data inspect`.
#[derive(Args, Clone, Debug)]
pub struct InspectArgs {
    /// The file; gzip and zstd are seen through
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Its format, where the ending does not say
    #[arg(long, value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(Format::NAMES))]
    pub format: Option<String>,
    /// Print one JSON object on standard output, and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Shows what a file holds.
pub fn inspect(args: &InspectArgs) -> Result<Exit, Failure> {
    let format = args.format.as_deref().map(str::parse).transpose()?;
    let found = slackline_data::inspect(&args.file, format)?;
    let text = match args.json {
        true => serde_json::to_string(&found).map_err(|e| Failure::new(Exit::Data, e.to_string()))? + "\n",
        false => describe(&found),
    };
    print(&text)
}

fn describe(found: &Inspection) -> String {
    let mut out = format!("{}, {}, {}", found.format, bytes(found.bytes), plural(found.rows, "row"));
    if found.bad_rows > 0 {
        _ = write!(out, ", {}", plural(found.bad_rows, "malformed row"));
    }
    out.push_str("\n\n");
    let mut rows =
        vec![["column", "type", "values", "distinct", "least", "largest", "mean"].map(String::from).to_vec()];
    rows.extend(found.columns.iter().map(column));
    table(&mut out, &rows);
    if !found.first_rows.is_empty() {
        out.push_str("\nfirst rows\n");
        let mut rows = vec![found.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>()];
        rows.extend(found.first_rows.iter().map(|row| row.iter().map(|cell| shorten(cell)).collect()));
        table(&mut out, &rows);
    }
    for example in &found.bad_examples {
        _ = writeln!(out, "malformed: {example}");
    }
    out
}

fn column(c: &ColumnInspection) -> Vec<String> {
    let some = |v: Option<f64>| v.map_or_else(String::new, number);
    let kind = match c.list {
        true => format!("lists of {}, up to {} long", c.kind, count(c.longest)),
        false => c.kind.clone(),
    };
    let distinct = c.distinct.map_or_else(|| "many".to_owned(), count);
    vec![c.name.clone(), kind, count(c.values), distinct, some(c.min), some(c.max), some(c.mean)]
}

/// The beginning of a cell that would push the others off the screen.
fn shorten(cell: &str) -> String {
    const MOST: usize = 40;
    match cell.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &cell[..at]),
        None => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_described_with_its_columns_and_bad_rows() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ratings.csv");
        std::fs::write(&file, "user,rating,comment\n1,4.5,good\n2,oops,bad\n7,2,x\n9\n").unwrap();
        let text = describe(&slackline_data::inspect(&file, None).unwrap());
        for part in ["csv", "3 rows", "1 malformed row", "user", "integer", "first rows", "4.5", "malformed: "] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_a_failure_of_data() {
        let args = InspectArgs { file: "no-such.csv".into(), format: None, json: true };
        let failure = inspect(&args).unwrap_err();
        assert_eq!(failure.exit, Exit::Data);
        assert!(failure.message.contains("no-such.csv"), "{}", failure.message);
    }

    #[test]
    fn long_cells_are_cut_between_letters() {
        assert_eq!(shorten(&"é".repeat(50)), "é".repeat(40) + "…");
        assert_eq!(shorten("short"), "short");
    }
}
