//! Carrying a swap out: what the workers do in turn, and what the thread of whoever asked does beside them.
//!
//! Nothing changes before everything is known to fit: the candidate is compiled, compared with what runs ([`fit`]) and
//! restored from a copy of each worker's state ([`rehearsal`]) on the asker's thread. Then a clock is planned
//! ([`crate::engine::turns`]), the workers prepare there, the version is recorded, and only then the verdict is spoken. So
//! a run that is killed at any moment finds in its state folder every version that a worker may have begun a clock on.

use crate::engine::asks::{Loader, SwapRequest, Swapped};
use crate::engine::board::Board;
use crate::engine::fit;
use crate::engine::rehearsal::{self, HandedOver};
use crate::engine::run::{News, RunInput};
use crate::engine::shards::Shards;
use crate::engine::turns::{Progress, Unplanned};
use crate::engine::versions::{History, Version, VersionRecord};
use crate::failure::{Exit, Failure};
use crate::sinks::words::plural;
use crossbeam_channel::Sender;
use slackline_core::manifest::ColumnWant;
use slackline_core::{Clock, Consistency, Model, WorkerId};
use std::sync::Arc;

/// What lies beside the turns: copies of state on their way to a rehearsal, and which versions there were.
#[derive(Default)]
pub struct Desk {
    handed: Vec<Option<HandedOver>>,
    versions: History,
    current: Option<Arc<Version>>,
}

impl Desk {
    /// For `workers` workers.
    pub fn new(workers: u32) -> Self {
        Self { handed: vec![None; workers as usize], ..Self::default() }
    }
}

impl Board {
    /// What runs at the start, and how it came to that.
    pub fn begin_with(&self, versions: History, current: Arc<Version>) {
        let mut state = self.state.lock();
        state.desk.versions = versions;
        state.desk.current = Some(current);
    }

    /// The versions so far.
    pub fn versions(&self) -> History {
        self.state.lock().desk.versions.clone()
    }

    /// The version that was decided on last.
    pub fn current(&self) -> Option<Arc<Version>> {
        self.state.lock().desk.current.clone()
    }

    /// The clock that each worker has begun, where all stop, and the clock of a swap to come.
    pub fn clocks(&self) -> (Vec<Clock>, Clock, Option<Clock>) {
        let state = self.state.lock();
        (state.turns.begun().to_vec(), state.turns.stop_at(), state.turns.planned())
    }

    /// `worker` hands over a copy of its state.
    pub fn handed_over(&self, worker: WorkerId, copy: HandedOver) {
        self.state.lock().desk.handed[worker.index()] = Some(copy);
        self.moved.notify_all();
    }

    /// `worker` has prepared the version that it was given, or says why it cannot.
    pub fn prepared(&self, worker: WorkerId, done: Result<(), String>) {
        self.state.lock().turns.prepared(worker, done);
        self.moved.notify_all();
    }

    /// A copy of every worker's state, each as of some clock's beginning; `None` when the run ends first.
    fn collect_state(&self) -> Option<Vec<HandedOver>> {
        let mut state = self.state.lock();
        state.desk.handed.fill(None);
        state.turns.want_state();
        self.moved.notify_all();
        while !state.desk.handed.iter().all(Option::is_some) {
            if state.over || state.failure.is_some() {
                state.turns.want_nothing();
                return None;
            }
            self.moved.wait(&mut state);
        }
        Some(state.desk.handed.iter_mut().filter_map(Option::take).collect())
    }

