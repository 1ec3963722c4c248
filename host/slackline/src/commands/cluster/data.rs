//! `slackline data push, list, delete`: datasets that a cluster keeps.

use super::{ClusterArgs, answer, to_send, whole, words};
use crate::commands::output::{print, table};
use crate::failure::{Exit, Failure};
use crate::serve::{DATASET, wire};
use crate::sinks;
use clap::Args;
use serde_json::{Value, json};
use slackline_wire::v1::push_dataset_part::Part;
use slackline_wire::{chunks, upload, v1};
use std::path::PathBuf;

/// Examples for the help of `push`.
pub const PUSH: &str = "\
Examples:
  slackline data push ratings.csv.gz --name ratings     then, in a job: train = \"dataset:ratings\"
  slackline data push ratings.csv.gz --name ratings --replace

The file's ending tells jobs the format, as it does for a file on disk.";
/// Examples for the help of `list`.
pub const LIST: &str = "Examples:\n  slackline data list\n  slackline data list --json | jq .bytes";
/// Examples for the help of `delete`.
pub const DELETE: &str = "Examples:\n  slackline data delete ratings\n\nWhat a job that is not done reads stays.";

/// Flags of `slackline data push`.
#[derive(Args, Clone, Debug)]
pub struct PushArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What jobs will call it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Put it in the place of another dataset of this name
    #[arg(long)]
    pub replace: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Uploads a file.
pub fn push(args: &PushArgs) -> Result<Exit, Failure> {
    let reply = args.cluster.with(async |client| {
        let (bytes, digest, file) = to_send(&args.file)?;
        let file_name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (name, request_id, replace) = (args.name.clone(), args.cluster.id(), args.replace);
        let header = v1::PushDatasetHeader { request_id, name, file_name, bytes, digest, replace };
        let header = v1::PushDatasetPart { part: Some(Part::Header(header)) };
        let (parts, sent) =
            upload(header, chunks(file, bytes), |chunk| v1::PushDatasetPart { part: Some(Part::Chunk(chunk)) });
        let called = client.patient().datasets().push(parts).await;
        match sent.fault() {
            Some(fault) => Err(wire(fault)),
            None => answer(&client, called),
        }
    })?;
    let dataset = whole(reply.dataset)?;
    if args.json {
        let mut object = to_json(&dataset);
        object["known"] = json!(reply.known);
        return print(&format!("{object}\n"));
    }
    let known = if reply.known { "; it was there already" } else { "" };
    let size = sinks::words::bytes(dataset.bytes);
    print(&format!("{}: {size}, {}{known}\njobs read it as \"{DATASET}{0}\"\n", dataset.name, dataset.digest))
}

/// Flags of `slackline data list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Lists the datasets.
pub fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let reply =
        args.cluster.with(async |client| answer(&client, client.datasets().list(v1::ListDatasetsRequest {}).await))?;
    if args.json {
        return print(&reply.datasets.iter().map(|d| format!("{}\n", to_json(d))).collect::<String>());
    }
    if reply.datasets.is_empty() {
        return print("no datasets were pushed\n");
    }
    let mut rows = vec![words::headings(&["DATASET", "FILE", "SIZE", "DIGEST", "PUSHED"])];
    rows.extend(reply.datasets.iter().map(|d| {
        let size = sinks::words::bytes(d.bytes);
        vec![d.name.clone(), d.file_name.clone(), size, words::short(&d.digest), words::ago(d.pushed_at)]
    }));
    let mut out = String::new();
    table(&mut out, &rows);
    print(&out)
}

/// Flags of `slackline data delete`.
#[derive(Args, Clone, Debug)]
pub struct DeleteArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Forgets a dataset.
pub fn delete(args: &DeleteArgs) -> Result<Exit, Failure> {
    let (request_id, name) = (args.cluster.id(), args.name.clone());
    args.cluster.with(async |client| {
        answer(&client, client.datasets().delete(v1::DeleteDatasetRequest { request_id, name }).await)
    })?;
    match args.json {
        true => print(&format!("{}\n", json!({"deleted": args.name}))),
        false => print(&format!("deleted {}\n", args.name)),
    }
}

fn to_json(d: &v1::Dataset) -> Value {
    json!({"name": d.name, "file": d.file_name, "bytes": d.bytes, "digest": d.digest, "pushed_at": d.pushed_at})
}
