//! `slackline job …` and `slackline predict --job`.

use super::plugins::odd;
use super::transfer::{Answers, fits, next, receive_into, send};
use super::{Api, io, job, missing, seconds, tenant, to_job, to_state, trouble};
use crate::serve::coordinator::{Coordinator, is_live};
use crate::serve::journal::Reader;
use crate::serve::{job_file, launch};
use slackline_control::{Action, Answer, Record, Request as Ask};
use slackline_core::TenantId;
use slackline_wire::tonic::{Request, Response, Status, Streaming};
use slackline_wire::v1::jobs_server::Jobs;
use slackline_wire::v1::predict_part::Part as PredictIn;
use slackline_wire::v1::predict_reply::Part as PredictOut;
use slackline_wire::{Kind, Refusal, v1};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Lines of a journal that are read at once.
const LINES: usize = 256;

/// How often a follower looks whether the job is over, which no event tells when its process was killed.
const LOOK: Duration = Duration::from_millis(250);

#[slackline_wire::tonic::async_trait]
impl Jobs for Api {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let tenant = tenant(&request)?;
        let v1::SubmitRequest { request_id, job_toml } = request.into_inner();
        let submitted = self.blocking(move |c| {
            // Asked again, names may stand for something newer: the answer is that of the first time.
            if let Some(Answer::Job(id)) = c.with(|control| control.answered(&tenant, &request_id).cloned()) {
                return job(c, &tenant, &id);
            }
            let submission = job_file::check(c, &tenant, &job_toml).map_err(trouble)?;
            let _hold = c.hold(&submission.digest);
            match c.ask(&tenant, &request_id, &Ask::Submit(submission)).map_err(trouble)? {
                Answer::Job(id) => job(c, &tenant, &id),
                answer => Err(odd(&answer)),
            }
        });
        Ok(Response::new(v1::SubmitReply { job: Some(submitted.await?) }))
    }

    async fn list(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<v1::ListJobsReply>, Status> {
        let tenant = tenant(&request)?;
        let all = request.get_ref().all;
        let jobs: Vec<_> = self.coordinator.with(|control| {
            let jobs = control.jobs_of(&tenant).into_iter().filter(|j| all || !j.state.is_over());
            jobs.map(|j| (j.clone(), control.waits_for(j))).collect()
        });
        let jobs = jobs.into_iter().map(|(j, waits)| to_job(&self.coordinator, &tenant, j, waits)).collect();
        Ok(Response::new(v1::ListJobsReply { jobs }))
    }

    async fn show(&self, request: Request<v1::ShowJobRequest>) -> Result<Response<v1::ShowJobReply>, Status> {
        let tenant = tenant(&request)?;
        let record = find(&self.coordinator, &tenant, &request.get_ref().job)?;
        let job_toml = record.submission.toml.clone();
        let job = job(&self.coordinator, &tenant, &record.id)?;
        Ok(Response::new(v1::ShowJobReply { job: Some(job), job_toml }))
    }

    type WatchStream = Answers<v1::JobEvent>;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let tenant = tenant(&request)?;
        let v1::WatchRequest { job, after, no_follow } = request.into_inner();
        let id = find(&self.coordinator, &tenant, &job)?.id;
        let journal = self.coordinator.journal(&tenant, &id).map_err(trouble)?;
        let reader = journal.reader().map_err(|e| io("the job's events cannot be read", &e))?;
        // The reader ends with the journal, which a deletion forgets.
        drop(journal);
        let (to, from) = mpsc::channel(LINES);
        let coordinator = self.coordinator.clone();
        tokio::spawn(async move {
            if let Err(status) = follow(coordinator, (tenant, id), reader, (after, no_follow), &to).await {
                let _ = to.send(Err(status)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(from)))
    }

    async fn control(&self, request: Request<v1::ControlJobRequest>) -> Result<Response<v1::ControlJobReply>, Status> {
        let tenant = tenant(&request)?;
        let v1::ControlJobRequest { request_id, job: name, action } = request.into_inner();
        let action = match v1::JobAction::try_from(action) {
            Ok(v1::JobAction::Stop) => Action::Stop,
            Ok(v1::JobAction::Pause) => Action::Pause,
            Ok(v1::JobAction::Resume) => Action::Resume,
            Ok(v1::JobAction::Delete) => Action::Delete,
            _ => return Err(missing("an action that this release knows")),
        };
        let before = self.coordinator.with(|c| c.find_job(&tenant, &name).ok().map(|r| r.id.clone()));
        let last = before.and_then(|id| job(&self.coordinator, &tenant, &id).ok());
        let asker = tenant.clone();
        let ask = Ask::Act { job: name, action };
        let answer = self.blocking(move |c| c.ask(&asker, &request_id, &ask).map_err(trouble)).await?;
        let Answer::Job(id) = answer else { return Err(odd(&answer)) };
        let job = match action {
            // What it was, since it is no more.
            Action::Delete => last,
            _ => Some(job(&self.coordinator, &tenant, &id)?),
        };
        Ok(Response::new(v1::ControlJobReply { job }))
    }

    async fn history(&self, request: Request<v1::HistoryRequest>) -> Result<Response<v1::HistoryReply>, Status> {
        let tenant = tenant(&request)?;
        let record = find(&self.coordinator, &tenant, &request.get_ref().job)?;
        let transitions = record.history.into_iter().map(|t| v1::Transition {
            at: seconds(t.at),
            what: t.what,
            state: to_state(t.state) as i32,
        });
        Ok(Response::new(v1::HistoryReply { transitions: transitions.collect() }))
    }

    type PredictStream = Answers<v1::PredictReply>;

    async fn predict(
        &self,
        request: Request<Streaming<v1::PredictPart>>,
    ) -> Result<Response<Self::PredictStream>, Status> {
        let tenant = tenant(&request)?;
        let mut stream = request.into_inner();
        let Some(v1::PredictPart { part: Some(PredictIn::Header(header)) }) = next(&mut stream).await? else {
            return Err(missing("its header"));
        };
        fits("input", header.bytes, self.coordinator.config.limits.dataset_bytes)?;
        let record = find(&self.coordinator, &tenant, &header.job)?;
        let _upload = self.uploads.acquire().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let dir = tempfile::Builder::new().prefix("predict-").tempdir_in(&self.coordinator.config.state);
        let dir = dir.map_err(|e| io("a folder for the predictions", &e))?;
        let (input, output) =
            (named(dir.path(), "in", &header.input_name)?, named(dir.path(), "out", &header.output_name)?);
        let piece = |m: v1::PredictPart| match m.part {
            Some(PredictIn::Chunk(bytes)) => Some(bytes),
            _ => None,
        };
        receive_into(input.clone(), &mut stream, piece, header.bytes).await?;
        let heavy =
            self.heavy.clone().acquire_owned().await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
        let to = output.clone();
        let summary_json = self.blocking(move |c| predict(c, &tenant, &record, &input, &to)).await?;
        drop(heavy);
        let first = v1::PredictReply { part: Some(PredictOut::SummaryJson(summary_json)) };
        let chunks = send(&output, |data| v1::PredictReply { part: Some(PredictOut::Chunk(data)) }, dir)?;
        let (to, from) = mpsc::channel(4);
        tokio::spawn(async move {
            let mut all = tokio_stream::once(Ok(first)).chain(chunks);
            while let Some(part) = all.next().await {
                if to.send(part).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(from)))
    }
}

pub(super) fn find(coordinator: &Coordinator, tenant: &TenantId, text: &str) -> Result<Record, Status> {
    coordinator.with(|c| c.find_job(tenant, text).cloned()).map_err(|e| trouble(e.into()))
}

/// Sends a job's events from the one after `after`; unless told otherwise, until the job is over.
async fn follow(
    coordinator: Arc<Coordinator>,
    job: (TenantId, String),
    mut reader: Reader,
    (after, no_follow): (u64, bool),
    to: &mpsc::Sender<Result<v1::JobEvent, Status>>,
) -> Result<(), Status> {
    loop {
        // Asked before reading: what is written until the job is over is read after that.
        let live = coordinator.with(|c| c.job(&job.0, &job.1).is_some_and(is_live));
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let lines: Result<Vec<_>, _> = std::iter::from_fn(|| reader.next().transpose()).take(LINES).collect();
                (lines, reader)
            });
            let (lines, back) = read.await.map_err(|e| Refusal::new(Kind::Internal, e.to_string()))?;
            reader = back;
            let lines = lines.map_err(|e| io("the job's events cannot be read", &e))?;
            if lines.is_empty() {
                break;
            }
            for (number, json) in lines.into_iter().filter(|(number, _)| *number > after) {
                if to.send(Ok(v1::JobEvent { number, json })).await.is_err() {
                    return Ok(());
                }
            }
        }
        if no_follow || !live {
            return Ok(());
        }
        tokio::select! {
            more = tokio::time::timeout(LOOK, reader.more()) => if more == Ok(false) { return Ok(()) },
            () = to.closed() => return Ok(()),
        }
    }
}

