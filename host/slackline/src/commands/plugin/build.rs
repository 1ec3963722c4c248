//! `slackline plugin build`: from a crate to a component.

use crate::failure::{Exit, Failure};
use crate::toolchain::{self, BuildOptions};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline plugin build                         the plugin of this folder, with checks
  slackline plugin build plugins/lda --release --out components";

/// Flags of `slackline plugin build`.
#[derive(Args, Clone, Debug)]
pub struct BuildArgs {
    /// The plugin's folder
    #[arg(value_name = "PATH", default_value = ".")]
    pub path: PathBuf,
    /// Optimise, as jobs want it
    #[arg(long)]
    pub release: bool,
    /// Where the component goes; `target/component` of the plugin's workspace when left out
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Builds the component.
pub fn build(args: &BuildArgs) -> Result<Exit, Failure> {
    let options = BuildOptions {
        path: args.path.clone(),
        release: args.release,
        out: args.out.clone(),
        quiet: args.quiet || args.json,
    };
    let built = toolchain::build(&options).map_err(|e| Failure::new(Exit::Refused, format!("{e:#}")))?;
    let path = built.path.display();
    if args.json {
        let digest = format!("blake3:{}", built.digest);
        println!("{}", json!({"name": built.name, "path": path.to_string(), "bytes": built.bytes, "digest": digest}));
    } else if !args.quiet {
        println!("{path}: {} bytes, blake3:{}", built.bytes, built.digest);
    }
    Ok(Exit::Done)
}
