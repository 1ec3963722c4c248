//! `slackline run`: trains the job of a job file, here and now.

use crate::config::{self, Overrides};
use crate::events::{Event, Sink, Status, Summary};
use crate::failure::{Exit, Failure};
use crate::job::Job;
use crate::{interrupt, report, sinks};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline run job.toml                                 train as the file says
  slackline run job.toml --workers 4 --consistency ssp --staleness 3
  slackline run job.toml --set topics=50 --set data.batch=128 --clocks 20
  slackline run job.toml --state runs/a                  keep cuts there…
  slackline run job.toml --state runs/a --resume         …and go on from the newest one
  slackline run job.toml --report out.html               write a page about the run
  slackline run job.toml --json | jq .metrics            one JSON object a line

Exit codes: 0 done, 2 usage or job file, 3 data, 4 plugin refused, 5 plugin failed while
running, 6 state folder, 7 network or cluster, 130 interrupted, with a cut.";

const PATIENCE_FOR_THE_ATTEMPT_BEFORE: Duration = Duration::from_secs(600);

/// The flags that change a job.
#[derive(Args, Clone, Debug, Default)]
pub struct JobArgs {
    /// The job file
    #[arg(value_name = "JOB.toml")]
    pub file: PathBuf,
    /// Logical workers (job.workers)
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Consistency model (consistency.model)
    #[arg(long, value_name = "MODEL")]
    pub consistency: Option<ModelArg>,
    /// Clocks that a reader may run ahead of what it sees (consistency.staleness)
    #[arg(long, value_name = "S")]
    pub staleness: Option<u32>,
    /// End after so many clocks (clock.max)
    #[arg(long, value_name = "N")]
    pub clocks: Option<u32>,
    /// Set a parameter of the plugin, or any key of the job file by its path; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of everything random (job.seed)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Leave up to N malformed rows of each dataset out (data.skip_bad_rows)
    #[arg(long, value_name = "N")]
    pub skip_bad_rows: Option<u64>,
    /// How a plugin that does not end is ended (limits.interrupt)
    #[arg(long, value_name = "MEANS")]
    pub interrupt: Option<InterruptArg>,
    /// How long one step may take, such as 30s or 10m (limits.step_deadline)
    #[arg(long, value_name = "TIME")]
    pub step_deadline: Option<String>,
}

/// Consistency models by their names in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelArg {
    /// Everyone waits for everyone at the end of each clock
    Bsp,
    /// Reads may be stale by so many clocks, rows are fetched when too old
    Ssp,
    /// The same bound, changed rows are pushed
    Essp,
    /// No bound, no guarantee
    Async,
}

/// Means to end a runaway plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InterruptArg {
    /// End the process; plugins run without checks
    Process,
    /// Interrupt the plugin; costs some speed
    Epoch,
}

impl JobArgs {
    /// The job that the file and these flags mean together.
    pub fn job(&self) -> Result<Job, Failure> {
        Ok(config::read(&self.file, &self.overrides()?)?)
    }

    /// What these flags change about the file.
    pub fn overrides(&self) -> Result<Overrides, Failure> {
        let mut o = Overrides::default();
        for typed in &self.set {
            o.set(typed)?;
        }
        o.flag("--workers", "job.workers", self.workers);
        o.flag("--consistency", "consistency.model", self.consistency.map(name_of));
        o.flag("--staleness", "consistency.staleness", self.staleness);
        o.flag("--clocks", "clock.max", self.clocks);
        o.flag("--seed", "job.seed", self.seed);
        o.flag("--skip-bad-rows", "data.skip_bad_rows", self.skip_bad_rows);
        o.flag("--interrupt", "limits.interrupt", self.interrupt.map(name_of));
        o.flag("--step-deadline", "limits.step_deadline", self.step_deadline.as_ref());
        Ok(o)
    }

