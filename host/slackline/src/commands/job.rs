//! `slackline job`: asking a run that goes on, and changing it.

use crate::commands::output;
use crate::config;
use crate::failure::{Exit, Failure};
use crate::live::client::ask;
use crate::live::protocol::Question;
use crate::sinks::words::{self, plural, short};
use clap::Args;
use serde_json::Value;
use slackline_core::Clock;
use std::fmt::Write;
use std::path::PathBuf;

/// Examples for the help of `show`.
pub const SHOW_EXAMPLES: &str = "\
Examples:
  slackline job show --state runs/a              clocks, version and metrics of a run
  slackline job show --state runs/a --json | jq .metrics";

/// Examples for the help of `swap`.
pub const SWAP_EXAMPLES: &str = "\
Examples:
  slackline job swap --state runs/a --param learning_rate=0.1     other parameters
  slackline job swap --state runs/a ./better.wasm                 another component
  slackline job swap --state runs/a mlr --at-clock 500            …from clock 500 on
  slackline job swap --state runs/a --staleness 1                 another bound (ssp, essp)

Every worker ends the clock before on the old version and begins the clock on the new one; what
does not fit is refused with what differs, and the old version goes on.";

/// Examples for the help of `rollback`.
pub const ROLLBACK_EXAMPLES: &str = "\
Examples:
  slackline job rollback --state runs/a          back to the version before
  slackline job rollback --state runs/a --at-clock 500";

/// Examples for the help of `stop`.
pub const STOP_EXAMPLES: &str = "\
Examples:
  slackline job stop --state runs/a              end the clock, write a cut, stop: as Ctrl-C";

/// Examples for the help of `history`.
pub const HISTORY_EXAMPLES: &str = "\
Examples:
  slackline job history --state runs/a           every version: from which clock, and why
  slackline job history --state runs/a --json | jq '.versions[].digest'";

/// Which job, and how it is shown.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// The state folder of the run
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `slackline job swap`.
#[derive(Args, Clone, Debug)]
pub struct SwapArgs {
    /// A bundled plugin's name, a path to a .wasm, or blake3:HEX; the one that runs when left out
    #[arg(value_name = "PLUGIN")]
    pub plugin: Option<String>,
    /// Which job
    #[command(flatten)]
    pub target: Target,
    /// A parameter that changes, or with nothing after the `=` goes back to its default; may be repeated
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// Clocks that a reader may run ahead of what it sees
    #[arg(long, value_name = "S")]
    pub staleness: Option<u32>,
    /// The first clock of the new version; the first that nobody has begun when left out
    #[arg(long, value_name = "N")]
    pub at_clock: Option<Clock>,
}

/// Flags of `slackline job rollback`.
#[derive(Args, Clone, Debug)]
pub struct RollbackArgs {
    /// Which job
    #[command(flatten)]
    pub target: Target,
    /// The first clock of the version that comes back; the first that nobody has begun when left out
    #[arg(long, value_name = "N")]
    pub at_clock: Option<Clock>,
}

/// Shows how a run stands.
pub fn show(target: &Target) -> Result<Exit, Failure> {
    target.ask(&Question::Show {}, |a| {
        let clocks: Vec<u64> = list(a, "clocks").iter().filter_map(Value::as_u64).collect();
        let (low, high) = (clocks.iter().min().copied().unwrap_or(0), clocks.iter().max().copied().unwrap_or(0));
        let at = if low == high { format!("in clock {low}") } else { format!("in clocks {low} to {high}") };
        let mut out = format!("{}: {} {at}", text(a, "job"), plural(clocks.len() as u64, "worker"));
        if let Some(stop) = a["stops_at"].as_u64() {
            _ = write!(out, " of {stop}");
        }
        _ = write!(out, ", {}\n{}\n", text(a, "consistency"), version(&a["version"]));
        if let Some(at) = a["swap_at"].as_u64() {
            _ = writeln!(out, "a swap is planned for clock {at}");
        }
        if let (Some(clock), Some(metrics)) = (a["ended"].as_u64(), a["metrics"].as_object()) {
            let known = metrics.iter().filter_map(|(k, v)| Some((k.clone(), v.as_f64()?))).collect();
            _ = writeln!(out, "clock {clock} ended with {}", words::metrics(&known));
        }
        out
    })
}

/// Swaps the version of a run.
pub fn swap(args: &SwapArgs) -> Result<Exit, Failure> {
    let base = std::env::current_dir().map_err(|e| Failure::new(Exit::Usage, format!("the current folder: {e}")))?;
    if let Some(typed) = &args.plugin {
        config::plugin_named(typed, &base).map_err(|why| Failure::new(Exit::Usage, format!("the plugin {why}")))?;
    }
    let params = args.params.iter().map(|typed| config::param("--param", typed)).collect::<Result<_, _>>()?;
    let (plugin, staleness, at_clock) = (args.plugin.clone(), args.staleness, args.at_clock);
    args.target.ask(&Question::Swap { plugin, base, params, staleness, at_clock }, swapped)
}

/// Goes back to the version before.
pub fn rollback(args: &RollbackArgs) -> Result<Exit, Failure> {
    args.target.ask(&Question::Rollback { at_clock: args.at_clock }, swapped)
}

/// Ends a run after its clock, with a cut.
pub fn stop(target: &Target) -> Result<Exit, Failure> {
    target.ask(&Question::Stop {}, |a| {
        let clocks = plural(a["stops_at"].as_u64().unwrap_or(0), "clock");
        format!("the run ends after {clocks}, with a cut; go on with: slackline run JOB.toml --resume\n")
    })
}

/// Shows every version of a run.
pub fn history(target: &Target) -> Result<Exit, Failure> {
    target.ask(&Question::History {}, |a| {
        let mut out = String::new();
        if let Some(n) = a["left_out"].as_u64() {
            _ = writeln!(out, "{} left out", plural(n, "older version"));
        }
        for v in list(a, "versions") {
            _ = writeln!(out, "{}\n    from clock {}: {}", version(v), v["since"], text(v, "reason"));
        }
        out
    })
}

impl Target {
    fn ask(&self, question: &Question, words: impl FnOnce(&Value) -> String) -> Result<Exit, Failure> {
        let Some(dir) = &self.state else {
            return Err(Failure::new(Exit::Usage, "--state DIR is missing: it names the state folder of the run")
                .hint(
                    "`slackline run` says where that is; .slackline/NAME beside the job file unless told otherwise",
                ));
        };
        let answer = ask(dir, question)?;
        output::print(&if self.json { format!("{answer}\n") } else { words(&answer) })
    }
}

fn swapped(a: &Value) -> String {
    format!("from clock {} on: {}\nbefore: {}\n", a["clock"], version(&a["to"]), version(&a["from"]))
}

fn version(v: &Value) -> String {
    let params: Vec<String> = given(v).map(|(key, value)| format!(", {key} = {value}")).collect();
    let (plugin, digest) = (text(v, "plugin"), text(v, "digest"));
    format!("version {}: {plugin} {}, staleness {}{}", v["version"], short(&digest), v["staleness"], params.concat())
}

/// The parameters that say something.
fn given(v: &Value) -> impl Iterator<Item = (&String, &Value)> {
    v["params"].as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
}

fn text(v: &Value, key: &str) -> String {
    v[key].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().map_or(&[], Vec::as_slice)
}
