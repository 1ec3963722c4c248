//! Runs one schedule: workers, shards and the network in one thread, with manual time.

use crate::checker::{Checker, Clause, Violation};
use crate::dice::Dice;
use crate::eager::Eager;
use crate::ledger::Ledger;
use crate::mutant::{Door, Mutant};
use crate::network::{Event, Network};
use crate::plan::Plan;
use crate::port::{Port, Shards};
use crate::worker::{ScriptedWorker, Step};
use slackline_core::messages::{ToShard, ToWorker};
use slackline_core::{Clock, Model, SealedPart, ShardId, WorkerId};
use slackline_server::{Output, Received, Shard, ShardConfig, TableSnapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More events than any plan needs: a schedule that gets here goes in circles.
const MOST_EVENTS: u64 = 100_000;

/// How long a mutant lets clock records travel ahead of the data.
const AHEAD: u64 = 25;

/// How much of each thing a run had in it: a check of what never happens would say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps that had to wait for a gate or for rows.
    pub waits: u64,
    /// Parts sent ahead of a tick.
    pub early: u64,
    /// Parts that a shard had before.
    pub repeated: u64,
    /// Rows that were pushed.
    pub pushed: u64,
    /// Rows that a cache let go.
    pub evicted: u64,
    /// Cuts that shards took.
    pub cuts: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Tally) {
        self.waits += other.waits;
        self.early += other.early;
        self.repeated += other.repeated;
        self.pushed += other.pushed;
        self.evicted += other.evicted;
        self.cuts += other.cuts;
    }
}

/// What a run left behind.
pub struct Outcome {
    /// What did not hold, in the order in which it was seen.
    pub violations: Vec<Violation>,
    /// Cuts that every shard took: by clock, by shard, by table.
    pub cuts: BTreeMap<Clock, Vec<Vec<TableSnapshot>>>,
    /// Every part that was sent.
    pub parts: Vec<(ShardId, SealedPart)>,
    /// What it had in it.
    pub tally: Tally,
}

/// What a run begins with, when it does not begin at the beginning.
pub struct Restart {
    /// By shard, by table.
    pub snapshots: Vec<Vec<TableSnapshot>>,
    /// Parts that are in the snapshots and come again.
    pub stale: Vec<(ShardId, SealedPart)>,
}

struct Sim<'p> {
    plan: &'p Plan,
    mutant: Option<Mutant>,
    dice: Dice,
    network: Network,
    shards: Arc<Shards>,
    door: Door,
    workers: Vec<ScriptedWorker>,
    blocked: Vec<bool>,
    checker: Checker<'p>,
    eager: Eager<'p>,
    parts: Vec<(ShardId, SealedPart)>,
    cuts: BTreeMap<Clock, BTreeMap<ShardId, Vec<TableSnapshot>>>,
    /// By shard, by worker: clocks whose last part has come to the door.
    arrived: Vec<Vec<Clock>>,
    tally: Tally,
}

/// Runs `plan` with the faults of `mutant`, from its beginning or from a cut.
pub fn run(plan: &Plan, ledger: &Ledger, mutant: Option<Mutant>, restart: Option<Restart>) -> Outcome {
    let (snapshots, stale) = restart.map_or((None, Vec::new()), |r| (Some(r.snapshots), r.stale));
    let config = |id| ShardConfig {
        id: ShardId(id),
        shards: plan.shards,
        tables: plan.tables.clone(),
        workers: plan.workers(),
        consistency: Mutant::of_shards(mutant, plan.consistency),
        seed: plan.seed,
        start: plan.start,
    };
    let shards: Vec<Shard> = match snapshots {
        None => (0..plan.shards).map(|s| Shard::new(config(s))).collect(),
        Some(all) => (0..).zip(all).filter_map(|(s, tables)| Shard::restore(config(s), tables)).collect(),
    };
    assert_eq!(shards.len(), plan.shards as usize, "a cut fits the shards that it was split for");
    let shards = Arc::new(Shards::new(shards));
    let consistency = Mutant::of_workers(mutant, plan.consistency);
    let worker = |w| ScriptedWorker::new(WorkerId(w), plan, consistency, &shards, Port::new(shards.clone(), mutant));
    let in_order = mutant != Some(Mutant::ArrivalOrder);
    let stream = u64::from(plan.start);
    let dice = Dice::new(plan.seed, 100 + stream);
    let mut sim = Sim {
        plan,
        mutant,
        network: Network::new(plan.workers(), plan.shards, plan.weather, Dice::new(plan.seed, 50 + stream), in_order),
        dice,
        door: Door::new(mutant),
        workers: (0..plan.workers()).map(worker).collect(),
        blocked: vec![false; plan.scripts.len()],
        checker: Checker::new(plan, ledger),
        eager: Eager::new(plan),
        parts: Vec::new(),
        cuts: BTreeMap::new(),
        arrived: vec![vec![plan.start; plan.scripts.len()]; plan.shards as usize],
        shards,
        tally: Tally::default(),
    };
    sim.play(stale);
    let cuts = sim.cuts.into_iter().map(|(at, shards)| (at, shards.into_values().collect())).collect();
    Outcome { violations: sim.checker.into_violations(), cuts, parts: sim.parts, tally: sim.tally }
}

