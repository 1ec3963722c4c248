//! One job's life: queued, running, ending, paused, and over in one of three ways.
//!
//! ```text
//!            ┌──────────── lost, or its host process left ───────────┐
//!            ▼                                                       │
//! submit ─▶ queued ── placed ─▶ running ── pause, stop ─▶ ending ────┤
//!            ▲                     │                        │        │
//!            │                     ├─▶ done                 ├─▶ paused, stopped
//!            └── resume ───────────┴─▶ failed ◀─────────────┘
//! ```

use crate::Millis;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Attempts in a row that may be lost without a new clock before a job counts as failed.
pub(crate) const FRUITLESS: u32 = 3;

/// Transitions that a job remembers; the oldest go.
const MAX_HISTORY: usize = 1000;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for worker slots.
    Queued,
    /// Runs.
    Running,
    /// Was asked to pause or stop, and writes its cut.
    Ending,
    /// Holds a cut and no slots; goes on when it is asked to.
    Paused,
    /// All clocks were done, or its stop rule held.
    Done,
    /// A person ended it; it can be resumed.
    Stopped,
    /// Could not go on; it can be resumed when the cause is gone.
    Failed,
}

impl JobState {
    /// Whether it has ended, by itself or not.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Stopped | Self::Failed)
    }

    /// Whether a process runs it.
    pub fn is_placed(self) -> bool {
        matches!(self, Self::Running | Self::Ending)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        })
    }
}

/// What a user asks of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// End it with a cut.
    Stop,
    /// End it with a cut, to go on later.
    Pause,
    /// Let it go on from its newest cut.
    Resume,
    /// Forget it and its state.
    Delete,
}

/// A checked job file, and what the coordinator must know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The job's name.
    pub name: String,
    /// The job file.
    pub toml: String,
    /// The plugin as the user named it.
    pub plugin: String,
    /// The digest that the name stood for when the job was submitted.
    pub digest: String,
    /// The revision, where the registry holds it; 0 for a bundled one.
    pub revision: u32,
    /// Worker slots that it needs.
    pub workers: u32,
    /// The clock after which it ends, if bounded.
    pub max_clocks: Option<u32>,
    /// The uploaded datasets that it reads, as they were when it was submitted.
    pub datasets: Vec<UsedDataset>,
}

/// An uploaded dataset, as a job reads it: another of the same name changes nothing for the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedDataset {
    /// Its name.
    pub name: String,
    /// `blake3:…` of its bytes.
    pub digest: String,
    /// The file's name at the client, whose ending tells the format.
    pub file_name: String,
}

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When.
    pub at: Millis,
    /// In words.
    pub what: String,
    /// The state after it.
    pub state: JobState,
}

/// How a job's process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The job is done; why, where it was a stop rule.
    Done(Option<String>),
    /// It wrote a cut and ended, as asked.
    Interrupted,
    /// It cannot go on; why.
    Failed(String),
    /// The process is gone without a word; it can be tried again, a few times.
    Lost(String),
    /// The host process that ran it is gone, which says nothing against the job.
    Gone(String),
}

/// A start that [`Control::place`](crate::Control::place) wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job's id.
    pub job: String,
    /// The number of this start, from 1.
    pub attempt: u32,
    /// The host process that is to run it.
    pub process: String,
}

/// A job, as the coordinator knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Unique in its tenant.
    pub id: String,
    /// Its place in the queue.
    pub number: u64,
    /// What was submitted.
    pub submission: Submission,
    /// Where it is.
    pub state: JobState,
    /// What was asked for while it is ending.
    pub wanted: Option<Action>,
    /// Why it is in this state, where that needs words.
    pub reason: String,
    /// Starts so far.
    pub attempt: u32,
    /// Attempts in a row that were lost without a new clock.
    pub fruitless: u32,
    /// The clock that the attempt before the current one had reached.
    pub clock_before: u32,
    /// The process that runs it, or ran it last: its cuts are there.
    pub process: Option<String>,
    /// Clocks that every worker has ended.
    pub clock: u32,
    /// The newest metrics.
    pub metrics: BTreeMap<String, f64>,
    /// When it was submitted.
    pub submitted: Millis,
    /// When its state changed last.
    pub changed: Millis,
    /// What happened, oldest first.
    pub history: Vec<Transition>,
}

impl Record {
    pub(crate) fn new(id: String, number: u64, submission: Submission, at: Millis) -> Self {
        let mut record = Self {
            id,
            number,
            submission,
            state: JobState::Queued,
            wanted: None,
            reason: String::new(),
            attempt: 0,
            fruitless: 0,
            clock_before: 0,
            process: None,
            clock: 0,
            metrics: BTreeMap::new(),
            submitted: at,
            changed: at,
            history: Vec::new(),
        };
        record.enter(JobState::Queued, "submitted", "", at);
        record
    }

    fn enter(&mut self, state: JobState, what: impl Into<String>, reason: impl Into<String>, at: Millis) {
        (self.state, self.reason, self.changed) = (state, reason.into(), at);
        self.note(what, at);
    }

