//! What one tenant has, and what its requests come to.

use crate::Millis;
use crate::changes::Change;
use crate::datasets::{self, Datasets};
use crate::jobs::{JobState, Record};
use crate::names::{check_name, check_tag, valid_digest};
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::{Pushed, Pushing, Registry, Revision};
use crate::requests::{Answer, Request};
use serde::{Deserialize, Serialize};
use slackline_core::TenantId;
use std::collections::{BTreeMap, VecDeque};

/// Request ids that a tenant's state remembers: more than any client could have in flight.
const REMEMBERED: usize = 4096;
pub(crate) const MAX_REQUEST_ID: usize = 64;
/// Jobs that a tenant may have, over or not; each keeps its job file in memory.
const MAX_JOBS: usize = 10_000;
const MAX_TOML: usize = 256 << 10;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tenant {
    pub(crate) registry: Registry,
    pub(crate) datasets: Datasets,
    pub(crate) jobs: BTreeMap<String, Record>,
    /// The number that the next job gets; never given twice.
    pub(crate) next_job: u64,
    pub(crate) answered: BTreeMap<String, (String, Answer)>,
    /// Ids in `answered`, oldest first.
    order: VecDeque<String>,
}

impl Tenant {
    pub(crate) fn decide(
        &self,
        tenant: &TenantId,
        request: &Request,
        at: Millis,
    ) -> Result<(Vec<Change>, Answer), Refusal> {
        let tenant = tenant.clone();
        match request {
            Request::PushPlugin { name, tag, move_tag, digest, bytes } => {
                check_name("plugin", name)?;
                tag.as_deref().map_or(Ok(()), check_tag)?;
                check_digest(digest)?;
                let (name, tag, digest) = (name.clone(), tag.clone(), digest.clone());
                let pushing = Pushing { name, tag: tag.clone(), move_tag: *move_tag, digest, bytes: *bytes, at };
                let pushed: Pushed = self.registry.push(&pushing)?;
                let changes = match pushed.known && !pushed.tag_moved {
                    true => Vec::new(),
                    false => vec![Change::Revision { tenant, revision: pushed.revision.clone(), tag }],
                };
                Ok((changes, Answer::Pushed(pushed)))
            }
            Request::DeletePlugin { plugin } => {
                let doomed = self.registry.doomed(&plugin.parse()?)?;
                let user = self
                    .jobs
                    .values()
                    .find(|r| r.state != JobState::Done && doomed.iter().any(|d| d.digest == r.submission.digest));
                if let Some(job) = user {
                    return Err(Refusal::conflict(format!(
                        "{plugin} is used by job {}, which is {}",
                        job.id, job.state
                    ))
                    .hint("delete the job first"));
                }
                let gone =
                    |revision: &Revision| Change::RevisionGone { tenant: tenant.clone(), revision: revision.clone() };
                Ok((doomed.iter().map(gone).collect(), Answer::Removed(doomed)))
            }
            Request::PushDataset { dataset, replace } => {
                check_name("dataset", &dataset.name)?;
                check_name("data file", &dataset.file_name)?;
                check_digest(&dataset.digest)?;
                let known = datasets::known(&self.datasets, dataset, *replace)?;
                let change = || Change::Dataset { tenant, dataset: dataset.clone() };
                let changes = if known { Vec::new() } else { vec![change()] };
                Ok((changes, Answer::Kept { dataset: dataset.clone(), known }))
            }
            Request::DeleteDataset { name } => {
                let dataset = datasets::find(&self.datasets, name)?;
                let reads = |r: &&Record| {
                    r.state != JobState::Done && r.submission.datasets.iter().any(|d| d.digest == dataset.digest)
                };
                if let Some(job) = self.jobs.values().find(reads) {
                    return Err(Refusal::conflict(format!(
                        "dataset {name:?} is read by job {}, which is {}",
                        job.id, job.state
                    ))
                    .hint("delete the job first"));
                }
                Ok((vec![Change::DatasetGone { tenant, name: name.clone() }], Answer::Forgotten))
            }
            Request::Submit(submission) => {
                check_name("job", &submission.name)?;
                check_digest(&submission.digest)?;
                if submission.workers == 0 {
                    return Err(Refusal::invalid("a job needs at least one worker"));
                }
                if submission.toml.len() > MAX_TOML {
                    return Err(Refusal::new(
                        RefusalKind::TooBig,
                        format!("the job file has {} bytes, at most {MAX_TOML} are taken", submission.toml.len()),
                    ));
                }
                if self.jobs.len() >= MAX_JOBS {
                    return Err(Refusal::conflict(format!("there are {MAX_JOBS} jobs already"))
                        .hint("`slackline job delete` makes room"));
                }
                let job = format!("{}-{}", submission.name, self.next_job + 1);
                let submission = submission.clone();
                Ok((vec![Change::Submitted { tenant, job: job.clone(), submission, at }], Answer::Job(job)))
            }
            Request::Act { job, action } => {
                let record = self.find_job(job)?;
                let acts = record.allows(*action)?;
                let job = record.id.clone();
                let change = || Change::Acted { tenant, job: job.clone(), action: *action, at };
                Ok((if acts { vec![change()] } else { Vec::new() }, Answer::Job(record.id.clone())))
            }
        }
    }

    pub(crate) fn find_job(&self, text: &str) -> Result<&Record, Refusal> {
        if let Some(record) = self.jobs.get(text) {
            return Ok(record);
        }
        let named = || self.jobs.values().filter(|r| r.submission.name == text);
        let live: Vec<_> = named().filter(|r| !r.state.is_over()).collect();
        match live.as_slice() {
            [one] => Ok(one),
            [] => named().max_by_key(|r| r.number).ok_or_else(|| {
                Refusal::not_found(format!("there is no job {text:?}")).hint("`slackline job list --all` lists them")
            }),
            many => {
                let ids: Vec<_> = many.iter().map(|r| r.id.as_str()).collect();
                Err(Refusal::conflict(format!("{} jobs are named {text:?}", many.len()))
                    .hint(format!("say which: {}", ids.join(", "))))
            }
        }
    }

    pub(crate) fn remember(&mut self, id: &str, asked: &str, answer: &Answer) {
        if self.answered.insert(id.to_owned(), (asked.to_owned(), answer.clone())).is_none() {
            self.order.push_back(id.to_owned());
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.answered.remove(&oldest);
            }
        }
    }
}

fn check_digest(digest: &str) -> Result<(), Refusal> {
    match valid_digest(digest) {
        true => Ok(()),
        false => Err(Refusal::invalid(format!("{:?} is no digest", digest.chars().take(80).collect::<String>()))),
    }
}

/// What tells one request from another. `at` is not in it: a client that asks again asks later.
pub(crate) fn fingerprint(request: &Request) -> String {
    let mut request = request.clone();
    if let Request::PushDataset { dataset, .. } = &mut request {
        dataset.at = 0;
    }
    // Serialising a plain enum of strings and numbers cannot fail; were it to, two requests would only look alike.
    let text = serde_json::to_vec(&request).unwrap_or_default();
    blake3::hash(&text).to_hex().to_string()
}
