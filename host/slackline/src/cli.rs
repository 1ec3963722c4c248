//! The command line: which commands there are. Each one's flags are defined beside what it does, in [`crate::commands`].

use crate::commands::{cluster, data, job, plugin, predict, run, table};
use crate::serve;
use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  slackline data inspect ratings.csv             look at a file
  slackline data generate topics --to corpus     make a data set with a known truth
  slackline run job.toml                         train a model
  slackline run job.toml --report out.html       …and write a page about it
  slackline serve                                start a cluster here
  slackline job submit job.toml --watch          train on it";

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
    /// Apply a trained model to new rows
    #[command(after_help = predict::EXAMPLES)]
    Predict(Box<predict::PredictArgs>),
    /// Look at tables, and take them out of a state folder or a cluster
    Table(TableArgs),
    /// Make, build, test and look at plugins; a cluster's registry
    Plugin(PluginArgs),
    /// Look at data, or make some; a cluster's datasets
    Data(DataArgs),
    /// Run a host process of a cluster, or a whole cluster in one process
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Submit, watch and steer jobs of a cluster
    Job(JobCommands),
    /// Show a cluster's host processes and jobs
    #[command(after_help = cluster::status::EXAMPLES)]
    Status(cluster::status::StatusArgs),
    /// Make certificates for a cluster
    Certs(CertsArgs),
}

/// What to do with jobs.
#[derive(Args, Debug)]
pub struct JobCommands {
    /// What to do.
    #[command(subcommand)]
    pub command: JobCommand,
}

/// Commands about jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Queue a job
    #[command(after_help = cluster::job::SUBMIT)]
    Submit(Box<cluster::job::SubmitArgs>),
    /// List jobs that are not over, or all
    #[command(after_help = cluster::job::LIST)]
    List(cluster::job::ListArgs),
    /// Show one job: clocks, version and metrics
    #[command(after_help = cluster::job::SHOW)]
    Show(cluster::job::EitherArgs),
    /// Let a run go on with another plugin, other parameters or another staleness
    #[command(after_help = job::SWAP_EXAMPLES)]
    Swap(job::SwapArgs),
    /// Let a run go back to the version before
    #[command(after_help = job::ROLLBACK_EXAMPLES)]
    Rollback(job::RollbackArgs),
    /// Show a job's progress until it is over
    #[command(after_help = cluster::job::WATCH)]
    Watch(cluster::job::OneArgs),
    /// Show what a job's plugin logged
    #[command(after_help = cluster::job::LOGS)]
    Logs(cluster::job::LogsArgs),
    /// End a job with a cut
    #[command(after_help = cluster::job::STOP)]
    Stop(cluster::job::EitherArgs),
    /// Hold a job: it writes a cut and frees its worker slots
    #[command(after_help = cluster::job::PAUSE)]
    Pause(cluster::job::OneArgs),
    /// Let a paused, stopped or failed job go on
    #[command(after_help = cluster::job::RESUME)]
    Resume(cluster::job::OneArgs),
    /// Forget a job, its cuts and tables
    #[command(after_help = cluster::job::DELETE)]
    Delete(cluster::job::OneArgs),
    /// Show what happened to a job
    #[command(after_help = cluster::job::HISTORY)]
    History(cluster::job::EitherArgs),
}

/// What to do with certificates.
#[derive(Args, Debug)]
pub struct CertsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CertsCommand,
}

/// Commands about certificates.
#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Make a private authority and a certificate from it
    #[command(after_help = cluster::certs::EXAMPLES)]
    New(cluster::certs::NewArgs),
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
    /// List a job's tables
    #[command(after_help = cluster::table::LIST)]
    List(cluster::table::ListArgs),
    /// Show some rows of a job's table
    #[command(after_help = cluster::table::GET)]
    Get(cluster::table::GetArgs),
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
    /// Put a component into a cluster's registry
    #[command(after_help = cluster::plugin::PUSH)]
    Push(cluster::plugin::PushArgs),
    /// List a cluster's registry
    #[command(after_help = cluster::plugin::LIST)]
    List(cluster::plugin::ListArgs),
    /// Show a revision of the registry, and which jobs use it
    #[command(after_help = cluster::plugin::SHOW)]
    Show(cluster::plugin::ShowArgs),
    /// Take a component out of the registry into a file
    #[command(after_help = cluster::plugin::PULL)]
    Pull(cluster::plugin::PullArgs),
    /// Delete a plugin, or one revision of it, from the registry
    #[command(after_help = cluster::plugin::DELETE)]
    Delete(cluster::plugin::DeleteArgs),
    /// Check, compile and try a component within bounds
    #[command(hide = true, after_help = "Examples:\n  called by host processes")]
    Check(plugin::check::CheckArgs),
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
    /// Upload a dataset to a cluster
    #[command(after_help = cluster::data::PUSH)]
    Push(cluster::data::PushArgs),
    /// List a cluster's datasets
    #[command(after_help = cluster::data::LIST)]
    List(cluster::data::ListArgs),
    /// Delete a dataset from a cluster
    #[command(after_help = cluster::data::DELETE)]
    Delete(cluster::data::DeleteArgs),
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
