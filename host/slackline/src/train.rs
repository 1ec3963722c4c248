//! A job from its file to its end: what `slackline run` does between reading flags and printing the last line.

use crate::commands::run::Request;
use crate::config;
use crate::engine::{self, RunInput, resume};
use crate::events::{Event, Sink, Summary};
use crate::failure::{Exit, Failure};
use crate::session;
use crate::sinks::words::plural;
use serde_json::json;
use slackline_core::ports::Plugin;
use slackline_storage::{Mode, State};

/// Names of documents in a state folder.
pub mod documents {
    /// How columns were coded.
    pub const DICTIONARIES: &str = "dictionaries";
}

/// Runs the job; sends every event but the last, which is the caller's.
pub fn train(request: Request) -> Result<Summary, Failure> {
    let Request { mut job, state: dir, resume, fresh, sink, cancel } = request;
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
    let state = State::open(&dir, Mode::Create)?;
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
    let input = RunInput {
        job: &job,
        plugin: loaded.component.clone(),
        digest: loaded.digest.clone(),
        data: &data,
        tables,
        kernels: session::kernels()?,
        state: Some(&state),
        resumed,
        interrupt: &cancel,
    };
    let mut summary = engine::run(input, sink)?;
    summary.config = config::echo(&job);
    Ok(summary)
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
