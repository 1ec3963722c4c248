//! `slackline status`: who is in the cluster, and what runs.

use super::{ClusterArgs, answer, refused, words};
use crate::commands::output::{print, table};
use crate::failure::{Exit, Failure};
use clap::Args;
use serde_json::json;
use slackline_wire::v1;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline status
  slackline status --json | jq .processes
  slackline status --follow                      what happens, as it happens";

/// Flags of `slackline status`.
#[derive(Args, Clone, Debug)]
pub struct StatusArgs {
    /// Print what happens in the cluster from now on, one JSON object a line
    #[arg(long)]
    pub follow: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Shows it.
pub fn status(args: &StatusArgs) -> Result<Exit, Failure> {
    if args.follow {
        return follow(args);
    }
    let (reply, address) = args.cluster.with(async |client| {
        let reply = answer(&client, client.processes().status(v1::StatusRequest {}).await)?;
        Ok((reply, client.address().to_owned()))
    })?;
    if args.json {
        let processes: Vec<_> = reply
            .processes
            .iter()
            .map(|p| {
                json!({"name": p.name, "roles": p.roles, "slots": p.slots, "slots_used": p.slots_used,
                       "uptime": p.uptime, "version": p.version})
            })
            .collect();
        let jobs: Vec<_> = reply.jobs.iter().map(words::json).collect();
        let object = json!({"cluster": address, "tenant": reply.tenant, "processes": processes, "jobs": jobs});
        return print(&format!("{object}\n"));
    }
    let mut rows = vec![words::headings(&["PROCESS", "ROLES", "SLOTS", "UP", "VERSION"])];
    rows.extend(reply.processes.iter().map(|p| {
        let slots = format!("{}/{}", p.slots_used, p.slots);
        vec![p.name.clone(), p.roles.join(", "), slots, words::span(p.uptime), p.version.clone()]
    }));
    let mut out = String::new();
    table(&mut out, &rows);
    out.push('\n');
    if reply.jobs.is_empty() {
        out += "  no jobs; `slackline job list --all` shows those that are over\n";
    } else {
        let mut rows = vec![words::headings(&words::HEADINGS)];
        rows.extend(reply.jobs.iter().map(words::row));
        table(&mut out, &rows);
    }
    print(&out)
}

fn follow(args: &StatusArgs) -> Result<Exit, Failure> {
    args.cluster.with(async |client| {
        let called = client.patient().events().watch(v1::WatchClusterRequest {}).await;
        let mut events = answer(&client, called)?;
        while let Some(event) = events.message().await.map_err(|s| refused(&client, &s))? {
            print(&format!("{}\n", event.json))?;
        }
        Ok(Exit::Done)
    })
}
