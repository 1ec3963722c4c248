//! The `slackline` binary: reads the command line, calls one command, prints what went wrong once.

use clap::Parser;
use slackline::cli::{CertsCommand, Cli, Command, DataCommand, JobCommand, PluginCommand, TableCommand};
use slackline::commands::{cluster, data, job, plugin, predict, run, table};
use slackline::failure::{Exit, Failure};
use slackline::serve;
use slackline::train::train;
use slackline_wire::v1::JobAction;
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
        Command::Predict(args) => predict::predict(args),
        Command::Table(args) => match &args.command {
            TableCommand::Export(args) => table::export(args),
            TableCommand::List(args) => cluster::table::list(args),
            TableCommand::Get(args) => cluster::table::get(args),
        },
        Command::Plugin(args) => match &args.command {
            PluginCommand::New(args) => plugin::new::new(args),
            PluginCommand::Build(args) => plugin::build::build(args),
            PluginCommand::Inspect(args) => plugin::inspect::inspect(args),
            PluginCommand::Test(args) => plugin::test::test(args),
            PluginCommand::Push(args) => cluster::plugin::push(args),
            PluginCommand::List(args) => cluster::plugin::list(args),
            PluginCommand::Show(args) => cluster::plugin::show(args),
            PluginCommand::Pull(args) => cluster::plugin::pull(args),
            PluginCommand::Delete(args) => cluster::plugin::delete(args),
            PluginCommand::Check(args) => plugin::check::check(args),
        },
        Command::Data(args) => match &args.command {
            DataCommand::Inspect(args) => data::inspect::inspect(args),
            DataCommand::Generate(args) => data::generate::generate(args),
            DataCommand::Push(args) => cluster::data::push(args),
            DataCommand::List(args) => cluster::data::list(args),
            DataCommand::Delete(args) => cluster::data::delete(args),
        },
        Command::Serve(args) => serve::serve(args),
        Command::Status(args) => cluster::status::status(args),
        Command::Certs(args) => match &args.command {
            CertsCommand::New(args) => cluster::certs::new(args),
        },
        Command::Job(args) => steer(&args.command),
    }
}

fn steer(command: &JobCommand) -> Result<Exit, Failure> {
    match command {
        JobCommand::Submit(args) => cluster::job::submit(args),
        JobCommand::List(args) => cluster::job::list(args),
        JobCommand::Show(args) => args.either(job::show, cluster::job::show),
        JobCommand::Swap(args) => job::swap(args),
        JobCommand::Rollback(args) => job::rollback(args),
        JobCommand::Watch(args) => cluster::job::watch(args),
        JobCommand::Logs(args) => cluster::job::logs(args),
        JobCommand::Stop(args) => args.either(job::stop, |one| cluster::job::act(one, JobAction::Stop)),
        JobCommand::Pause(args) => cluster::job::act(args, JobAction::Pause),
        JobCommand::Resume(args) => cluster::job::act(args, JobAction::Resume),
        JobCommand::Delete(args) => cluster::job::act(args, JobAction::Delete),
        JobCommand::History(args) => args.either(job::history, cluster::job::history),
    }
}
