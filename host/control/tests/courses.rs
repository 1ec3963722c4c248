//! Seeded courses of events over the real state machine, with an independent account of what must hold, and mutants
//! that it must catch. A failure names its seed: `COURSE=seed cargo test --release -p slackline-control course`.

use slackline_control::*;
use slackline_core::TenantId;
use std::collections::{BTreeMap, BTreeSet};

const COURSES: u64 = 1_000;
const STEPS: usize = 150;

/// Ways to get it wrong, each of which the account must notice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutant {
    None,
    /// Forgets that a request id was seen.
    ForgetsRequests,
    /// Counts more slots than there are.
    OverfillsProcesses,
    /// Lets a report of an earlier attempt end the current one.
    BelievesLateReports,
    /// Loses a change before it is durable.
    LosesAChange,
    /// Lets every tag move.
    MovesTags,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len() as u64) as usize].clone())
    }
}

/// The driver under test, and the account beside it.
struct Course {
    mutant: Mutant,
    dice: Dice,
    control: Control,
    /// What was made durable.
    ledger: Vec<Change>,
    now: Millis,
    requests: u64,
    /// Requests that may be sent again, with what they were answered.
    answered: Vec<(TenantId, String, Request, Answer)>,
    /// Attempts that run: (tenant, job, attempt) to process.
    running: BTreeMap<(TenantId, String, u32), String>,
    /// Attempts that have ended, of which late reports may come.
    ended: Vec<(TenantId, String, u32)>,
    slots: BTreeMap<String, u32>,
    /// Where a tag pointed when it was last asked for, by the account.
    tags: BTreeMap<(TenantId, String, String), u32>,
    faults: Vec<String>,
}

fn digest(n: u64) -> String {
    format!("blake3:{n:064x}")
}

