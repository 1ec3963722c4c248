//! The state of the whole cluster, its decisions, and where jobs are to run.

use crate::Millis;
use crate::changes::{Change, Decision};
use crate::datasets::{self, Dataset, Datasets};
use crate::jobs::{Action, JobState, Outcome, Record, Start};
use crate::names::check_name;
use crate::processes::{Process, Processes};
use crate::refusal::Refusal;
use crate::registry::{PluginName, Registry, Revision};
use crate::requests::{Answer, Request};
use crate::tenant::{MAX_REQUEST_ID, Tenant, fingerprint};
use serde::{Deserialize, Serialize};
use slackline_core::TenantId;
use std::collections::BTreeMap;

/// The coordinator's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    tenants: BTreeMap<String, Tenant>,
    #[serde(skip)]
    processes: Processes,
}

impl Control {
    /// What `request` comes to for `tenant`.
    pub fn decide(&self, tenant: &TenantId, id: &str, request: &Request, at: Millis) -> Result<Decision, Refusal> {
        if id.is_empty() || id.len() > MAX_REQUEST_ID {
            return Err(Refusal::invalid(format!("a request id has 1 to {MAX_REQUEST_ID} bytes, not {}", id.len())));
        }
        let empty = Tenant::default();
        let mine = self.tenants.get(tenant.as_str()).unwrap_or(&empty);
        let asked = fingerprint(request);
        if let Some((before, answer)) = mine.answered.get(id) {
            if *before != asked {
                return Err(Refusal::conflict(format!("request id {id:?} has asked for something else before")));
            }
            return Ok(Decision { changes: Vec::new(), answer: answer.clone() });
        }
        let (mut changes, answer) = mine.decide(tenant, request, at)?;
        changes.push(Change::Answered { tenant: tenant.clone(), id: id.to_owned(), asked, answer: answer.clone() });
        Ok(Decision { changes, answer })
    }

    /// What a request with this id was answered, if there was one.
    pub fn answered(&self, tenant: &TenantId, id: &str) -> Option<&Answer> {
        self.tenants.get(tenant.as_str())?.answered.get(id).map(|(_, answer)| answer)
    }

    /// The changes that `outcome` of a job's attempt comes to: none when another attempt has begun, or none runs.
    pub fn observe(&self, job: (&TenantId, &str), attempt: u32, outcome: Outcome, at: Millis) -> Option<Change> {
        let (tenant, id) = job;
        let record = self.job(tenant, id).filter(|r| r.state.is_placed() && r.attempt == attempt)?;
        Some(Change::Ended {
            tenant: tenant.clone(),
            job: id.to_owned(),
            attempt,
            outcome,
            clock: record.clock,
            metrics: record.metrics.iter().filter(|(_, v)| v.is_finite()).map(|(k, v)| (k.clone(), *v)).collect(),
            at,
        })
    }

    /// A line for a job's history.
    pub fn note(&self, job: (&TenantId, &str), what: impl Into<String>, at: Millis) -> Option<Change> {
        self.job(job.0, job.1)?;
        Some(Change::Noted { tenant: job.0.clone(), job: job.1.to_owned(), what: what.into(), at })
    }