    /// Plans a swap; waits until the one before is over.
    fn plan(&self, at: Option<Clock>, version: impl Fn(Clock) -> Arc<Version>) -> Result<Arc<Version>, Failure> {
        let mut state = self.state.lock();
        loop {
            if state.over || state.failure.is_some() {
                return Err(ended());
            }
            let mut planned = None;
            let make = |at| planned.insert(version(at)).clone();
            match (state.turns.plan(make, at), planned) {
                (Ok(_), Some(version)) => return Ok(version),
                (Err(Unplanned::Past(first)), _) => {
                    let message =
                        format!("clock {} has begun: clock {first} is the first that has not", at.unwrap_or(0));
                    return Err(
                        Failure::new(Exit::Usage, message).hint("leave --at-clock out to swap as soon as can be")
                    );
                }
                (Err(Unplanned::Stops(stop)), _) => {
                    let message = match at {
                        Some(at) => {
                            format!("the job ends before clock {at}: its last clock is {}", stop.saturating_sub(1))
                        }
                        None => format!(
                            "the job is in its last clock, {}: nothing is left to swap for",
                            stop.saturating_sub(1)
                        ),
                    };
                    return Err(Failure::new(Exit::Usage, message));
                }
                // Somebody has yet to hear the last verdict.
                _ => self.moved.wait(&mut state),
            }
        }
    }

    /// Waits until every worker has prepared, or says why that is not going to be.
    fn await_prepared(&self, at: Clock) -> Result<(), Failure> {
        let mut state = self.state.lock();
        loop {
            if state.over || state.failure.is_some() {
                return Err(ended());
            }
            let refused = match state.turns.progress() {
                Some(Progress::Open) => None,
                Some(Progress::Prepared) => return Ok(()),
                Some(Progress::Refused(worker, why)) => {
                    let message = format!("worker {worker} cannot begin clock {at} on the new version: {why}");
                    Some(Failure::new(Exit::Refused, message).hint("every worker stays with the version that runs"))
                }
                Some(Progress::Stopped(stop)) => {
                    Some(Failure::new(Exit::Usage, format!("the job stops at clock {stop}, before clock {at}")))
                }
                None => return Err(ended()),
            };
            if let Some(refused) = refused {
                state.turns.heard();
                self.moved.notify_all();
                return Err(refused);
            }
            self.moved.wait(&mut state);
        }
    }

    /// Speaks the verdict: from its clock on everyone runs `version`, or with `None` what they ran.
    fn resolve(&self, version: Option<(Arc<Version>, History)>) {
        let mut state = self.state.lock();
        state.turns.resolve(version.is_some());
        if let Some((version, versions)) = version {
            state.specs.push((version.record.from, version.plugin.manifest().metrics.clone().into()));
            state.desk.versions = versions;
            state.desk.current = Some(version);
        }
        self.moved.notify_all();
    }
}

/// Who carries swaps out, one at a time.
pub struct Swapper<'a> {
    /// The run.
    pub input: &'a RunInput<'a>,
    /// Its board.
    pub board: &'a Board,
    /// Its shards, which a rehearsal may read.
    pub shards: &'a Arc<Shards>,
    /// Where candidates come from.
    pub loader: &'a dyn Loader,
    /// The columns that the data was loaded with.
    pub columns: &'a [ColumnWant],
    /// Where the news of a swap goes.
    pub bell: Sender<News>,
}

