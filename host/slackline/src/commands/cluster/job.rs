//! `slackline job …`: jobs of a cluster.

use super::{ClusterArgs, answer, plugin, refused, whole, words};
use crate::commands::job::Target;
use crate::commands::output::{print, table};
use crate::commands::run::JobArgs;
use crate::config;
use crate::events::{Event, Sink};
use crate::failure::{Exit, Failure};
use crate::job::PluginRef;
use crate::serve::DATASET;
use crate::sinks;
use clap::Args;
use serde_json::json;
use slackline_wire::{Client, v1};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Table;

/// Examples for the help of `submit`.
pub const SUBMIT: &str = "\
Examples:
  slackline job submit job.toml                  prints the job's id
  slackline job submit job.toml --watch          …and its progress, as `run` does
  slackline job submit job.toml --set topics=50 --clocks 20 --json

The file is the one that `slackline run` takes. A plugin that it names by a path is pushed under the
file's name; a dataset's path must be readable by the cluster's host processes, or is
\"dataset:NAME\" after `slackline data push`.";
/// Examples for the help of `list`.
pub const LIST: &str = "Examples:\n  slackline job list\n  slackline job list --all --json | jq -r .id";
/// Examples for the help of `show`.
pub const SHOW: &str = "Examples:\n  slackline job show topics\n  slackline job show topics-3 --json | jq .metrics";
/// Examples for the help of `watch`.
pub const WATCH: &str = "\
Examples:
  slackline job watch topics                     until it is over; Ctrl-C ends the watching alone
  slackline job watch topics --json              the lines that `slackline run --json` prints

Exit codes: 0 done, 5 failed, 7 network or cluster, 130 stopped or paused.";
/// Examples for the help of `logs`.
pub const LOGS: &str = "Examples:\n  slackline job logs topics\n  slackline job logs topics --follow";
/// Examples for the help of `stop`.
pub const STOP: &str =
    "Examples:\n  slackline job stop topics                      with a cut; `job resume` lets it go on";
/// Examples for the help of `pause`.
pub const PAUSE: &str =
    "Examples:\n  slackline job pause topics                     writes a cut, frees its worker slots";
/// Examples for the help of `resume`.
pub const RESUME: &str = "Examples:\n  slackline job resume topics                    from its newest cut";
/// Examples for the help of `delete`.
pub const DELETE: &str = "Examples:\n  slackline job delete topics-3                  with its cuts, tables and events";
/// Examples for the help of `history`.
pub const HISTORY: &str = "Examples:\n  slackline job history topics";

/// How often, a second apart, a watcher looks for a coordinator that went away.
const RECONNECTS: u32 = 60;

/// Flags of `slackline job submit`.
#[derive(Args, Clone, Debug, Default)]
pub struct SubmitArgs {
    /// What to train
    #[command(flatten)]
    pub job: JobArgs,
    /// Show its progress until it is over
    #[arg(long)]
    pub watch: bool,
    /// Print JSON on standard output, one object a line
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Submits a job.
pub fn submit(args: &SubmitArgs) -> Result<Exit, Failure> {
    // Everything that can be wrong with the file is found here, with its line.
    let job = args.job.job()?;
    let mut toml = config::render(&args.job.file, &args.job.overrides()?, DATASET)?;
    args.cluster.with(async |client| {
        if let PluginRef::Path(path) = &job.plugin {
            toml = pushed(&client, path, &toml, args.json).await?;
        }
        let request = v1::SubmitRequest { request_id: args.cluster.id(), job_toml: toml.clone() };
        let submitted = whole(answer(&client, client.jobs().submit(request).await)?.job)?;
        match (args.json, args.watch) {
            (true, false) => print(&format!("{}\n", words::json(&submitted)))?,
            (true, true) => Exit::Done,
            (false, _) => {
                let why = if submitted.reason.is_empty() { String::new() } else { format!(": {}", submitted.reason) };
                print(&format!("{}  {}{why}\n", submitted.id, words::state(submitted.state)))?
            }
        };
        match args.watch {
            true => follow(&args.cluster, client, &submitted.id, args.json).await,
            false => Ok(Exit::Done),
        }
    })
}

/// Pushes the component that a job names by its path; gives the job file that names the revision instead.
async fn pushed(client: &Client, path: &Path, toml: &str, quiet: bool) -> Result<String, Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let id = uuid::Uuid::new_v4().to_string();
    let revision = whole(plugin::send(client, path, name.trim_matches('-'), None, id).await?.revision)?;
    let named = format!("{}@{}", revision.plugin, revision.number);
    if !quiet {
        eprintln!("{} is {named} in the registry", path.display());
    }
    let mut table: Table =
        toml.parse().map_err(|e| Failure::new(Exit::Usage, format!("the job file cannot be read again: {e}")))?;
    if let Some(toml::Value::Table(job)) = table.get_mut("job") {
        job.insert("plugin".to_owned(), toml::Value::String(named));
    }
    Ok(table.to_string())
}

