//! Random schedules over [`Turns`]: workers of uneven speed under a staleness bound, swaps asked for at any moment, some
//! that a worker cannot prepare, some that cannot be recorded, and stops.

use crate::engine::turns::{Progress, Turn, Turns};
use slackline_core::{Clock, WorkerId};
use std::collections::BTreeMap;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        slackline_core::random::mix(self.0) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A worker as the schedule drives it.
#[derive(Clone, Debug)]
struct Worker {
    clock: Clock,
    running: bool,
    /// The version that it runs, and one that it holds ready.
    version: u32,
    next: Option<u32>,
    /// What it has yet to report.
    preparing: Option<u32>,
    stopped: bool,
}

/// What has happened.
struct Record {
    /// Which version each worker ran in each clock.
    ran: BTreeMap<Clock, BTreeMap<u32, u32>>,
    /// Versions by the clock from which they run, as the verdicts said.
    decided: BTreeMap<Clock, u32>,
    refused: u32,
    withdrawn: u32,
}

/// Runs one schedule to its end; panics where it breaks a promise.
fn run(seed: u64) -> Record {
    let mut dice = Dice(seed);
    let n = 1 + dice.below(4) as u32;
    let (staleness, max) = (dice.below(4) as Clock, 4 + dice.below(20) as Clock);
    let mut turns = Turns::new(n, 0, max);
    let fresh = Worker { clock: 0, running: false, version: 1, next: None, preparing: None, stopped: false };
    let mut workers = vec![fresh; n as usize];
    let mut record = Record { ran: BTreeMap::new(), decided: [(0, 1)].into(), refused: 0, withdrawn: 0 };
    // The swap at hand: its version and clock, and whether its asker still waits.
    let mut asked: Option<(u32, Clock)> = None;
    let mut number = 1;
    let mut quiet = 0;
    while workers.iter().any(|w| !w.stopped) {
        let mut moved = false;
        match dice.below(u64::from(n) + 3) {
            0 if asked.is_none() && dice.one_in(2) => {
                let floor = turns.begun().iter().max().copied().unwrap_or(0);
                let at = dice.one_in(3).then(|| floor + dice.below(6) as Clock);
                if let Ok(at) = turns.plan(|_| number + 1, at) {
                    assert!(workers.iter().all(|w| w.clock <= at && !(w.running && w.clock == at)), "{at} has begun");
                    number += 1;
                    (asked, moved) = (Some((number, at)), true);
                }
            }
            1 if dice.one_in(40) => {
                turns.stop();
                moved = true;
            }
            0..=2 => {
                let Some((version, at)) = asked else { continue };
                match turns.progress().cloned() {
                    Some(Progress::Prepared) => {
                        // A version that cannot be recorded does not go on.
                        let new = !dice.one_in(8);
                        turns.resolve(new);
                        if new {
                            record.decided.insert(at, version);
                        }
                        (asked, moved) = (None, true);
                    }
                    Some(Progress::Refused(..)) => {
                        record.refused += 1;
                        turns.heard();
                        (asked, moved) = (None, true);
                    }
                    Some(Progress::Stopped(stop)) => {
                        assert!(stop <= at);
                        record.withdrawn += 1;
                        turns.heard();
                        (asked, moved) = (None, true);
                    }
                    Some(Progress::Open) => {}
                    None => panic!("a swap was lost before it was heard of"),
                }
            }
            w => {
                let w = (w - 3) as usize;
                let slowest = workers.iter().map(|w| w.clock).min().unwrap_or(0);
                moved = step(&mut turns, &mut workers, w, slowest, staleness, &mut dice, &mut record);
            }
        }
        quiet = if moved { 0 } else { quiet + 1 };
        assert!(quiet < 2000, "nobody moves: {workers:?}, {turns:?}");
    }
    record
}

/// One move of one worker; whether anything changed.
fn step(
    turns: &mut Turns<u32>,
    workers: &mut [Worker],
    w: usize,
    slowest: Clock,
    staleness: Clock,
    dice: &mut Dice,
    record: &mut Record,
) -> bool {
    let id = WorkerId(w as u32);
    let worker = &mut workers[w];
    if worker.stopped {
        return false;
    }
    if worker.running {
        // C2: what it reads in clock t needs everyone's updates stamped ≤ t − s − 1.
        if worker.clock.saturating_sub(staleness) > slowest {
            return false;
        }
        (worker.running, worker.clock) = (false, worker.clock + 1);
        return true;
    }
    if let Some(version) = worker.preparing.take() {
        let fails = dice.one_in(12);
        worker.next = (!fails).then_some(version);
        turns.prepared(id, if fails { Err("no".into()) } else { Ok(()) });
        return true;
    }
    match turns.ask(id, worker.clock) {
        Turn::Wait => return false,
        Turn::Stop => worker.stopped = true,
        Turn::HandOver => panic!("nobody asked"),
        Turn::Prepare(version) => worker.preparing = Some(version),
        Turn::Adopt => worker.version = worker.next.take().expect("it prepared"),
        Turn::Keep => worker.next = None,
        Turn::Begin => {
            assert!(worker.next.is_none(), "it begins without the verdict");
            record.ran.entry(worker.clock).or_default().insert(id.0, worker.version);
            worker.running = true;
        }
    }
    true
}

#[test]
fn whatever_the_schedule_no_clock_mixes_versions_and_nobody_waits_for_ever() {
    let (mut swaps, mut refused, mut withdrawn) = (0, 0, 0);
    for seed in 0..4000 {
        let record = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
        let workers = record.ran.get(&0).map_or(0, BTreeMap::len);
        for (clock, ran) in &record.ran {
            let (_, want) = record.decided.range(..=clock).next_back().expect("version 1 runs from 0");
            assert!(ran.values().all(|v| v == want), "seed {seed}: clock {clock} ran {ran:?}, decided {want}");
            assert_eq!(ran.len(), workers, "seed {seed}: clock {clock} was not run by all");
        }
        swaps += record.decided.len() - 1;
        refused += record.refused;
        withdrawn += record.withdrawn;
    }
    assert!(swaps > 4000 && refused > 400 && withdrawn > 100, "{swaps} {refused} {withdrawn}");
}
