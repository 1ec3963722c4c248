//! What may be asked of a run while it runs, and the thread that answers.
//!
//! Questions come over a channel, from whoever listens for them; the workers never wait for an answer to be taken. Quick
//! questions are answered in place, a swap on a thread of its own, one at a time.

use crate::engine::board::Board;
use crate::engine::error::RunError;
use crate::engine::swap::Swapper;
use crate::engine::versions::{Version, VersionRecord};
use crate::events::HistoryPoint;
use crate::failure::{Exit, Failure};
use crate::job::PluginRef;
use crossbeam_channel::{Receiver, Sender, select};
use serde_json::{Map, Value};
use slackline_core::Clock;
use slackline_core::manifest::ColumnWant;
use slackline_core::ports::Plugin;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

/// What a run needs to be asked things.
pub struct Live<'a> {
    /// Where questions come in.
    pub asks: Receiver<Ask>,
    /// Where candidates come from.
    pub loader: &'a dyn Loader,
    /// The columns that the data was loaded with.
    pub columns: &'a [ColumnWant],
}

/// Finds and compiles candidates.
pub trait Loader: Sync {
    /// The plugin that is asked for, with its parameters merged over those of `running` and checked.
    fn load(&self, request: &SwapRequest, running: &Version) -> Result<Candidate, Failure>;
}

/// A version that may come.
pub struct Candidate {
    /// Its component, as it would run.
    pub plugin: Arc<dyn Plugin>,
    /// The same in a sandbox that ends what does not end by itself, whatever the job's limits say: for what happens before
    /// it is trusted with the run.
    pub probe: Arc<dyn Plugin>,
    /// The component.
    pub bytes: Vec<u8>,
    /// `blake3:…` of it.
    pub digest: String,
    /// Its parameters as JSON text, complete.
    pub params: String,
}

/// A question, and where its answer goes.
pub struct Ask {
    /// What is asked.
    pub request: Request,
    /// Where to.
    pub answer: Sender<Result<Answer, Failure>>,
}

/// What may be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// How the run stands.
    Show,
    /// Its versions.
    History,
    /// To end after the clock that runs, with a cut.
    Stop,
    /// To swap the version.
    Swap(Box<SwapRequest>),
}

/// A swap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwapRequest {
    /// Another plugin; `None`: the one that runs.
    pub plugin: Option<PluginRef>,
    /// Parameters that change.
    pub params: Map<String, Value>,
    /// Another staleness bound.
    pub staleness: Option<u32>,
    /// The first clock of the new version; the earliest there is when left out.
    pub at_clock: Option<Clock>,
    /// Back to the version before; nothing but the clock is asked for besides.
    pub rollback: bool,
    /// A version of the history to come back, digest, parameters and all.
    pub recorded: Option<VersionRecord>,
    /// Why, for the history.
    pub reason: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// How the run stands.
    Shown(Box<Standing>),
    /// Its versions, oldest first.
    History(Vec<VersionRecord>),
    /// It ends; the first clock that is not run.
    Stopping(Clock),
    /// It was swapped.
    Swapped(Box<Swapped>),
}

/// How a run stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The job's name.
    pub job: String,
    /// The consistency model.
    pub model: String,
    /// The clock that each worker has begun.
    pub clocks: Vec<Clock>,
    /// The first clock that is not run, if it is known.
    pub stops_at: Option<Clock>,
    /// The version that was decided on last.
    pub version: Option<VersionRecord>,
    /// The clock of a swap to come.
    pub swap_at: Option<Clock>,
    /// The newest clock that everyone has ended.
    pub newest: Option<HistoryPoint>,
    /// Since the run began.
    pub seconds: f64,
}

/// A swap that was made; [`VersionRecord::from`] of the new version is its clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Swapped {
    /// What ran.
    pub from: VersionRecord,
    /// What runs.
    pub to: VersionRecord,
}

/// Answers until nobody can ask any more or `done` is dropped.
pub fn answer<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    asks: &Receiver<Ask>,
    done: &Receiver<()>,
    swapper: &'env Swapper<'env>,
) {
    let busy = Arc::new(AtomicBool::new(false));
    loop {
        let ask = select! {
            recv(asks) -> ask => ask,
            recv(done) -> _ => return,
        };
        let Ok(Ask { request, answer }) = ask else { return };
        let reply = match request {
            Request::Show => Ok(Answer::Shown(Box::new(standing(swapper)))),
            Request::History => Ok(Answer::History(swapper.board.versions().all().to_vec())),
            Request::Stop => Ok(Answer::Stopping(stop(swapper.board))),
            Request::Swap(_) if busy.swap(true, Ordering::AcqRel) => Err(underway(swapper.board)),
            Request::Swap(request) => {
                let busy = busy.clone();
                scope.spawn(move || {
                    let swapped = std::panic::catch_unwind(AssertUnwindSafe(|| swapper.swap(&request)));
                    let swapped = swapped.unwrap_or_else(|_| {
                        // Workers may wait for a verdict that nobody will speak.
                        let error = RunError::Internal("a swap panicked".into());
                        let failure = Failure::new(Exit::Failed, error.to_string());
                        swapper.board.fail(error);
                        swapper.shards.close();
                        Err(failure)
                    });
                    busy.store(false, Ordering::Release);
                    // Whoever asked may have gone.
                    let _ = answer.send(swapped.map(|s| Answer::Swapped(Box::new(s))));
                });
                continue;
            }
        };
        let _ = answer.send(reply);
    }
}

fn standing(swapper: &Swapper<'_>) -> Standing {
    let (clocks, stop, swap_at) = swapper.board.clocks();
    let job = swapper.input.job;
    Standing {
        job: job.name.clone(),
        model: job.consistency.model.to_string(),
        clocks,
        stops_at: (stop < Clock::MAX).then_some(stop),
        version: swapper.board.current().map(|v| v.record.clone()),
        swap_at,
        newest: swapper.board.newest(),
        seconds: swapper.board.seconds(),
    }
}

fn stop(board: &Board) -> Clock {
    board.interrupt();
    board.ending().0
}

fn underway(board: &Board) -> Failure {
    let when = board.clocks().2.map_or_else(String::new, |at| format!(", for clock {at}"));
    Failure::new(Exit::Usage, format!("another swap is under way{when}")).hint("ask again when it is over")
}
