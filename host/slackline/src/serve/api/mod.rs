//! The control plane's services: each call is taken apart, handed to the coordinator, and its answer put together.
//!
//! Nothing is decided here. What may block (the ledger, files, a child that compiles) runs on threads where it may.

mod datasets;
mod jobs;
mod plugins;
mod processes;
mod tables;
mod transfer;

use crate::failure::{Exit, Failure};
use crate::serve::coordinator::{Coordinator, Trouble};
use slackline_control::{JobState, Record, RefusalKind};
use slackline_core::TenantId;
use slackline_storage::ErrorKind;
use slackline_wire::tonic::{Request, Status};
use slackline_wire::{Authenticate, Caller, Kind, Refusal, same_token, v1};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Uploads at once; each holds a file and a thread.
const UPLOADS: usize = 8;

/// All services.
pub struct Api {
    coordinator: Arc<Coordinator>,
    uploads: Arc<Semaphore>,
    /// One compilation or prediction at a time: each may take all the memory that its limit allows.
    heavy: Arc<Semaphore>,
}

impl Api {
    /// Over `coordinator`.
    pub fn new(coordinator: Arc<Coordinator>) -> Self {
        let (uploads, heavy) = (Arc::new(Semaphore::new(UPLOADS)), Arc::new(Semaphore::new(1)));
        Self { coordinator, uploads, heavy }
    }

    /// Does what may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Coordinator) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let coordinator = self.coordinator.clone();
        let done = tokio::task::spawn_blocking(move || work(&coordinator)).await;
        done.unwrap_or_else(|e| Err(Refusal::new(Kind::Internal, format!("the call failed: {e}")).into()))
    }
}

/// The token that lets users in.
pub struct Users {
    /// It.
    pub token: String,
}

impl Authenticate for Users {
    fn authenticate(&self, token: Option<&str>) -> Result<Caller, Refusal> {
        match token {
            Some(token) if same_token(token.as_bytes(), self.token.as_bytes()) => {
                Ok(Caller { tenant: TenantId::local().to_string(), name: "user".to_owned() })
            }
            given => {
                let what = if given.is_some() { "the token is not known here" } else { "a token is needed" };
                Err(Refusal::new(Kind::Unauthenticated, what).hint(
                    "--token-file FILE (or SLACKLINE_TOKEN_FILE) names the cluster's token; `slackline serve` says where \
                     it is",
                ))
            }
        }
    }
}

/// Whose request it is.
fn tenant<T>(request: &Request<T>) -> Result<TenantId, Status> {
    let caller = Caller::of(request).ok_or_else(|| Refusal::new(Kind::Unauthenticated, "nobody is calling"))?;
    Ok(TenantId::new(&caller.tenant))
}

fn trouble(e: Trouble) -> Status {
    match e {
        Trouble::Refused(r) => {
            let kind = match r.kind {
                RefusalKind::NotFound => Kind::NotFound,
                RefusalKind::Conflict => Kind::Conflict,
                RefusalKind::TooBig => Kind::TooBig,
                _ => Kind::Invalid,
            };
            Refusal { kind, message: r.message, hints: r.hint.into_iter().collect() }.into()
        }
        Trouble::State(e) => storage(e),
        Trouble::Files(message) => Refusal::new(Kind::Internal, message).into(),
        e @ Trouble::Closing => Refusal::new(Kind::Unavailable, e.to_string()).into(),
    }
}

fn storage(e: slackline_storage::Error) -> Status {
    let kind = match e.kind() {
        ErrorKind::Invalid | ErrorKind::Damaged => Kind::Invalid,
        ErrorKind::NoSpace => Kind::Busy,
        _ => Kind::Internal,
    };
    Refusal::new(kind, e.to_string()).into()
}

fn failure(f: Failure) -> Status {
    let kind = match f.exit {
        Exit::Usage | Exit::Data | Exit::Refused => Kind::Invalid,
        Exit::State => Kind::NotFound,
        _ => Kind::Internal,
    };
    Refusal { kind, message: f.message, hints: f.hints }.into()
}

fn io(what: &str, e: &std::io::Error) -> Status {
    Refusal::new(Kind::Internal, format!("{what}: {e}")).into()
}

fn missing(what: &str) -> Status {
    Refusal::new(Kind::Invalid, format!("the request lacks {what}")).into()
}

fn seconds(at: slackline_control::Millis) -> u64 {
    at / 1000
}

/// A job as clients see it.
fn job(coordinator: &Coordinator, tenant: &TenantId, id: &str) -> Result<v1::Job, Status> {
    let found = coordinator.with(|control| {
        let record = control.job(tenant, id)?;
        Some((record.clone(), control.waits_for(record)))
    });
    let (record, waits) = found.ok_or_else(|| Refusal::new(Kind::NotFound, format!("job {id} is gone")))?;
    Ok(to_job(coordinator, tenant, record, waits))
}

fn to_job(coordinator: &Coordinator, tenant: &TenantId, record: Record, waits: Option<String>) -> v1::Job {
    let reason = match (waits, record.reason) {
        (Some(waits), reason) if reason.is_empty() => waits,
        (Some(waits), reason) => format!("{reason}; {waits}"),
        (None, reason) => reason,
    };
    let folder = coordinator.job_dir(tenant, &record.id).join(crate::serve::launch::STATE);
    v1::Job {
        name: record.submission.name,
        state: to_state(record.state) as i32,
        reason,
        plugin: record.submission.plugin,
        digest: record.submission.digest,
        revision: record.submission.revision,
        workers: record.submission.workers,
        clock: record.clock,
        max_clocks: record.submission.max_clocks,
        metrics: record.metrics.into_iter().collect(),
        submitted_at: seconds(record.submitted),
        changed_at: seconds(record.changed),
        attempts: record.attempt,
        state_folder: std::path::absolute(&folder).unwrap_or(folder).to_string_lossy().into_owned(),
        process: record.process.unwrap_or_default(),
        id: record.id,
    }
}

fn to_state(state: JobState) -> v1::JobState {
    match state {
        JobState::Queued => v1::JobState::Queued,
        JobState::Running => v1::JobState::Running,
        JobState::Ending => v1::JobState::Ending,
        JobState::Paused => v1::JobState::Paused,
        JobState::Done => v1::JobState::Done,
        JobState::Stopped => v1::JobState::Stopped,
        JobState::Failed => v1::JobState::Failed,
    }
}