    /// Takes a change that is durable.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Answered { tenant, id, asked, answer } => {
                self.tenant(tenant).remember(id, asked, answer);
            }
            Change::Revision { tenant, revision, tag } => self.tenant(tenant).registry.put(revision, tag.as_deref()),
            Change::RevisionGone { tenant, revision } => self.tenant(tenant).registry.remove(revision),
            Change::Dataset { tenant, dataset } => {
                self.tenant(tenant).datasets.insert(dataset.name.clone(), dataset.clone());
            }
            Change::DatasetGone { tenant, name } => {
                self.tenant(tenant).datasets.remove(name);
            }
            Change::Submitted { tenant, job, submission, at } => {
                let tenant = self.tenant(tenant);
                tenant.next_job += 1;
                let record = Record::new(job.clone(), tenant.next_job, submission.clone(), *at);
                tenant.jobs.insert(job.clone(), record);
            }
            Change::Acted { tenant, job, action: Action::Delete, .. } => {
                self.tenant(tenant).jobs.remove(job);
            }
            Change::Acted { tenant, job, action, at } => self.with(tenant, job, |r| r.act(*action, *at)),
            Change::Started { tenant, job, attempt, process, at } => {
                self.with(tenant, job, |r| r.start(process, *attempt, *at));
            }
            Change::Ended { tenant, job, attempt, outcome, clock, metrics, at } => {
                self.with(tenant, job, |r| {
                    if r.attempt == *attempt && r.state.is_placed() {
                        r.end(outcome, *clock, metrics, *at);
                    }
                });
            }
            Change::Noted { tenant, job, what, at } => self.with(tenant, job, |r| r.note(what.clone(), *at)),
        }
    }

    /// What a running job says of itself. Not durable: the end of the attempt is.
    pub fn progress(&mut self, job: (&TenantId, &str), attempt: u32, clock: u32, metrics: &BTreeMap<String, f64>) {
        self.with(job.0, job.1, |r| {
            if r.attempt == attempt && r.state.is_placed() {
                r.clock = r.clock.max(clock);
                r.metrics.extend(metrics.iter().map(|(k, v)| (k.clone(), *v)));
            }
        });
    }

    /// A host process is there. Jobs that the state says it runs are its own affair: it reports how they ended.
    pub fn join(&mut self, process: Process) -> Result<(), Refusal> {
        check_name("host process", &process.name)?;
        self.processes.insert(process.name.clone(), process);
        Ok(())
    }

    /// A host process is gone; the changes that this comes to for its jobs.
    pub fn leave(&mut self, name: &str, at: Millis) -> Vec<Change> {
        self.processes.remove(name);
        self.lost(|process| process == name, &format!("host process {name} left"), at)
    }

    /// After a restart: jobs that ran when the coordinator ended, on processes that `known` does not know any more.
    pub fn lost(&self, gone: impl Fn(&str) -> bool, why: &str, at: Millis) -> Vec<Change> {
        let placed = self.jobs().filter(|(_, r)| r.state.is_placed() && r.process.as_deref().is_none_or(&gone));
        placed.filter_map(|(t, r)| self.observe((&t, &r.id), r.attempt, Outcome::Gone(why.to_owned()), at)).collect()
    }

    /// The starts that should happen now, in the order of the queue. A job whose cuts lie on a process waits for that
    /// one; one that has none takes the process with most free slots. The first that could run some day and must wait
    /// keeps those behind it from its process, or a wide job would never find room.
    pub fn place(&self) -> Vec<(TenantId, Start)> {
        let mut free: BTreeMap<&str, u32> =
            self.workers().map(|p| (p.name.as_str(), p.slots.saturating_sub(self.used(&p.name)))).collect();
        let mut queued: Vec<_> = self.jobs().filter(|(_, r)| r.state == JobState::Queued).collect();
        queued.sort_by_key(|(_, r)| (r.submitted, r.number));
        let mut starts = Vec::new();
        for (tenant, record) in queued {
            let need = record.submission.workers;
            let home = record.process.as_deref();
            let candidates = free.iter().filter(|(name, _)| home.is_none_or(|h| h == **name));
            let Some((&name, &room)) = candidates.max_by_key(|(name, free)| (**free, std::cmp::Reverse(**name))) else {
                continue;
            };
            if room >= need {
                free.insert(name, room - need);
                let start = Start { job: record.id.clone(), attempt: record.attempt + 1, process: name.to_owned() };
                starts.push((tenant, start));
            } else if self.processes.get(name).is_some_and(|p| p.slots >= need) {
                free.insert(name, 0);
            }
        }
        starts
    }

    /// The change that makes a start count.
    pub fn started(&self, tenant: &TenantId, start: &Start, at: Millis) -> Change {
        let Start { job, attempt, process } = start.clone();
        Change::Started { tenant: tenant.clone(), job, attempt, process, at }
    }

    /// Why a queued job does not run yet, in words.
    pub fn waits_for(&self, record: &Record) -> Option<String> {
        if record.state != JobState::Queued {
            return None;
        }
        let need = record.submission.workers;
        let home = record.process.as_deref();
        let fitting: Vec<_> = self.workers().filter(|p| home.is_none_or(|h| h == p.name)).collect();
        Some(match (fitting.iter().map(|p| p.slots).max(), home) {
            (None, Some(home)) => format!("its cuts are on host process {home}, which is not here"),
            (None, None) => "no host process runs workers".to_owned(),
            (Some(most), _) if most < need => {
                format!("needs {need} worker slots, and the largest host process that it can run on has {most}")
            }
            _ => format!("waits for {need} free worker slots"),
        })
    }

    /// The host processes.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// Slots of a process that are taken.
    pub fn used(&self, process: &str) -> u32 {
        let here = self.jobs().filter(|(_, r)| r.state.is_placed() && r.process.as_deref() == Some(process));
        here.map(|(_, r)| r.submission.workers).sum()
    }

    /// A tenant's plugins.
    pub fn registry(&self, tenant: &TenantId) -> Option<&Registry> {
        self.tenants.get(tenant.as_str()).map(|t| &t.registry)
    }

    /// The revision that a name stands for.
    pub fn plugin(&self, tenant: &TenantId, name: &PluginName) -> Result<&Revision, Refusal> {
        match self.registry(tenant) {
            Some(registry) => registry.find(name),
            None => Err(Refusal::not_found(format!("there is no plugin {name} in the registry"))
                .hint("`slackline plugin push FILE --name NAME` puts one there")),
        }
    }

    /// A tenant's datasets.
    pub fn datasets(&self, tenant: &TenantId) -> impl Iterator<Item = &Dataset> {
        self.tenants.get(tenant.as_str()).into_iter().flat_map(|t| t.datasets.values())
    }

    /// One dataset.
    pub fn dataset(&self, tenant: &TenantId, name: &str) -> Result<&Dataset, Refusal> {
        static NONE: Datasets = Datasets::new();
        datasets::find(self.tenants.get(tenant.as_str()).map_or(&NONE, |t| &t.datasets), name)
    }

    /// A job by its id.
    pub fn job(&self, tenant: &TenantId, id: &str) -> Option<&Record> {
        self.tenants.get(tenant.as_str())?.jobs.get(id)
    }

    /// A job by its id, or by a name that one job has which is not over, or else by the newest of that name.
    pub fn find_job(&self, tenant: &TenantId, text: &str) -> Result<&Record, Refusal> {
        let empty =
            || Refusal::not_found(format!("there is no job {text:?}")).hint("`slackline job list --all` lists them");
        self.tenants.get(tenant.as_str()).ok_or_else(empty)?.find_job(text)
    }

    /// A tenant's jobs, oldest first.
    pub fn jobs_of(&self, tenant: &TenantId) -> Vec<&Record> {
        let mut jobs: Vec<_> = self.tenants.get(tenant.as_str()).into_iter().flat_map(|t| t.jobs.values()).collect();
        jobs.sort_by_key(|r| r.number);
        jobs
    }

    /// All jobs.
    pub fn jobs(&self) -> impl Iterator<Item = (TenantId, &Record)> {
        self.tenants.iter().flat_map(|(t, tenant)| tenant.jobs.values().map(|r| (TenantId::new(t), r)))
    }

    /// Whether bytes with this digest are still needed: by a revision, a dataset, or a job that could go on.
    pub fn needs_blob(&self, digest: &str) -> bool {
        self.tenants.values().any(|t| {
            t.registry.revisions().any(|r| r.digest == digest)
                || t.datasets.values().any(|d| d.digest == digest)
                || t.jobs
                    .values()
                    .any(|r| r.submission.digest == digest || r.submission.datasets.iter().any(|d| d.digest == digest))
        })
    }

    fn workers(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|p| p.roles.iter().any(|r| r == "worker"))
    }

    fn tenant(&mut self, id: &TenantId) -> &mut Tenant {
        self.tenants.entry(id.as_str().to_owned()).or_default()
    }

    fn with(&mut self, tenant: &TenantId, job: &str, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.tenants.get_mut(tenant.as_str()).and_then(|t| t.jobs.get_mut(job)) {
            change(record);
        }
    }
}