/// Flags of `slackline job list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Those that are over too
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Lists jobs.
pub fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let request = v1::ListJobsRequest { all: args.all };
    let reply = args.cluster.with(async |client| answer(&client, client.jobs().list(request).await))?;
    if args.json {
        return print(&reply.jobs.iter().map(|j| format!("{}\n", words::json(j))).collect::<String>());
    }
    if reply.jobs.is_empty() {
        let more = if args.all { "" } else { "; --all shows those that are over" };
        return print(&format!("no jobs{more}\n"));
    }
    let mut rows = vec![words::headings(&words::HEADINGS)];
    rows.extend(reply.jobs.iter().map(words::row));
    let mut out = String::new();
    table(&mut out, &rows);
    print(&out)
}

/// Flags of a command about one job.
#[derive(Args, Clone, Debug)]
pub struct OneArgs {
    /// Its id, or its name where that says which
    #[arg(value_name = "JOB")]
    pub job: String,
    /// Print JSON on standard output, one object a line
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Flags of a command about a job of a cluster, or a run by its state folder.
#[derive(Args, Clone, Debug)]
pub struct EitherArgs {
    /// A cluster's job: its id, or its name where that says which
    #[arg(value_name = "JOB", required_unless_present = "state", conflicts_with = "state")]
    pub job: Option<String>,
    /// Instead of a job: the state folder of a `slackline run` that goes on here
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print JSON on standard output, one object a line
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

impl EitherArgs {
    /// Asks the run or the cluster.
    pub fn either(
        &self,
        run: impl FnOnce(&Target) -> Result<Exit, Failure>,
        cluster: impl FnOnce(&OneArgs) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        match &self.job {
            Some(job) => cluster(&OneArgs { job: job.clone(), json: self.json, cluster: self.cluster.clone() }),
            None => run(&Target { state: self.state.clone(), json: self.json }),
        }
    }
}

/// Shows a job.
pub fn show(args: &OneArgs) -> Result<Exit, Failure> {
    let request = v1::ShowJobRequest { job: args.job.clone() };
    let reply = args.cluster.with(async |client| answer(&client, client.jobs().show(request).await))?;
    let job = whole(reply.job)?;
    if args.json {
        let mut object = words::json(&job);
        object["job_toml"] = json!(reply.job_toml);
        return print(&format!("{object}\n"));
    }
    let metrics = job.metrics.iter().map(|(name, value)| (name.clone(), *value)).collect();
    let row = |key: &str, value: String| vec![key.to_owned(), value];
    let mut rows = vec![
        row("job", job.id.clone()),
        row("state", words::state(job.state).to_owned()),
        row("why", job.reason.clone()),
        row("plugin", format!("{}  {}", job.plugin, words::short(&job.digest))),
        row("workers", job.workers.to_string()),
        row("clocks", words::clocks(&job)),
        row("metrics", sinks::words::metrics(&metrics)),
        row("submitted", words::ago(job.submitted_at)),
        row("changed", words::ago(job.changed_at)),
        row("attempts", job.attempts.to_string()),
        row("process", job.process.clone()),
        row("state folder", job.state_folder.clone()),
    ];
    rows.retain(|row| row.get(1).is_some_and(|value| !value.is_empty()));
    let mut out = String::new();
    table(&mut out, &rows);
    print(&out)
}

/// Watches a job until it is over.
pub fn watch(args: &OneArgs) -> Result<Exit, Failure> {
    args.cluster.with(async |client| follow(&args.cluster, client, &args.job, args.json).await)
}

/// Follows a job's events to its end, over a coordinator's restart too. The exit code says how it ended.
async fn follow(cluster: &ClusterArgs, mut client: Client, job: &str, json: bool) -> Result<Exit, Failure> {
    let shown = client.jobs().show(v1::ShowJobRequest { job: job.to_owned() }).await;
    // By its id from here: a name may come to mean another job.
    let id = whole(answer(&client, shown)?.job)?.id;
    let mut sink = (!json).then(|| sinks::for_terminal(false));
    let (mut seen, mut tries) = (0, 0);
    loop {
        match events(&client, &id, &mut seen, &mut sink).await {
            Ok(()) => break,
            Err(f) if f.exit == Exit::Network && tries < RECONNECTS => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                tries += 1;
                if let Ok(again) = cluster.connect().await {
                    (client, tries) = (again, 0);
                }
            }
            Err(f) => return Err(f),
        }
    }
    let shown = client.jobs().show(v1::ShowJobRequest { job: id.clone() }).await;
    let job = whole(answer(&client, shown)?.job)?;
    match v1::JobState::try_from(job.state) {
        Ok(v1::JobState::Done) => Ok(Exit::Done),
        Ok(v1::JobState::Failed) => Err(Failure::new(Exit::Failed, format!("job {id} failed: {}", job.reason))
            .hint(format!("`slackline job resume {id}` lets it go on from its newest cut when the cause is gone"))),
        _ => {
            eprintln!("job {id} is {}; go on with: slackline job resume {id}", words::state(job.state));
            Ok(Exit::Interrupted)
        }
    }
}

async fn events(client: &Client, id: &str, seen: &mut u64, sink: &mut Option<Box<dyn Sink>>) -> Result<(), Failure> {
    let request = v1::WatchRequest { job: id.to_owned(), after: *seen, no_follow: false };
    let called = client.patient().jobs().watch(request).await;
    let mut events = answer(client, called)?;
    while let Some(event) = events.message().await.map_err(|s| refused(client, &s))? {
        *seen = event.number;
        match sink {
            None => _ = print(&format!("{}\n", event.json))?,
            Some(sink) => {
                // A line of a newer release that this one does not know is no reason to stop watching.
                if let Ok(event) = serde_json::from_str::<Event>(&event.json) {
                    sink.event(&event);
                }
            }
        }
    }
    Ok(())
}

/// Flags of `slackline job logs`.
#[derive(Args, Clone, Debug)]
pub struct LogsArgs {
    /// Which job
    #[command(flatten)]
    pub one: OneArgs,
    /// Wait for more until the job is over
    #[arg(long)]
    pub follow: bool,
}

/// Shows what a job's plugin logged.
pub fn logs(args: &LogsArgs) -> Result<Exit, Failure> {
    let one = &args.one;
    one.cluster.with(async |client| {
        let request = v1::WatchRequest { job: one.job.clone(), after: 0, no_follow: !args.follow };
        let called = client.patient().jobs().watch(request).await;
        let mut events = answer(&client, called)?;
        while let Some(event) = events.message().await.map_err(|s| refused(&client, &s))? {
            match serde_json::from_str::<Event>(&event.json) {
                Ok(Event::Log { .. }) if one.json => _ = print(&format!("{}\n", event.json))?,
                Ok(Event::Log { worker, level, line }) => _ = print(&format!("worker {worker} {level}: {line}\n"))?,
                _ => {}
            }
        }
        Ok(Exit::Done)
    })
}

/// Asks for a change of a job's course.
pub fn act(args: &OneArgs, action: v1::JobAction) -> Result<Exit, Failure> {
    let (request_id, job) = (args.cluster.id(), args.job.clone());
    let request = v1::ControlJobRequest { request_id, job, action: action as i32 };
    let reply = args.cluster.with(async |client| answer(&client, client.jobs().control(request).await))?;
    if action == v1::JobAction::Delete {
        let id = reply.job.map_or_else(|| args.job.clone(), |job| job.id);
        return match args.json {
            true => print(&format!("{}\n", json!({"deleted": id}))),
            false => print(&format!("deleted {id}\n")),
        };
    }
    let job = whole(reply.job)?;
    match args.json {
        true => print(&format!("{}\n", words::json(&job))),
        false => {
            let why = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
            print(&format!("{}  {}{why}\n", job.id, words::state(job.state)))
        }
    }
}

/// Shows what happened to a job.
pub fn history(args: &OneArgs) -> Result<Exit, Failure> {
    let request = v1::HistoryRequest { job: args.job.clone() };
    let reply = args.cluster.with(async |client| answer(&client, client.jobs().history(request).await))?;
    let mut out = String::new();
    if args.json {
        for t in &reply.transitions {
            _ = writeln!(out, "{}", json!({"at": t.at, "what": t.what, "state": words::state(t.state)}));
        }
        return print(&out);
    }
    let mut rows = vec![words::headings(&["WHEN", "STATE", "WHAT"])];
    rows.extend(
        reply.transitions.into_iter().map(|t| vec![words::ago(t.at), words::state(t.state).to_owned(), t.what]),
    );
    table(&mut out, &rows);
    print(&out)
}
