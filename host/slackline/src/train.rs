//! A job from its file to its end: what `slackline run` does between reading flags and printing the last line.

use crate::candidates::Candidates;
use crate::commands::run::Request;
use crate::config;
use crate::engine::asks::Live;
use crate::engine::versions::{History, VersionRecord};
use crate::engine::{self, RunInput, resume};
use crate::events::{Event, Sink, Summary};
use crate::failure::{Exit, Failure};
use crate::job::Job;
use crate::live::SOCKET;
use crate::live::server::Server;
use crate::session::{self, Loaded};
use crate::sinks::words::{plural, short};
use serde_json::json;
use slackline_core::ports::Plugin;
use slackline_storage::{ErrorKind, Mode, State};
use std::path::Path;
use std::time::{Duration, Instant};

/// Names of documents in a state folder.
pub mod documents {
    /// How columns were coded.
    pub const DICTIONARIES: &str = "dictionaries";
}

/// Runs the job; sends every event but the last, which is the caller's.
pub fn train(request: Request) -> Result<Summary, Failure> {
    let Request { mut job, state: dir, resume, fresh, sink, cancel, patience } = request;
    if resume && !dir.exists() {
        let message = format!("--resume: there is no state folder {}", dir.display());
        return Err(Failure::new(Exit::State, message)
            .hint("--state names the folder of the run to go on from; leave --resume out to begin a new one"));
    }
    let existing = dir.exists().then(|| State::open(&dir, Mode::ReadOnly).ok()).flatten();
    let loaded = session::load_plugin(&job, existing.as_ref())?;
    drop(existing);
    let manifest = loaded.component.manifest().clone();
    session::settle(&mut job, &loaded, &manifest)?;
    let state = open(&dir, patience)?;
    state.keep_cuts(job.cuts.keep as usize);
    let data = session::load_data(&job, &manifest, &state)?;
    for (name, skipped) in data.skipped().iter().filter(|(_, s)| s.rows > 0) {
        let examples = skipped.examples.join("; ");
        let rows = plural(skipped.rows, "malformed row");
        let message = format!("{rows} of {name} left out: {examples}");
        sink.event(&Event::Notice { message });
    }
    let tables = engine::run::tables(&job, &*loaded.component, &data)?;
    let rows: serde_json::Map<_, _> = data.datasets().map(|n| (n.to_owned(), json!(data.rows(n)))).collect();
    let identity = resume::identity(&job, &loaded.digest, &json!(rows));
    resume::claim(&state, &identity, resume, fresh)?;
    state.put_blob(&loaded.bytes)?;
    let dictionaries = serde_json::to_vec(data.dictionaries())
        .map_err(|e| Failure::new(Exit::State, format!("dictionaries cannot be kept: {e}")))?;
    state.put_document(documents::DICTIONARIES, &dictionaries)?;
    let resumed = if resume { go_on(&state, &tables, job.workers, job.max_clocks, sink)? } else { None };
    let versions = go_on_with(&state, &job, &loaded, resumed.as_ref(), resume, sink)?;
    let mut running = loaded.component.clone();
    let mut digest = loaded.digest.clone();
    // A job that was swapped goes on with what it was swapped to, whatever its file says of the beginning.
    if let Some(version) = versions.newest().filter(|v| v.number > 1) {
        job.params = version.params();
        job.consistency.staleness = version.staleness;
        if version.digest != digest {
            let bytes = state.blob(&version.digest)?;
            let hint = session::resume_hint(&job);
            running = session::load_bytes(bytes, &version.digest, &job.limits, hint)?.component;
            digest.clone_from(&version.digest);
        }
    }
    let (server, asks) = match Server::open(&dir) {
        Ok((server, asks)) => (Some(server), Some(asks)),
        Err(e) => {
            let message = format!("the run cannot be asked things or swapped: {}/{SOCKET}: {e}", dir.display());
            sink.event(&Event::Notice { message });
            (None, None)
        }
    };
    let candidates = Candidates { job: &job, state: &state };
    let input = RunInput {
        job: &job,
        plugin: running,
        digest,
        data: &data,
        tables,
        kernels: session::kernels()?,
        state: Some(&state),
        resumed,
        interrupt: &cancel,
        versions,
        live: asks.map(|asks| Live { asks, loader: &candidates, columns: &manifest.columns }),
    };
    let ran = engine::run(input, sink);
    // Answers that are on their way arrive before the process ends.
    drop(server);
    let mut summary = ran?;
    if let Some(version) = summary.versions.last() {
        job.params.clone_from(&version.params);
        job.consistency.staleness = version.staleness;
    }
    summary.config = config::echo(&job);
    Ok(summary)
}

/// The versions of the job so far: none for one that begins. What was swapped in after the cut is told and forgotten.
fn go_on_with(
    state: &State,
    job: &Job,
    loaded: &Loaded,
    resumed: Option<&resume::Resumed>,
    resume: bool,
    sink: &mut dyn Sink,
) -> Result<History, Failure> {
    let kept = if resume { History::kept(state)? } else { None };
    let began = VersionRecord {
        number: 1,
        plugin: loaded.component.manifest().name.clone(),
        digest: loaded.digest.clone(),
        params: serde_json::Value::Object(job.params.clone()).to_string(),
        staleness: job.consistency.staleness,
        from: 0,
        reason: "start".into(),
    };
    let (history, lost, clock) = match resumed {
        Some(r) => {
            let noted = r.versions.clone().unwrap_or_else(|| History::new(began));
            let (history, lost) = History::resumed(noted, kept, r.clock);
            (history, lost, r.clock)
        }
        None => {
            let swapped = kept.map(|k| k.all().iter().filter(|v| v.number > 1).cloned().collect());
            (History::default(), swapped.unwrap_or_default(), 0)
        }
    };
    for v in lost {
        let (number, plugin, digest) = (v.number, &v.plugin, short(&v.digest));
        let message = format!(
            "version {number} ({plugin} {digest}, from clock {}) was swapped in after clock {clock}, from which the run goes \
             on, and is lost: swap again to have it; its reason was: {}",
            v.from, v.reason
        );
        sink.event(&Event::Notice { message });
    }
    Ok(history)
}

/// Opens the state folder; waits so long for another process that holds it.
fn open(dir: &Path, patience: Duration) -> Result<State, Failure> {
    let deadline = Instant::now() + patience;
    loop {
        match State::open(dir, Mode::Create) {
            Err(e) if e.kind() == ErrorKind::Locked && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(100));
            }
            opened => return Ok(opened?),
        }
    }
}

fn go_on(
    state: &State,
    tables: &[slackline_core::TableSpec],
    workers: u32,
    max: Option<u32>,
    sink: &mut dyn Sink,
) -> Result<Option<resume::Resumed>, Failure> {
    let (resumed, notices) = resume::newest(state, tables, workers)?;
    for message in notices {
        sink.event(&Event::Notice { message });
    }
    if let (Some(resumed), Some(max)) = (&resumed, max.filter(|max| resumed.as_ref().is_some_and(|r| r.clock >= *max)))
    {
        let done = plural(u64::from(resumed.clock), "clock");
        let message = format!("{done} of {max} were done before: only the evaluation is left; --clocks N trains on");
        sink.event(&Event::Notice { message });
    }
    if resumed.is_none() {
        let message = format!("{} holds no complete cut: the job starts from the beginning", state.dir().display());
        sink.event(&Event::Notice { message });
    }
    Ok(resumed)
}