    /// The file and the flags as they were typed: without them, a resumed run would be another job.
    fn words(&self) -> String {
        let sets = self.set.iter().map(|set| typed("--set", Some(set)));
        let flags = [
            typed("--workers", self.workers),
            typed("--consistency", self.consistency.map(name_of)),
            typed("--staleness", self.staleness),
            typed("--clocks", self.clocks),
            typed("--seed", self.seed),
            typed("--skip-bad-rows", self.skip_bad_rows),
            typed("--interrupt", self.interrupt.map(name_of)),
            typed("--step-deadline", self.step_deadline.as_ref()),
        ];
        let flags: String = sets.chain(flags).flatten().collect();
        quoted(&self.file.to_string_lossy()) + &flags
    }
}

/// A flag and its value as they would be typed.
fn typed(flag: &str, value: Option<impl std::fmt::Display>) -> Option<String> {
    value.map(|value| format!(" {flag} {}", quoted(&value.to_string())))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

/// Flags of `slackline run`.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// What to train
    #[command(flatten)]
    pub job: JobArgs,
    /// Folder for cuts and the model; .slackline/NAME beside the job file when left out
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Go on from the newest complete cut in the state folder
    #[arg(long)]
    pub resume: bool,
    /// Start over, discarding the cuts that the state folder holds
    #[arg(long, conflicts_with = "resume")]
    pub fresh: bool,
    /// Write one self-contained HTML page about the run
    #[arg(long, value_name = "OUT.html")]
    pub report: Option<PathBuf>,
    /// Print one JSON object a line on standard output, and nothing else
    #[arg(long)]
    pub json: bool,
    /// End with a cut when the process of this id, which started this one, is gone
    #[arg(long, value_name = "PID", hide = true)]
    pub with_parent: Option<u32>,
}

/// What the engine is asked to do.
pub struct Request<'a> {
    /// The job.
    pub job: Job,
    /// Where its state lies.
    pub state: PathBuf,
    /// Whether to go on from the newest complete cut.
    pub resume: bool,
    /// Whether to discard what the state folder holds.
    pub fresh: bool,
    /// Who listens.
    pub sink: &'a mut dyn Sink,
    /// Set when a person asks the run to end.
    pub cancel: Arc<AtomicBool>,
    /// How long to wait for a state folder that another process still holds.
    pub patience: Duration,
}

