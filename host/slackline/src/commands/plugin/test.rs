//! `slackline plugin test`: a plugin's own tests, natively, in the SDK's host in memory.

use crate::failure::{Exit, Failure};
use crate::toolchain;
use clap::Args;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline plugin test                          the plugin of this folder
  slackline plugin test plugins/lda -- --release";

/// Flags of `slackline plugin test`.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// The plugin's folder
    #[arg(value_name = "PATH", default_value = ".")]
    pub path: PathBuf,
    /// For `cargo test`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// Runs the tests; they decide the exit code.
pub fn test(args: &TestArgs) -> Result<Exit, Failure> {
    let status = toolchain::test(&args.path, &args.arguments, false)
        .map_err(|e| Failure::new(Exit::Refused, format!("{e:#}")))?;
    if status.success() {
        return Ok(Exit::Done);
    }
    Err(Failure::new(Exit::Failed, format!("the tests of {} failed", args.path.display())))
}
