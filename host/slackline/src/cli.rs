//! The command line: which commands there are. Each one's flags are defined beside what it does, in [`crate::commands`].

use crate::commands::{data, job, plugin, predict, run, table};
use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  slackline data inspect ratings.csv             look at a file
  slackline data generate topics --to corpus     make a data set with a known truth
  slackline run job.toml                         train a model
  slackline run job.toml --report out.html       …and write a page about it";

/// Distributed machine learning whose algorithms are plugins: sandboxed components on a native engine.
#[derive(Debug, Parser)]
#[command(name = "slackline", version, after_help = EXAMPLES, max_term_width = 110)]
#[command(arg_required_else_help = true, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train the job of a job file, here and now
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::RunArgs>),
    /// Ask a job that runs how it stands, or change it
    Job(JobArgs),
    /// Apply a trained model to new rows
    #[command(after_help = predict::EXAMPLES)]
    Predict(Box<predict::PredictArgs>),
    /// Take tables out of a state folder
    Table(TableArgs),
    /// Make, build, test and look at plugins
    Plugin(PluginArgs),
    /// Look at data, or make some
    Data(DataArgs),
}

/// What to do with a job that runs.
#[derive(Args, Debug)]
pub struct JobArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: JobCommand,
}

/// Commands about a job that runs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Show clocks, version and metrics
    #[command(after_help = job::SHOW_EXAMPLES)]
    Show(job::Target),
    /// Go on with another plugin, other parameters or another staleness
    #[command(after_help = job::SWAP_EXAMPLES)]
    Swap(job::SwapArgs),
    /// Go back to the version before
    #[command(after_help = job::ROLLBACK_EXAMPLES)]
    Rollback(job::RollbackArgs),
    /// End after the clock that runs, with a cut
    #[command(after_help = job::STOP_EXAMPLES)]
    Stop(job::Target),
    /// Show every version: what, from which clock, and why
    #[command(after_help = job::HISTORY_EXAMPLES)]
    History(job::Target),
}

/// What to do with tables.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TableCommand,
}

/// Commands about tables.
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Write a table of a cut to a file that other tools read
    #[command(after_help = table::EXAMPLES)]
    Export(table::ExportArgs),
}

/// What to do with plugins.
#[derive(Args, Debug)]
pub struct PluginArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// Commands about plugins.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Begin a plugin: a project that builds, tests and runs as it is
    #[command(after_help = plugin::new::EXAMPLES)]
    New(plugin::new::NewArgs),
    /// Compile a plugin into a component
    #[command(after_help = plugin::build::EXAMPLES)]
    Build(plugin::build::BuildArgs),
    /// Check a component and show what it is: digest, imports, parameters, columns, metrics
    #[command(after_help = plugin::inspect::EXAMPLES)]
    Inspect(plugin::inspect::InspectArgs),
    /// Run a plugin's own tests natively
    #[command(after_help = plugin::test::EXAMPLES)]
    Test(plugin::test::TestArgs),
}

/// What to do with data.
#[derive(Args, Debug)]
pub struct DataArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DataCommand,
}

/// Commands about data.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Show what a file holds: format, rows, columns, the first rows, malformed ones
    #[command(after_help = data::inspect::EXAMPLES)]
    Inspect(data::inspect::InspectArgs),
    /// Make a data set whose truth is known
    #[command(after_help = data::generate::EXAMPLES)]
    Generate(data::generate::GenerateArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_without_commands_of_its_own_shows_examples() {
        fn walk(command: &clap::Command) {
            for sub in command.get_subcommands() {
                walk(sub);
            }
            let leaf = !command.has_subcommands();
            let nested = command.get_name() == "generate";
            if nested || (leaf && !matches!(command.get_name(), "ratings" | "topics" | "regression" | "classes")) {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Examples:"), "{}", command.get_name());
            }
        }
        walk(&Cli::command());
    }
}