/// A file whose ending is that of `name`, which comes from outside and is used for nothing else.
fn named(dir: &Path, stem: &str, name: &str) -> Result<PathBuf, Status> {
    slackline_control::check_name("file", name).map_err(|e| trouble(e.into()))?;
    // Readers go by the whole name of some formats (`docword.…txt`).
    let dir = dir.join(stem);
    std::fs::create_dir_all(&dir).map_err(|e| io("a folder for the predictions", &e))?;
    Ok(dir.join(name))
}

/// Predicts in a process of its own, as the job itself runs. Gives its JSON line.
fn predict(c: &Coordinator, tenant: &TenantId, record: &Record, input: &Path, output: &Path) -> Result<String, Status> {
    let internal = |why: String| Status::from(Refusal::new(Kind::Internal, why));
    let dir = c.job_dir(tenant, &record.id);
    let exe = std::env::current_exe().map_err(|e| io("this program cannot find itself", &e))?;
    let file = dir.join("job.toml");
    if !file.exists() {
        let refusal = Refusal::new(Kind::NotFound, format!("job {} has not run yet: there is no model", record.id));
        return Err(refusal.hint("`slackline job watch` shows when it does").into());
    }
    let mut command = Command::new(exe);
    command.arg("predict").arg(&file).arg("--state").arg(dir.join(launch::STATE));
    command.arg("--input").arg(input).arg("--output").arg(output).arg("--json");
    let out = command.stdin(Stdio::null()).output().map_err(|e| io("no process can be started", &e))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    // The folder is ours; the user knows the file by the name alone.
    let said = said.replace(&format!("{}/", input.parent().unwrap_or(input).display()), "");
    let said = said.replace(&format!("{}/", output.parent().unwrap_or(output).display()), "");
    let Some((_, words)) = said.split_once("error: ") else {
        return Err(internal(format!("predicting failed: {}", out.status)));
    };
    let mut parts = words.split("\n  hint: ").map(|part| part.trim().to_owned());
    let message = parts.next().unwrap_or_default();
    let kind = match out.status.code() {
        Some(2 | 3) => Kind::Invalid,
        Some(6) => Kind::NotFound,
        _ => Kind::Internal,
    };
    Err(Refusal { kind, message, hints: parts.collect() }.into())
}