/// Runs `args` on `engine`, which sends all events but the last; that one is the summary that it answers with.
pub fn run(args: &RunArgs, engine: impl FnOnce(Request<'_>) -> Result<Summary, Failure>) -> Result<Exit, Failure> {
    let mut sink = sinks::for_terminal(args.json);
    let cancel = interrupt::flag_on_signal()?;
    if let Some(parent) = args.with_parent {
        interrupt::flag_without_parent(parent, cancel.clone());
    }
    run_with(args, sink.as_mut(), cancel, engine)
}

fn run_with(
    args: &RunArgs,
    sink: &mut dyn Sink,
    cancel: Arc<AtomicBool>,
    engine: impl FnOnce(Request<'_>) -> Result<Summary, Failure>,
) -> Result<Exit, Failure> {
    let job = args.job.job()?;
    let state = args.state.clone().unwrap_or_else(|| job.base_dir.join(".slackline").join(&job.name));
    if let Some(path) = &args.report {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if folder.is_some_and(|f| !f.is_dir()) || path.is_dir() {
            let message = format!("--report {}: there is no such folder, or it is one itself", path.display());
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    // An attempt of a job whose coordinator was killed may follow one that is still writing its cut.
    let patience = args.with_parent.map_or(Duration::ZERO, |_| PATIENCE_FOR_THE_ATTEMPT_BEFORE);
    let (resume, fresh) = (args.resume, args.fresh);
    let summary = engine(Request { job, state: state.clone(), resume, fresh, sink, cancel, patience })?;
    let written =
        args.report.as_ref().map(|path| report::write(path, &summary).map_err(|e| Failure::unwritten(path, &e)));
    let status = summary.status;
    if let (Some(path), Some(Ok(()))) = (&args.report, &written) {
        sink.event(&Event::Notice { message: format!("the report is {}", path.display()) });
    }
    sink.event(&Event::Notice { message: format!("the model is in {}", state.display()) });
    sink.event(&Event::Done(Box::new(summary)));
    written.transpose()?;
    if status == Status::Interrupted {
        let (job, state) = (args.job.words(), quoted(&state.to_string_lossy()));
        let report = typed("--report", args.report.as_ref().map(|p| p.display())).unwrap_or_default();
        eprintln!("interrupted; go on with: slackline run {job} --state {state} --resume{report}");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Consistency, Interrupt, Model};
    use crate::sinks::JsonLines;

    const JOB: &str = "[job]\nname = \"x\"\nplugin = \"mlr\"\n[data]\ntrain = \"a.csv\"\n[clock]\nmax = 1\n";

    fn args(dir: &std::path::Path) -> RunArgs {
        let file = dir.join("job.toml");
        std::fs::write(&file, JOB).unwrap();
        RunArgs { job: JobArgs { file, ..JobArgs::default() }, json: true, ..RunArgs::default() }
    }

    #[test]
    fn flags_change_the_job() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = args(dir.path()).job;
        args.workers = Some(3);
        args.consistency = Some(ModelArg::Essp);
        args.staleness = Some(4);
        args.interrupt = Some(InterruptArg::Epoch);
        args.step_deadline = Some("30s".into());
        args.set = vec!["topics=5".into(), "clock.every=batch".into()];
        let job = args.job().unwrap();
        assert_eq!((job.workers, job.limits.interrupt), (3, Interrupt::Epoch));
        assert_eq!(job.consistency, Consistency { model: Model::Essp, staleness: 4 });
        assert_eq!(job.limits.step_deadline, Duration::from_secs(30));
        assert_eq!(job.params["topics"], 5);
    }

    #[test]
    fn what_was_typed_can_be_typed_again() {
        let args = JobArgs {
            file: "my job.toml".into(),
            workers: Some(3),
            consistency: Some(ModelArg::Essp),
            staleness: Some(4),
            set: vec!["topics=5".into(), "title=it's".into()],
            ..JobArgs::default()
        };
        let words = "'my job.toml' --set topics=5 --set 'title=it'\\''s' --workers 3 --consistency essp --staleness 4";
        assert_eq!(args.words(), words);
    }

    #[test]
    fn the_exit_code_follows_the_end_of_the_run_and_the_report_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = args(dir.path());
        let page = dir.path().join("out.html");
        args.report = Some(page.clone());
        for (status, exit) in
            [(Status::Done, Exit::Done), (Status::Stopped, Exit::Done), (Status::Interrupted, Exit::Interrupted)]
        {
            let mut out = Vec::new();
            let mut sink = JsonLines::new(&mut out);
            let got = run_with(&args, &mut sink, Arc::default(), |request| {
                assert_eq!(request.state, dir.path().join(".slackline/x"));
                Ok(Summary { status, job: request.job.name, ..Summary::default() })
            });
            assert_eq!(got, Ok(exit));
            assert!(std::fs::read_to_string(&page).unwrap().contains("<!doctype html>"));
            let last: serde_json::Value =
                serde_json::from_slice(out.trim_ascii().rsplit(|b| *b == b'\n').next().unwrap()).unwrap();
            assert_eq!(last["event"], "done");
        }
    }

    #[test]
    fn a_failed_run_and_an_unwritable_report_are_failures() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = args(dir.path());
        let mut out = Vec::new();
        let failure = Failure::new(Exit::State, "no");
        let got = run_with(&args, &mut JsonLines::new(&mut out), Arc::default(), |_| Err(failure.clone()));
        assert_eq!((got, out.is_empty()), (Err(failure), true));
        args.report = Some(dir.path().join("no/such/folder.html"));
        let unasked =
            run_with(&args, &mut JsonLines::new(&mut out), Arc::default(), |_| unreachable!("before training"));
        assert_eq!(unasked.map_err(|f| f.exit), Err(Exit::Usage));
        // A folder that goes while the run goes on.
        let folder = dir.path().join("gone");
        std::fs::create_dir(&folder).unwrap();
        args.report = Some(folder.join("out.html"));
        let got = run_with(&args, &mut JsonLines::new(&mut out), Arc::default(), |_| {
            std::fs::remove_dir(&folder).unwrap();
            Ok(Summary::default())
        });
        assert_eq!(got.map_err(|f| f.exit), Err(Exit::Data));
        // The result is told all the same.
        assert!(String::from_utf8(out).unwrap().contains("\"event\":\"done\""));
    }
}
