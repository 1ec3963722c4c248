//! `slackline plugin check`: a component checked, compiled and tried within bounds. A host process calls it for every
//! upload; people have `plugin inspect`.

use crate::commands::plugin::inspect::{InspectArgs, inspect};
use crate::failure::{Exit, Failure};
use crate::serve::validate::bound_this_process;
use clap::Args;
use std::path::PathBuf;

/// Flags of `slackline plugin check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The component
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Bytes of memory
    #[arg(long, value_name = "BYTES")]
    pub memory: u64,
    /// Seconds of processor time
    #[arg(long, value_name = "SECONDS")]
    pub seconds: u32,
}

/// Bounds this process, then inspects.
pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    bound_this_process(args.memory, args.seconds)
        .map_err(|e| Failure::new(Exit::Failed, format!("this process cannot be bounded: {e}")))?;
    inspect(&InspectArgs { file: args.file.clone(), json: true })
}