impl Sim<'_> {
    fn play(&mut self, stale: Vec<(ShardId, SealedPart)>) {
        let first_cut = self.plan.cuts_after(self.plan.start).next();
        for id in self.ids() {
            if let (Some(at), true) = (first_cut, self.mutant != Some(Mutant::CutWithoutHolding)) {
                let mut out = Vec::new();
                self.shards.shard(id).request_cut(at, &mut out);
                self.outputs(id, out);
            }
        }
        for (shard, part) in stale {
            self.network.send_to_shard(part.worker, shard, ToShard::Part(part));
        }
        for w in 0..self.plan.workers() {
            self.network.after(self.dice.within(0, self.plan.weather.think), Event::Step(WorkerId(w)));
        }
        let mut events = 0;
        while let Some(event) = self.network.next() {
            events += 1;
            self.checker.set_now(self.network.now());
            self.shards.set_now(self.network.now());
            if events > MOST_EVENTS {
                self.checker.violated(Clause::Liveness, "it goes in circles".into());
            }
            if events > MOST_EVENTS || self.checker.is_full() {
                return;
            }
            self.happen(event);
        }
        self.finish();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(worker) => self.step(worker),
            Event::AtShard(from, at, packet) => {
                for message in self.network.arrived_at_shard(from, at, packet) {
                    self.come_to_door(from, at, message);
                }
            }
            Event::Inside(from, at, message) => self.enter(from, at, message),
            Event::AtWorker(from, at, packet) => {
                for message in self.network.arrived_at_worker(from, at, packet) {
                    self.eager.worker_takes(at, &message);
                    self.workers[at.index()].receive(from, message);
                }
                self.wake(at);
            }
            Event::Release(shard, next) => {
                let mut out = Vec::new();
                self.shards.shard(shard).release_cut(next, &mut out);
                self.outputs(shard, out);
            }
        }
    }

    fn step(&mut self, worker: WorkerId) {
        let mut out = Vec::new();
        let step = self.workers[worker.index()].step(self.plan, &mut out, &mut self.checker);
        for (shard, message) in out {
            self.eager.worker_sends(worker, &message, &mut self.checker);
            if let ToShard::Unsubscribe { rows, .. } = &message {
                self.tally.evicted += rows.len() as u64;
            }
            if let ToShard::Part(part) = &message {
                self.tally.early += u64::from(!part.last);
                // Blocks that nobody keeps are taken back by their logs: leave that way open in some schedules.
                if self.plan.weather.resends > 0 || self.plan.cut_every.is_some() {
                    self.parts.push((shard, part.clone()));
                }
            }
            self.network.send_to_shard(worker, shard, message);
        }
        if self.dice.chance(self.plan.weather.resends) {
            self.send_again(worker);
        }
        match step {
            Step::Done => self.network.after(self.dice.within(0, self.plan.weather.think), Event::Step(worker)),
            Step::Blocked => {
                self.tally.waits += 1;
                self.blocked[worker.index()] = true;
            }
            Step::Finished => {}
        }
    }

    /// A worker that connects anew sends what it is not sure of.
    fn send_again(&mut self, worker: WorkerId) {
        let own: Vec<_> = self.parts.iter().filter(|(_, part)| part.worker == worker).collect();
        if !own.is_empty() {
            let (shard, part) = self.dice.pick(&own).clone();
            self.network.send_to_shard(worker, shard, ToShard::Part(part));
        }
    }

    fn wake(&mut self, worker: WorkerId) {
        if std::mem::take(&mut self.blocked[worker.index()]) {
            self.network.after(0, Event::Step(worker));
        }
    }

    fn come_to_door(&mut self, from: WorkerId, at: ShardId, message: ToShard) {
        if self.mutant != Some(Mutant::ClockBeforeData) {
            return self.enter(from, at, message);
        }
        if let ToShard::Part(part) = &message {
            let arrived = &mut self.arrived[at.index()];
            arrived[from.index()] = arrived[from.index()].max(part.key.clock + Clock::from(part.last));
            let min = arrived.iter().min().copied().unwrap_or_default();
            if min > self.shards.min_clock(at) {
                self.shards.announce(at, min);
                self.outputs(at, vec![Output::MinClock(min)]);
            }
        }
        self.network.after(AHEAD, Event::Inside(from, at, message));
    }

    fn enter(&mut self, from: WorkerId, at: ShardId, message: ToShard) {
        let Some(message) = self.door.enter(from, at, message) else { return };
        self.eager.shard_takes(at, from, &message);
        let asks = matches!(message, ToShard::Read { .. });
        let mut out = Vec::new();
        let received = self.shards.shard(at).receive(from, message, &mut out);
        if received == Received::Refused {
            self.checker.violated(Clause::Liveness, format!("shard {at} refuses a sound message of worker {from}"));
        }
        self.tally.repeated += u64::from(received == Received::Repeated);
        let answered = out.iter().any(|o| matches!(o, Output::Send(to, ToWorker::Rows(_)) if *to == from));
        if asks && !answered && self.plan.consistency.model == Model::Async {
            self.checker.violated(Clause::C7, format!("worker {from} has to wait for rows of shard {at}"));
        }
        self.outputs(at, out);
    }

    fn outputs(&mut self, id: ShardId, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send(to, mut message) => {
                    Mutant::outgoing(self.mutant, &mut message);
                    self.check_sent(id, to, &message);
                    if self.workers[to.index()].is_cached() {
                        self.network.send_to_worker(id, to, message);
                    }
                }
                Output::MinClock(min) => {
                    self.checker.clock_shown(id, &self.shards.shard(id), min);
                    let without_holding = self.mutant == Some(Mutant::CutWithoutHolding);
                    if without_holding && self.plan.cuts_after(self.plan.start).any(|at| at == min) {
                        self.take_cut(id, min);
                    }
                    for w in (0..self.plan.workers()).map(WorkerId) {
                        if !self.workers[w.index()].is_cached() {
                            self.wake(w);
                        }
                    }
                }
                Output::CutDue(at) => {
                    self.take_cut(id, at);
                    let next = self.plan.cuts_after(at).next();
                    let delay = self.dice.within(0, 3 * self.plan.weather.delay);
                    self.network.after(delay, Event::Release(id, next));
                }
            }
        }
    }

    fn take_cut(&mut self, id: ShardId, at: Clock) {
        let snapshots = self.shards.shard(id).snapshot();
        self.checker.cut(id, at, &snapshots);
        self.tally.cuts += 1;
        self.cuts.entry(at).or_default().insert(id, snapshots);
    }

    fn check_sent(&mut self, id: ShardId, to: WorkerId, message: &ToWorker) {
        self.eager.shard_sends(id, to, message, &mut self.checker);
        match message {
            ToWorker::Ack { .. } => {}
            ToWorker::Rows(at) => self.checker.rows_sent(id, at),
            ToWorker::Push { changed, .. } => {
                self.tally.pushed += changed.iter().map(|at| at.rows.len() as u64).sum::<u64>();
                changed.iter().for_each(|at| self.checker.rows_sent(id, at));
            }
        }
    }

    fn finish(&mut self) {
        if let Some(worker) = self.blocked.iter().position(|b| *b) {
            self.checker.violated(Clause::Liveness, format!("worker {worker} waits for ever"));
            return;
        }
        for id in self.ids() {
            self.checker.finished(id, &self.shards.shard(id));
        }
        self.eager.finished(&mut self.checker);
        let consistency = self.plan.consistency;
        for worker in &self.workers {
            if consistency.model == Model::Async {
                if worker.refusals() > 0 {
                    self.checker.violated(Clause::C7, "a worker found a gate shut".into());
                }
            } else if worker.widest_gap().is_some_and(|gap| gap > consistency.staleness) {
                self.checker.violated(Clause::C2, format!("a worker counted a gap of {:?}", worker.widest_gap()));
            }
        }
    }

    fn ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.plan.shards).map(ShardId)
    }
}
