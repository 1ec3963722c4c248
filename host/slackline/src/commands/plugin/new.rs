//! `slackline plugin new`: a project that builds, tests and runs as it is.

use crate::failure::{Exit, Failure};
use crate::toolchain::{self, TEMPLATES};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline plugin new topic-model
  slackline plugin new topic-model --template data-parallel --in ~/src

Then, in its folder: slackline plugin test, slackline plugin build --release, and
slackline run job.toml";

/// Flags of `slackline plugin new`.
#[derive(Args, Clone, Debug)]
pub struct NewArgs {
    /// Name of the plugin and its folder
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What to begin from
    #[arg(long, value_name = "TEMPLATE", default_value = "data-parallel", value_parser = clap::builder::PossibleValuesParser::new(TEMPLATES))]
    pub template: String,
    /// The folder that gets the project's folder
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    pub parent: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Writes the project.
pub fn new(args: &NewArgs) -> Result<Exit, Failure> {
    let made = toolchain::new_project(&args.parent, &args.name, &args.template)
        .map_err(|e| Failure::new(Exit::Usage, format!("{e:#}")))?;
    let folder = made.folder.display();
    if args.json {
        println!("{}", json!({"folder": folder.to_string(), "files": made.files}));
    } else {
        println!("{folder}: a {} plugin of {} files", args.template, made.files.len());
        println!(
            "next: cd {folder} && slackline plugin test && slackline plugin build --release && slackline run job.toml"
        );
    }
    Ok(Exit::Done)
}
