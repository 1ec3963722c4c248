//! `slackline plugin inspect`: what a component is, checked against the contract.

use crate::failure::{Exit, Failure};
use crate::job::Limits;
use crate::session;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline plugin inspect lda                   a bundled one
  slackline plugin inspect target/component/my_plugin.wasm --json | jq .manifest.params";

/// Flags of `slackline plugin inspect`.
#[derive(Args, Clone, Debug)]
pub struct InspectArgs {
    /// A component, or the name of a bundled plugin
    #[arg(value_name = "FILE.wasm")]
    pub file: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Checks a component against the contract and shows what it says of itself.
pub fn inspect(args: &InspectArgs) -> Result<Exit, Failure> {
    let name = args.file.to_string_lossy();
    let bundled = session::bundled().into_iter().find(|(n, _)| *n == name && !args.file.exists());
    let path = bundled.map_or_else(|| args.file.clone(), |(_, path)| path);
    let bytes = std::fs::read(&path).map_err(|e| Failure::new(Exit::Refused, format!("{}: {e}", path.display())))?;
    let loaded = session::load_bytes(bytes, &path.display().to_string(), &Limits::default(), String::new())?;
    let i = loaded.component.inspect();
    if args.json {
        let object = json!({
            "digest": i.digest, "size": i.size, "world": i.world, "imports": i.imports, "exports": i.exports,
            "manifest": i.manifest,
        });
        println!("{object}");
        return Ok(Exit::Done);
    }
    let m = i.manifest;
    println!("{} {}  {}", m.name, m.version, m.summary);
    println!("  digest   {}", i.digest);
    println!("  size     {} bytes", i.size);
    println!("  world    {}", i.world);
    println!("  imports  {}", i.imports.join(", "));
    println!("  exports  {}", i.exports.join(", "));
    println!("  columns");
    for c in &m.columns {
        let list = if c.list { "list of " } else { "" };
        let notes = [(c.optional, "optional"), (c.target, "target")];
        let notes: Vec<_> = notes.iter().filter(|(is, _)| *is).map(|(_, n)| *n).collect();
        println!("    {:<12} {list}{} {}", c.name, c.dtype, notes.join(", "));
    }
    println!("  metrics  {}", m.metrics.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", "));
    if !m.predicts.is_empty() {
        println!("  predicts {}", m.predicts.join(", "));
    }
    println!("  parameters");
    let none = serde_json::Map::new();
    for (key, schema) in m.params.get("properties").and_then(|p| p.as_object()).unwrap_or(&none) {
        let about = schema.get("description").and_then(|d| d.as_str()).unwrap_or("").replace('\n', " ");
        let default =
            schema.get("default").filter(|d| !d.is_null()).map_or_else(String::new, |d| format!(" (default {d})"));
        println!("    {key:<16} {about}{default}");
    }
    Ok(Exit::Done)
}
