//! The coordinator's driver: it makes decisions durable, starts what should run, and hears how that ends.
//!
//! One lock over the state. A change is written to the ledger under it, so that the ledger has the order of decisions;
//! whoever holds it may block for a synced write, so callers come from threads where that is allowed.

use crate::serve::config::HostConfig;
use crate::serve::journal::{Journal, Journals};
use crate::serve::launch::{Attempt, Launched};
use slackline_control::{
    Action, Answer, Change, Control, JobState, Millis, Outcome, Process, Record, Refusal, Request, Start,
};
use slackline_core::TenantId;
use slackline_storage::{BlobFiles, Ledger};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::broadcast;

/// Changes after which the ledger gets a snapshot, so that a restart replays little.
const SNAPSHOT_EVERY: u64 = 1000;

/// Events of the cluster that a slow follower may be behind before it misses some.
const EVENTS: usize = 1024;

/// How long a shutdown waits for jobs to write their cuts.
const LAST_CUTS: Duration = Duration::from_secs(120);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The coordinator says no.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// Its disk does.
    #[error("{0}")]
    State(#[from] slackline_storage::Error),
    /// A file of a job cannot be read or written.
    #[error("{0}")]
    Files(String),
    /// It is shutting down.
    #[error("the cluster is shutting down; ask again when it is back")]
    Closing,
}

/// The coordinator of a cluster.
pub struct Coordinator {
    /// What this process was told to be.
    pub config: HostConfig,
    ledger: Ledger,
    blobs: Arc<BlobFiles>,
    state: Mutex<State>,
    /// Signalled when a start or an end may have become due.
    moved: Condvar,
    /// Every job's events.
    journals: Journals,
    /// Digests of files that are on their way into the state, and how often. Locked after `state`, never before.
    held: Mutex<HashMap<String, u32>>,
    events: broadcast::Sender<(Millis, String)>,
    started: SystemTime,
}

/// See [`Coordinator::hold`].
pub struct Hold<'a> {
    coordinator: &'a Coordinator,
    digest: String,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut held = self.coordinator.held();
        if let Some(count) = held.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.digest);
            }
        }
    }
}

struct State {
    control: Control,
    /// Attempts that run here, by tenant and job.
    running: HashMap<(TenantId, String), Arc<Launched>>,
    closing: bool,
}