    /// Adds a line to the history.
    pub(crate) fn note(&mut self, what: impl Into<String>, at: Millis) {
        if self.history.len() == MAX_HISTORY {
            self.history.remove(0);
        }
        self.history.push(Transition { at, what: what.into(), state: self.state });
    }

    /// Whether `action` is allowed now; the answer says whether it changes anything.
    pub(crate) fn allows(&self, action: Action) -> Result<bool, Refusal> {
        use Action::*;
        use JobState::*;
        let conflict = |hint: &str| {
            let what = match action {
                Stop => "stopped",
                Pause => "paused",
                Resume => "resumed",
                Delete => "deleted",
            };
            Err(Refusal::conflict(format!("job {} is {}: it cannot be {what}", self.id, self.state)).hint(hint))
        };
        match (action, self.state) {
            (Stop, Queued | Running | Paused) | (Pause, Queued | Running) => Ok(true),
            // A stop outweighs a pause that is still going on.
            (Stop, Ending) => Ok(self.wanted != Some(Stop)),
            (Pause, Ending) if self.wanted == Some(Pause) => Ok(false),
            (Pause, Ending) => conflict("it is being stopped; `slackline job resume` lets it go on after that"),
            (Stop, Stopped) | (Pause, Paused) | (Resume, Queued | Running) => Ok(false),
            (Stop | Pause, Done | Stopped | Failed) => conflict("it is over already"),
            (Resume, Paused | Stopped | Failed) => Ok(true),
            (Resume, Ending) => conflict("it is writing its cut; ask again when that is done"),
            (Resume, Done) => conflict("all its clocks are done; submit it again with more"),
            (Delete, Paused | Done | Stopped | Failed | Queued) => Ok(true),
            (Delete, Running | Ending) => conflict("stop it first, and wait until it has"),
        }
    }

    /// Takes an allowed action. A deletion is the registry's to carry out.
    pub(crate) fn act(&mut self, action: Action, at: Millis) {
        use JobState::*;
        match (action, self.state) {
            (Action::Stop | Action::Pause, Running | Ending) => {
                self.wanted = Some(action);
                let what = if action == Action::Stop { "asked to stop" } else { "asked to pause" };
                self.enter(Ending, what, "writes its cut", at);
            }
            (Action::Stop, _) => self.enter(Stopped, "stopped", "", at),
            (Action::Pause, _) => self.enter(Paused, "paused", "", at),
            (Action::Resume, _) => {
                (self.wanted, self.fruitless) = (None, 0);
                self.enter(Queued, "asked to go on", "", at);
            }
            (Action::Delete, _) => {}
        }
    }

    /// A process starts it.
    pub(crate) fn start(&mut self, process: &str, attempt: u32, at: Millis) {
        (self.process, self.attempt, self.clock_before) = (Some(process.to_owned()), attempt, self.clock);
        self.enter(JobState::Running, format!("started on {process}, attempt {attempt}"), "", at);
    }

    /// Its process has ended.
    pub(crate) fn end(&mut self, outcome: &Outcome, clock: u32, metrics: &BTreeMap<String, f64>, at: Millis) {
        self.clock = clock.max(self.clock);
        if !metrics.is_empty() {
            self.metrics = metrics.clone();
        }
        let wanted = self.wanted.take();
        match (outcome, wanted) {
            (Outcome::Done(why), _) => {
                self.enter(JobState::Done, "done", why.clone().unwrap_or_default(), at);
            }
            (Outcome::Interrupted, Some(Action::Pause)) => self.enter(JobState::Paused, "paused", "", at),
            (Outcome::Interrupted, Some(_)) => self.enter(JobState::Stopped, "stopped", "", at),
            // Nobody asked: the host process shuts down, and the job goes on when there is one again.
            (Outcome::Interrupted, None) => {
                self.fruitless = 0;
                self.enter(JobState::Queued, "interrupted with a cut", "its host process stopped", at);
            }
            (Outcome::Failed(why), _) => self.enter(JobState::Failed, "failed", why.clone(), at),
            // What was asked for holds, even though no new cut was written.
            (Outcome::Lost(why) | Outcome::Gone(why), Some(Action::Pause)) => {
                self.enter(JobState::Paused, format!("paused at its newest cut: {why}"), "", at);
            }
            (Outcome::Lost(why) | Outcome::Gone(why), Some(_)) => {
                self.enter(JobState::Stopped, format!("stopped at its newest cut: {why}"), "", at);
            }
            (Outcome::Gone(why), None) => {
                self.enter(JobState::Queued, format!("lost: {why}"), "goes on from its newest cut", at);
            }
            (Outcome::Lost(why), None) => {
                self.fruitless = if self.clock > self.clock_before { 1 } else { self.fruitless + 1 };
                if self.fruitless >= FRUITLESS {
                    let reason = format!("lost {FRUITLESS} times in a row without a new clock; the last: {why}");
                    self.enter(JobState::Failed, "given up", reason, at);
                } else {
                    self.enter(JobState::Queued, format!("lost: {why}"), "goes on from its newest cut", at);
                }
            }
        }
    }
}