impl Swapper<'_> {
    /// Swaps, or says why nothing was changed.
    pub fn swap(&self, request: &SwapRequest) -> Result<Swapped, Failure> {
        let current = self.board.current().ok_or_else(ended)?;
        let request = if request.rollback { &self.rolled_back(request)? } else { request };
        let consistency = bound(current.consistency, request.staleness)?;
        self.early(request.at_clock)?;
        let candidate = self.loader.load(request, &current)?;
        let params = candidate.params.clone();
        if candidate.digest == current.record.digest
            && params == current.record.params
            && consistency == current.consistency
        {
            return Err(Failure::new(Exit::Usage, "nothing would change: that version runs already")
                .hint("name another plugin, or give --param or --staleness"));
        }
        let misfits = fit::misfits(self.input, self.columns, &*current.plugin, &*candidate.probe, &params)?;
        if !misfits.is_empty() {
            let list: String = misfits.iter().map(|m| format!("\n  {m}")).collect();
            let name = &candidate.plugin.manifest().name;
            let message =
                format!("plugin {name} does not fit the running job; what runs against what was asked:{list}");
            return Err(Failure::new(Exit::Refused, message).hint("the version that runs goes on"));
        }
        let copies = self.board.collect_state().ok_or_else(ended)?;
        rehearsal::rehearse(self.input, self.shards, &*candidate.probe, &params, &copies, &self.board.cancelled())?;
        drop(copies);
        if let Some(state) = self.input.state {
            state.put_blob(&candidate.bytes)?;
        }
        let versions = self.board.versions();
        let record = VersionRecord {
            number: versions.newest().map_or(1, |v| v.number + 1),
            plugin: candidate.plugin.manifest().name.clone(),
            digest: candidate.digest,
            params,
            staleness: consistency.staleness,
            from: 0,
            reason: request.reason.clone(),
        };
        let version = |from| {
            let record = VersionRecord { from, ..record.clone() };
            Arc::new(Version { record, plugin: candidate.plugin.clone(), consistency })
        };
        let version = self.board.plan(request.at_clock, version)?;
        self.board.await_prepared(version.record.from)?;
        let history = versions.with(version.record.clone());
        if let Some(state) = self.input.state
            && let Err(e) = history.keep(state)
        {
            self.board.resolve(None);
            let message =
                format!("the swap could not be recorded, and every worker stays with the version that runs: {e}");
            return Err(Failure::new(Exit::State, message));
        }
        let swapped = Swapped { from: current.record.clone(), to: version.record.clone() };
        // Before the verdict: afterwards the workers may be done, and nobody listens any more.
        let _ = self.bell.send(News::Swap(swapped.clone()));
        self.board.resolve(Some((version, history)));
        Ok(swapped)
    }

    /// What a rollback asks for: the version before the newest, as it was.
    fn rolled_back(&self, request: &SwapRequest) -> Result<SwapRequest, Failure> {
        let versions = self.board.versions();
        let Some(before) = versions.previous() else {
            return Err(Failure::new(Exit::Usage, "there is no version to go back to: the job runs its first"));
        };
        let model = self.input.job.consistency.model;
        let bounded = matches!(model, Model::Ssp | Model::Essp);
        Ok(SwapRequest {
            recorded: Some(before.clone()),
            staleness: bounded.then_some(before.staleness),
            at_clock: request.at_clock,
            reason: format!("rollback to version {}", before.number),
            ..SwapRequest::default()
        })
    }

    /// Refuses a clock that has passed before anything is compiled; it is checked again when the swap is planned.
    fn early(&self, at: Option<Clock>) -> Result<(), Failure> {
        let (begun, stop, _) = self.board.clocks();
        let first = begun.iter().max().map_or(0, |c| c.saturating_add(1));
        match at {
            Some(at) if at < first => {
                let message = format!("clock {at} has begun: clock {first} is the first that has not");
                Err(Failure::new(Exit::Usage, message).hint("leave --at-clock out to swap as soon as can be"))
            }
            Some(at) if at >= stop => {
                let message = format!("the job ends before clock {at}: it has {}", plural(u64::from(stop), "clock"));
                Err(Failure::new(Exit::Usage, message).hint("clocks are counted from 0"))
            }
            _ => Ok(()),
        }
    }
}

/// The job's model with another bound.
fn bound(now: Consistency, staleness: Option<u32>) -> Result<Consistency, Failure> {
    match (now.model, staleness) {
        (_, None) => Ok(now),
        (Model::Ssp | Model::Essp, Some(staleness)) => Ok(Consistency { staleness, ..now }),
        (model, Some(_)) => {
            Err(Failure::new(Exit::Usage, format!("--staleness: the job runs {model}, which has no bound"))
                .hint("ssp and essp have one; a job's model stays as it began"))
        }
    }
}

/// The run ended before the swap's clock.
pub fn ended() -> Failure {
    Failure::new(Exit::State, "the run ended before the swap was made")
}
