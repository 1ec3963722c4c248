//! `slackline table list, get` and `export --job`: a job's tables as of its newest cut, also while it runs.

use super::{ClusterArgs, answer, refused, words};
use crate::atomic::AtomicFile;
use crate::commands::output::{print, table};
use crate::failure::{Exit, Failure};
use clap::Args;
use serde_json::json;
use slackline_wire::v1;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Examples for the help of `list`.
pub const LIST: &str = "Examples:\n  slackline table list --job topics";
/// Examples for the help of `get`.
pub const GET: &str = "\
Examples:
  slackline table get word_topics 0 17 --job topics
  slackline table get weights 3 --job digits --json | jq .values";

/// Flags of `slackline table list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// The job's id or name
    #[arg(long, value_name = "JOB")]
    pub job: String,
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Lists a job's tables.
pub fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let job = args.job.clone();
    let reply =
        args.cluster.with(async |client| answer(&client, client.tables().list(v1::ListTablesRequest { job }).await))?;
    let mut out = String::new();
    if args.json {
        for t in &reply.tables {
            let object = json!({"name": t.name, "dtype": t.dtype, "layout": t.layout, "rows": t.rows,
                                "width": t.width, "clock": reply.clock});
            _ = writeln!(out, "{object}");
        }
        return print(&out);
    }
    let mut rows = vec![words::headings(&["TABLE", "TYPE", "LAYOUT", "ROWS", "WIDTH"])];
    rows.extend(
        reply.tables.into_iter().map(|t| vec![t.name, t.dtype, t.layout, t.rows.to_string(), t.width.to_string()]),
    );
    table(&mut out, &rows);
    _ = writeln!(out, "  as of clock {}", reply.clock);
    print(&out)
}

/// Flags of `slackline table get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// Which table
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Which rows
    #[arg(value_name = "ROW", required = true)]
    pub rows: Vec<u64>,
    /// The job's id or name
    #[arg(long, value_name = "JOB")]
    pub job: String,
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Shows some rows.
pub fn get(args: &GetArgs) -> Result<Exit, Failure> {
    let (job, table, rows) = (args.job.clone(), args.table.clone(), args.rows.clone());
    let reply = args
        .cluster
        .with(async |client| answer(&client, client.tables().get(v1::GetRowsRequest { job, table, rows }).await))?;
    let mut out = String::new();
    for row in &reply.rows {
        if args.json {
            let mut object = json!({"row": row.row, "values": row.values, "clock": reply.clock});
            if !row.columns.is_empty() {
                object["columns"] = json!(row.columns);
            }
            _ = writeln!(out, "{object}");
            continue;
        }
        let values: Vec<String> = match row.columns.as_slice() {
            [] => row.values.iter().map(ToString::to_string).collect(),
            columns => columns.iter().zip(&row.values).map(|(c, v)| format!("{c}:{v}")).collect(),
        };
        _ = writeln!(out, "{}  {}", row.row, values.join(" "));
    }
    print(&out)
}

/// Writes a whole table of a job to `to`.
pub fn export(cluster: &ClusterArgs, job: &str, name: &str, to: &Path, json: bool) -> Result<Exit, Failure> {
    // An ending that says nothing is a slip here, before anything is asked.
    crate::export::Format::of(to).map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
    let format = to.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let unwritten = |e: std::io::Error| Failure::unwritten(to, &e);
    let bytes = cluster.with(async |client| {
        let request = v1::ExportRequest { job: job.to_owned(), table: name.to_owned(), format };
        let called = client.patient().tables().export(request).await;
        let mut chunks = answer(&client, called)?;
        let mut file = AtomicFile::create(to).map_err(unwritten)?;
        let mut bytes = 0u64;
        while let Some(chunk) = chunks.message().await.map_err(|s| refused(&client, &s))? {
            bytes += chunk.data.len() as u64;
            file.write_all(&chunk.data).map_err(unwritten)?;
        }
        file.commit().map_err(unwritten)?;
        Ok(bytes)
    })?;
    match json {
        true => print(&format!("{}\n", json!({"table": name, "bytes": bytes, "to": to}))),
        false => print(&format!("{}: {name} of job {job}, {bytes} bytes\n", to.display())),
    }
}