impl Course {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let mut course = Self {
            mutant,
            dice: Dice(seed),
            control: Control::default(),
            ledger: Vec::new(),
            now: 1,
            requests: 0,
            answered: Vec::new(),
            running: BTreeMap::new(),
            ended: Vec::new(),
            slots: BTreeMap::new(),
            tags: BTreeMap::new(),
            faults: Vec::new(),
        };
        course.join("a", 4);
        course
    }

    fn join(&mut self, name: &str, slots: u32) {
        let told = if self.mutant == Mutant::OverfillsProcesses { slots * 2 } else { slots };
        let roles = vec!["worker".to_owned()];
        let process = Process { name: name.into(), roles, slots: told, joined: self.now, version: "0".into() };
        self.control.join(process).expect("a plain name");
        self.slots.insert(name.to_owned(), slots);
    }

    fn commit(&mut self, changes: Vec<Change>) {
        for change in changes {
            self.control.apply(&change);
            let lost = self.mutant == Mutant::LosesAChange && self.dice.below(40) == 0;
            if !lost {
                self.ledger.push(change);
            }
        }
    }

    fn ask(&mut self, tenant: &TenantId, id: &str, mut request: Request) -> Result<Answer, Refusal> {
        let asked = request.clone();
        if let (Mutant::MovesTags, Request::PushPlugin { move_tag, .. }) = (self.mutant, &mut request) {
            *move_tag = true;
        }
        let fresh = format!("{id}-{}", self.now);
        let id_used = if self.mutant == Mutant::ForgetsRequests { &fresh } else { id };
        let decision = self.control.decide(tenant, id_used, &request, self.now)?;
        self.commit(decision.changes);
        self.answered.push((tenant.clone(), id.to_owned(), asked, decision.answer.clone()));
        Ok(decision.answer)
    }

    fn step(&mut self) {
        self.now += 1 + self.dice.below(50);
        let tenant = TenantId::new(if self.dice.below(2) == 0 { "default" } else { "other" });
        match self.dice.below(20) {
            0..=3 => self.push(&tenant),
            4 => {
                let plugin = format!("p{}", self.dice.below(3));
                self.requests += 1;
                let id = format!("r{}", self.requests);
                self.delete_plugin(&tenant, &id, &plugin);
            }
            5..=7 => self.submit(&tenant),
            8..=11 => self.act(&tenant),
            12 => self.repeat(),
            13 => self.restart(),
            14 => self.process_comes_or_goes(),
            15 => self.late_report(),
            _ => self.end_or_progress(),
        }
        for (tenant, start) in self.control.place() {
            let change = self.control.started(&tenant, &start, self.now);
            self.commit(vec![change]);
            let key = (tenant, start.job, start.attempt);
            if self.running.insert(key.clone(), start.process).is_some() {
                self.faults.push(format!("{key:?} was started twice"));
            }
        }
        self.check();
    }

    fn push(&mut self, tenant: &TenantId) {
        let (name, bytes) = (format!("p{}", self.dice.below(3)), self.dice.below(6));
        let tag = (self.dice.below(2) == 0).then(|| "stable".to_owned());
        let move_tag = self.dice.below(3) == 0;
        self.requests += 1;
        let request =
            Request::PushPlugin { name: name.clone(), tag: tag.clone(), move_tag, digest: digest(bytes), bytes };
        let Ok(Answer::Pushed(pushed)) = self.ask(tenant, &format!("r{}", self.requests), request) else { return };
        if let Some(tag) = tag {
            let key = (tenant.clone(), name, tag);
            let before = self.tags.insert(key.clone(), pushed.revision.number);
            if before.is_some_and(|b| b != pushed.revision.number && !move_tag) {
                self.faults.push(format!("tag {key:?} moved unasked"));
            }
        }
    }

    fn delete_plugin(&mut self, tenant: &TenantId, id: &str, plugin: &str) {
        if let Ok(Answer::Removed(gone)) = self.ask(tenant, id, Request::DeletePlugin { plugin: plugin.to_owned() }) {
            self.tags
                .retain(|(t, name, _), n| t != tenant || !gone.iter().any(|r| r.plugin == *name && r.number == *n));
        }
    }

    fn submit(&mut self, tenant: &TenantId) {
        let workers = 1 + self.dice.below(5) as u32;
        self.requests += 1;
        let submission = Submission {
            name: format!("j{}", self.dice.below(3)),
            toml: String::new(),
            plugin: "p0".into(),
            digest: digest(self.dice.below(6)),
            revision: 1,
            workers,
            max_clocks: Some(5),
            datasets: Vec::new(),
        };
        let _ = self.ask(tenant, &format!("r{}", self.requests), Request::Submit(submission));
    }

    fn act(&mut self, tenant: &TenantId) {
        let ids: Vec<String> = self.control.jobs_of(tenant).iter().map(|r| r.id.clone()).collect();
        let Some(job) = self.dice.of(&ids) else { return };
        let action = [Action::Stop, Action::Pause, Action::Resume, Action::Resume, Action::Delete];
        let action = action[self.dice.below(5) as usize];
        self.requests += 1;
        let _ = self.ask(tenant, &format!("r{}", self.requests), Request::Act { job, action });
    }

    /// A client that has lost its answer asks again.
    fn repeat(&mut self) {
        let recent: Vec<_> = self.answered.iter().rev().take(20).cloned().collect();
        let Some((tenant, id, request, answer)) = self.dice.of(&recent) else { return };
        let before = self.control.clone();
        let again = self.ask(&tenant, &id, request.clone());
        if again.as_ref() != Ok(&answer) || self.control != before {
            self.faults.push(format!("{request:?} asked again: {again:?} after {answer:?}"));
        }
        let other = Request::DeleteDataset { name: "never".into() };
        if self.control.decide(&tenant, &id, &other, self.now).is_ok() {
            self.faults.push(format!("request id {id} asked for two things"));
        }
    }

    /// The coordinator is killed and comes back with what is durable.
    fn restart(&mut self) {
        let mut replayed = Control::default();
        self.ledger.iter().for_each(|c| replayed.apply(c));
        let text = serde_json::to_string(&replayed).expect("a state is plain data");
        let from_snapshot: Control = serde_json::from_str(&text).expect("what was written is read");
        if from_snapshot != replayed {
            self.faults.push("a snapshot is not the state that it was made of".into());
        }
        let (mut live, mut back) = (self.control.clone(), replayed.clone());
        for control in [&mut live, &mut back] {
            // Progress is told anew after a restart.
            let placed: Vec<_> = control
                .jobs()
                .filter(|(_, r)| r.state.is_placed())
                .map(|(t, r)| (t, r.id.clone(), r.attempt))
                .collect();
            for (t, id, attempt) in placed {
                control.progress((&t, &id), attempt, 1000, &BTreeMap::from([("loss".to_owned(), 0.0)]));
            }
            for name in self.slots.keys() {
                control.leave(name, 0);
            }
        }
        if live != back {
            self.faults.push("replaying the ledger gives another state".into());
        }
        let names: Vec<_> = self.slots.clone().into_iter().collect();
        self.control = replayed;
        for (name, slots) in names {
            self.join(&name, slots);
        }
        // Its children are gone with it, as the binary arranges.
        let lost = self.control.lost(|_| true, "the coordinator was restarted", self.now);
        self.commit(lost);
        self.ended.extend(std::mem::take(&mut self.running).into_keys());
    }

    fn process_comes_or_goes(&mut self) {
        let name = ["a", "b", "c"][self.dice.below(3) as usize];
        if self.slots.remove(name).is_some() {
            let changes = self.control.leave(name, self.now);
            self.commit(changes);
            let gone: Vec<_> = self.running.iter().filter(|(_, p)| *p == name).map(|(k, _)| k.clone()).collect();
            for key in gone {
                self.running.remove(&key);
                self.ended.push(key);
            }
        } else {
            let slots = 2 + self.dice.below(4) as u32;
            self.join(name, slots);
        }
    }

    /// Word of an attempt that is long over.
    fn late_report(&mut self) {
        let Some((tenant, job, attempt)) = self.dice.of(&self.ended.clone()) else { return };
        let current = self.control.job(&tenant, &job).map_or(attempt, |r| r.attempt);
        let said = if self.mutant == Mutant::BelievesLateReports { current } else { attempt };
        let before = self.control.clone();
        self.control.progress((&tenant, &job), said, 99, &BTreeMap::new());
        if let Some(change) = self.control.observe((&tenant, &job), said, Outcome::Done(None), self.now) {
            self.commit(vec![change]);
        }
        if self.control != before {
            self.faults.push(format!("a late report of {job} attempt {attempt} changed the state"));
        }
    }

    fn end_or_progress(&mut self) {
        let keys: Vec<_> = self.running.keys().cloned().collect();
        let Some((tenant, job, attempt)) = self.dice.of(&keys) else { return };
        let Some(record) = self.control.job(&tenant, &job) else {
            self.faults.push(format!("{job} is gone and runs"));
            return;
        };
        let (clock, ending) = (record.clock, record.state == JobState::Ending);
        let outcome = match self.dice.below(6) {
            0 => Outcome::Done(None),
            1 => Outcome::Failed("trap".into()),
            2 => Outcome::Lost("signal 9".into()),
            3 if ending => Outcome::Interrupted,
            _ => {
                let metrics = BTreeMap::from([("loss".to_owned(), 1.0)]);
                return self.control.progress((&tenant, &job), attempt, clock + 1, &metrics);
            }
        };
        match self.control.observe((&tenant, &job), attempt, outcome, self.now) {
            Some(change) => self.commit(vec![change]),
            None => self.faults.push(format!("the end of {job} attempt {attempt} was not believed")),
        }
        let key = (tenant, job, attempt);
        self.running.remove(&key);
        self.ended.push(key);
    }

    fn check(&mut self) {
        let placed: BTreeSet<_> = self
            .control
            .jobs()
            .filter(|(_, r)| r.state.is_placed())
            .map(|(t, r)| (t, r.id.clone(), r.attempt))
            .collect();
        let running: BTreeSet<_> = self.running.keys().cloned().collect();
        if placed != running {
            self.faults.push(format!("the state says that {placed:?} run, and {running:?} do"));
        }
        for (name, slots) in &self.slots {
            let here = self.running.iter().filter(|(_, p)| *p == name);
            let used: u32 =
                here.filter_map(|((t, j, _), _)| self.control.job(t, j)).map(|r| r.submission.workers).sum();
            if used > *slots {
                self.faults.push(format!("{used} workers on {name}, which has {slots} slots"));
            }
        }
        let ids: BTreeSet<_> = self.control.jobs().map(|(t, r)| (t, r.number)).collect();
        if ids.len() != self.control.jobs().count() {
            self.faults.push("two jobs have one number".into());
        }
    }

    /// With everything calm and room for all, every job that is not held ends.
    fn settle(&mut self) {
        for name in ["a", "b", "c"] {
            if !self.slots.contains_key(name) {
                self.join(name, 6);
            }
        }
        for _ in 0..2_000 {
            for (tenant, start) in self.control.place() {
                let change = self.control.started(&tenant, &start, self.now);
                self.commit(vec![change]);
                self.running.insert((tenant, start.job, start.attempt), start.process);
            }
            let Some(key) = self.running.keys().next().cloned() else { break };
            let (tenant, job, attempt) = key.clone();
            let ending = self.control.job(&tenant, &job).is_some_and(|r| r.state == JobState::Ending);
            let outcome = if ending { Outcome::Interrupted } else { Outcome::Done(None) };
            let change = self.control.observe((&tenant, &job), attempt, outcome, self.now);
            self.commit(change.into_iter().collect());
            self.running.remove(&key);
        }
        let most = self.slots.values().max().copied().unwrap_or(0);
        let stuck: Vec<_> = self.control.jobs().filter(|(_, r)| r.state == JobState::Queued).collect();
        for (_, record) in stuck {
            let home = record.process.as_ref().and_then(|p| self.slots.get(p)).copied().unwrap_or(most);
            if record.submission.workers <= home {
                self.faults.push(format!("job {} waits for ever: {:?}", record.id, self.control.waits_for(record)));
            }
        }
    }
}

fn run(seed: u64, mutant: Mutant) -> Vec<String> {
    let mut course = Course::new(seed, mutant);
    for _ in 0..STEPS {
        course.step();
        if !course.faults.is_empty() {
            return course.faults;
        }
    }
    course.restart();
    course.settle();
    course.faults
}

#[test]
fn every_course_of_events_keeps_the_account() {
    let only = std::env::var("COURSE").ok().map(|s| s.parse::<u64>().expect("COURSE is a seed"));
    for seed in only.map_or(0..COURSES, |s| s..s + 1) {
        let faults = run(seed, Mutant::None);
        assert!(faults.is_empty(), "COURSE={seed}: {}", faults.join("; "));
    }
}

#[test]
fn every_mutant_is_caught() {
    use Mutant::*;
    for mutant in [ForgetsRequests, OverfillsProcesses, BelievesLateReports, LosesAChange, MovesTags] {
        assert!((0..300).any(|seed| !run(seed, mutant).is_empty()), "{mutant:?} was not caught");
    }
}