impl Coordinator {
    /// Opens what the cluster knows, and takes back the jobs that ran when it ended.
    pub fn open(config: HostConfig) -> Result<Arc<Self>, Trouble> {
        let ledger = Ledger::open(&config.state)?;
        let mut control = match ledger.snapshot()? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| damaged(&config, &e))?,
            None => Control::default(),
        };
        for bytes in ledger.changes()? {
            let change: Change = serde_json::from_slice(&bytes).map_err(|e| damaged(&config, &e))?;
            control.apply(&change);
        }
        control.join(Process {
            name: config.name.clone(),
            roles: ["coordinator", "server", "worker"].map(str::to_owned).to_vec(),
            slots: config.slots,
            joined: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })?;
        let blobs = ledger.blobs();
        let coordinator = Arc::new(Self {
            ledger,
            blobs,
            state: Mutex::new(State { control, running: HashMap::new(), closing: false }),
            moved: Condvar::new(),
            journals: Journals::default(),
            held: Mutex::default(),
            events: broadcast::Sender::new(EVENTS),
            started: SystemTime::now(),
            config,
        });
        let mut state = coordinator.lock();
        // Their processes end when they find that this one's predecessor is gone.
        let lost = state.control.lost(|_| true, "the coordinator was restarted", now());
        coordinator.commit(&mut state, &lost)?;
        coordinator.sweep_blobs(&state.control)?;
        coordinator.remove_folders_of_deleted_jobs(&state.control);
        drop(state);
        Ok(coordinator)
    }

    /// Asks for a change. Durable before it is answered.
    pub fn ask(&self, tenant: &TenantId, id: &str, request: &Request) -> Result<Answer, Trouble> {
        let mut state = self.lock();
        if state.closing {
            return Err(Trouble::Closing);
        }
        let acting = match request {
            Request::Act { job, action } => {
                Some((state.control.find_job(tenant, job).ok().map(|r| r.id.clone()), *action))
            }
            _ => None,
        };
        let decision = state.control.decide(tenant, id, request, now())?;
        let changed = !decision.changes.is_empty();
        self.commit(&mut state, &decision.changes)?;
        if let (Some((Some(job), action)), true) = (acting, changed) {
            self.carry_out(&state, tenant, &job, action);
        }
        if changed && matches!(request, Request::DeletePlugin { .. } | Request::DeleteDataset { .. }) {
            self.sweep_blobs(&state.control)?;
        }
        Ok(decision.answer)
    }

    fn carry_out(&self, state: &State, tenant: &TenantId, job: &str, action: Action) {
        match action {
            Action::Stop | Action::Pause => {
                if let Some(launched) = state.running.get(&(tenant.clone(), job.to_owned())) {
                    launched.end();
                }
            }
            Action::Delete => {
                self.journals.forget(&self.journal_path(tenant, job));
                self.remove_folders_of_deleted_jobs(&state.control);
            }
            Action::Resume => {}
        }
    }

    /// Reads the state.
    pub fn with<T>(&self, read: impl FnOnce(&Control) -> T) -> T {
        read(&self.lock().control)
    }

    /// The uploaded files.
    pub fn blobs(&self) -> &BlobFiles {
        &self.blobs
    }

    /// Keeps the file with this digest, which nothing in the state needs yet, for as long as the answer lives.
    pub fn hold(&self, digest: &str) -> Hold<'_> {
        *self.held().entry(digest.to_owned()).or_default() += 1;
        Hold { coordinator: self, digest: digest.to_owned() }
    }

    /// Removes files that nothing needs, such as those of a refused upload.
    pub fn sweep(&self) -> Result<(), Trouble> {
        self.sweep_blobs(&self.lock().control)
    }

    fn sweep_blobs(&self, control: &Control) -> Result<(), Trouble> {
        let held = self.held();
        Ok(self.blobs.retain(|digest| control.needs_blob(digest) || held.contains_key(digest))?)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of a job.
    pub fn job_dir(&self, tenant: &TenantId, job: &str) -> PathBuf {
        // Both are checked names, so they cannot leave the folder.
        self.config.state.join("jobs").join(tenant.as_str()).join(job)
    }

    fn journal_path(&self, tenant: &TenantId, job: &str) -> PathBuf {
        self.job_dir(tenant, job).join("events.jsonl")
    }

    /// A job's events.
    pub fn journal(&self, tenant: &TenantId, job: &str) -> Result<Arc<Journal>, Trouble> {
        let dir = self.job_dir(tenant, job);
        let files = |e| Trouble::Files(format!("the events of job {job} cannot be kept in {}: {e}", dir.display()));
        std::fs::create_dir_all(&dir).map_err(files)?;
        self.journals.of(&self.journal_path(tenant, job)).map_err(files)
    }

    /// What happens in the cluster from now on.
    pub fn events(&self) -> broadcast::Receiver<(Millis, String)> {
        self.events.subscribe()
    }

    /// Seconds since this process began.
    pub fn uptime(&self) -> u64 {
        self.started.elapsed().map_or(0, |d| d.as_secs())
    }

    /// Starts what should run, until [`Coordinator::close`]; on a thread of its own.
    pub fn place_until_closed(self: &Arc<Self>) {
        let mut state = self.lock();
        while !state.closing {
            for (tenant, start) in state.control.place() {
                let change = state.control.started(&tenant, &start, now());
                if let Err(e) = self.commit(&mut state, &[change]) {
                    tracing::error!(job = start.job, error = %e, "a start cannot be recorded; trying again");
                    break;
                }
                self.start(&mut state, tenant, start);
            }
            // A timeout, since a full disk may have kept a start from being recorded.
            let wait = self.moved.wait_timeout(state, Duration::from_secs(1));
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start(self: &Arc<Self>, state: &mut State, tenant: TenantId, start: Start) {
        let Some(record) = state.control.job(&tenant, &start.job) else { return };
        tracing::info!(job = start.job, attempt = start.attempt, "starts");
        match Attempt::new(self, &tenant, record, start.attempt).launch(self) {
            Ok(launched) => _ = state.running.insert((tenant, start.job), launched),
            Err(why) => self.note_end(state, &tenant, &start, Outcome::Failed(why)),
        }
    }

    /// What a running attempt has reached.
    pub fn progress(&self, tenant: &TenantId, start: &Start, clock: u32, metrics: &BTreeMap<String, f64>) {
        self.lock().control.progress((tenant, &start.job), start.attempt, clock, metrics);
    }

    /// An attempt has ended.
    pub fn ended(&self, tenant: &TenantId, start: &Start, outcome: Outcome) {
        self.note_end(&mut self.lock(), tenant, start, outcome);
    }

    fn note_end(&self, state: &mut State, tenant: &TenantId, start: &Start, outcome: Outcome) {
        tracing::info!(job = start.job, attempt = start.attempt, outcome = ?outcome, "ended");
        state.running.remove(&(tenant.clone(), start.job.clone()));
        let change = state.control.observe((tenant, &start.job), start.attempt, outcome, now());
        if let Some(change) = change
            && let Err(e) = self.commit(state, std::slice::from_ref(&change))
        {
            // The state in memory goes on; after a restart the job counts as lost and resumes, which ends it again.
            tracing::error!(job = start.job, error = %e, "an end cannot be recorded");
            state.control.apply(&change);
        }
        self.moved.notify_all();
    }

    /// Ends every attempt with a cut, and waits for that.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.running.values().for_each(|launched| launched.end());
        self.moved.notify_all();
        let waited = self.moved.wait_timeout_while(state, LAST_CUTS, |state| !state.running.is_empty());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        for ((_, job), launched) in &state.running {
            tracing::warn!(job, "has not ended in time and is killed; it goes on from its newest cut");
            launched.kill();
        }
    }

    fn commit(&self, state: &mut State, changes: &[Change]) -> Result<(), Trouble> {
        let bytes = changes.iter().map(serde_json::to_vec).collect::<Result<Vec<_>, _>>();
        let bytes = bytes.map_err(|e| Trouble::Files(format!("a change cannot be written: {e}")))?;
        self.ledger.append(bytes)?;
        for change in changes {
            state.control.apply(change);
            if let Some(event) = describe(&state.control, change) {
                // Nobody may listen.
                let _ = self.events.send((now(), event.to_string()));
            }
        }
        if self.ledger.since_snapshot() >= SNAPSHOT_EVERY
            && let Ok(snapshot) = serde_json::to_vec(&state.control)
            && let Err(e) = self.ledger.replace(snapshot)
        {
            tracing::warn!(error = %e, "the snapshot was not written; the changes are");
        }
        self.moved.notify_all();
        Ok(())
    }

    /// Also at a start: a crash may have come between a deletion and the removal of its folder.
    fn remove_folders_of_deleted_jobs(&self, control: &Control) {
        let jobs = self.config.state.join("jobs");
        for tenant in std::fs::read_dir(&jobs).into_iter().flatten().flatten() {
            let id = TenantId::new(&tenant.file_name().to_string_lossy());
            for job in std::fs::read_dir(tenant.path()).into_iter().flatten().flatten() {
                if control.job(&id, &job.file_name().to_string_lossy()).is_none()
                    && let Err(e) = std::fs::remove_dir_all(job.path())
                {
                    tracing::warn!(folder = %job.path().display(), error = %e, "a deleted job's folder stays");
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every change is whole before the lock is let go of, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change as followers of the cluster read it.
fn describe(control: &Control, change: &Change) -> Option<serde_json::Value> {
    use serde_json::json;
    let of_job = |tenant: &TenantId, job: &str| {
        let record: Option<&Record> = control.job(tenant, job);
        let state = record.map_or_else(|| "deleted".to_owned(), |r| r.state.to_string());
        let what = record.and_then(|r| r.history.last()).map(|t| t.what.clone());
        json!({"event": "job", "job": job, "state": state, "what": what})
    };
    match change {
        Change::Answered { .. } => None,
        Change::Revision { revision: r, tag, .. } => {
            Some(json!({"event": "plugin", "plugin": r.plugin, "revision": r.number, "digest": r.digest, "tag": tag}))
        }
        Change::RevisionGone { revision: r, .. } => {
            Some(json!({"event": "plugin-deleted", "plugin": r.plugin, "revision": r.number}))
        }
        Change::Dataset { dataset, .. } => {
            Some(json!({"event": "dataset", "dataset": dataset.name, "bytes": dataset.bytes}))
        }
        Change::DatasetGone { name, .. } => Some(json!({"event": "dataset-deleted", "dataset": name})),
        Change::Submitted { tenant, job, .. }
        | Change::Acted { tenant, job, .. }
        | Change::Started { tenant, job, .. }
        | Change::Ended { tenant, job, .. }
        | Change::Noted { tenant, job, .. } => Some(of_job(tenant, job)),
    }
}

/// Whether a job's events may still grow.
pub fn is_live(record: &Record) -> bool {
    !(record.state.is_over() || record.state == JobState::Paused)
}

fn damaged(config: &HostConfig, e: &serde_json::Error) -> Trouble {
    let dir = config.state.display();
    Trouble::Files(format!("what the cluster knew in {dir} cannot be read: {e}; was it written by another release?"))
}

/// Milliseconds since 1970.
pub fn now() -> Millis {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as Millis)
}
