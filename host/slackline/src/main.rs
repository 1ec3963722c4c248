//! The `slackline` binary: reads the command line, calls one command, prints what went wrong once.

use clap::Parser;
use slackline::cli::{Cli, Command, DataCommand, JobCommand, PluginCommand, TableCommand};
use slackline::commands::{data, job, plugin, predict, run, table};
use slackline::failure::{Exit, Failure};
use slackline::train::train;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Help and version leave through here with 0, wrong usage with 2.
    let cli = Cli::parse();
    match dispatch(&cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit.into()
        }
    }
}

fn dispatch(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(args, train),
        Command::Job(args) => match &args.command {
            JobCommand::Show(args) => job::show(args),
            JobCommand::Swap(args) => job::swap(args),
            JobCommand::Rollback(args) => job::rollback(args),
            JobCommand::Stop(args) => job::stop(args),
            JobCommand::History(args) => job::history(args),
        },
        Command::Predict(args) => predict::predict(args),
        Command::Table(args) => match &args.command {
            TableCommand::Export(args) => table::export(args),
        },
        Command::Plugin(args) => match &args.command {
            PluginCommand::New(args) => plugin::new::new(args),
            PluginCommand::Build(args) => plugin::build::build(args),
            PluginCommand::Inspect(args) => plugin::inspect::inspect(args),
            PluginCommand::Test(args) => plugin::test::test(args),
        },
        Command::Data(args) => match &args.command {
            DataCommand::Inspect(args) => data::inspect::inspect(args),
            DataCommand::Generate(args) => data::generate::generate(args),
        },
    }
}
