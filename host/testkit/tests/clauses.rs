//! Random schedules against the clauses of the consistency contract, and a mutant for every clause.
//!
//! A failure prints its seed; `SLACKLINE_SEED=<seed>` with the test's name plays that schedule alone.

use slackline_core::{Model, SealedPart, ShardId};
use slackline_server::resplit;
use slackline_testkit::{Dice, Ledger, Mutant, Outcome, Plan, Restart, Tally, run};

/// Schedules that every run of the suite plays: these, and as many restarts as they take cuts.
const SCHEDULES: [(Model, u64); 4] =
    [(Model::Bsp, 4000), (Model::Ssp, 3000), (Model::Essp, 3500), (Model::Async, 1500)];

/// Seeds within which a mutant must be caught.
const CATCH_WITHIN: u64 = 300;

fn seeds(model: Model) -> std::ops::Range<u64> {
    match std::env::var("SLACKLINE_SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..SCHEDULES.iter().find(|(m, _)| *m == model).map_or(0, |(_, n)| *n),
    }
}

/// Says how to play a schedule again, should the test fail in it, by a check or by a panic of the engine.
struct Replay<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            eprintln!("replay: SLACKLINE_SEED={seed} cargo test --release -p slackline-testkit --test clauses {test}");
        }
    }
}

fn must_hold(seed: u64, outcome: &Outcome) {
    if let Some(first) = outcome.violations.first() {
        panic!("seed {seed}: {:?} does not hold at {}: {}", first.clause, first.at, first.what);
    }
}

fn every_clause_holds(test: &str, model: Model) {
    let (mut restarts, mut tally) = (0, Tally::default());
    for seed in seeds(model) {
        let _replay = Replay { test, seed };
        let plan = Plan::new(model, seed);
        let ledger = Ledger::new(&plan);
        let outcome = run(&plan, &ledger, None, None);
        must_hold(seed, &outcome);
        tally.add(&outcome.tally);
        if let Some((again, restart)) = from_some_cut(&plan, outcome) {
            must_hold(seed, &run(&again, &ledger, None, Some(restart)));
            restarts += 1;
        }
    }
    println!("{test}: {restarts} restarts, {tally:?}");
    if std::env::var_os("SLACKLINE_SEED").is_none() {
        let Tally { waits, early, repeated, pushed, evicted, cuts } = tally;
        let common = [restarts, waits, early, repeated, cuts];
        let eager = if model == Model::Ssp { [1, 1] } else { [pushed, evicted] };
        assert!(
            common.iter().chain(&eager).all(|n| *n > 0),
            "something never happened: {restarts} restarts, {tally:?}"
        );
    }
}

/// The same job from one of its cuts on, on other shards and with other readers (C11); parts that are in the cut come
/// again (C10).
fn from_some_cut(plan: &Plan, outcome: Outcome) -> Option<(Plan, Restart)> {
    let cuts: Vec<_> = outcome.cuts.into_iter().collect();
    let which = (Dice::new(plan.seed, 7).bits() % cuts.len().max(1) as u64) as usize;
    let (at, by_shard) = cuts.into_iter().nth(which)?;
    let again = plan.clone().elsewhere(3).from_clock(at);
    let mut snapshots = vec![Vec::new(); again.shards as usize];
    for (t, spec) in plan.tables.iter().enumerate() {
        let pieces = by_shard.iter().map(|tables| tables[t].clone()).collect();
        let pieces = resplit(spec, pieces, again.shards).expect("a cut is all of the table");
        pieces.into_iter().zip(&mut snapshots).for_each(|(piece, shard)| shard.push(piece));
    }
    let in_cut = |(shard, part): &(ShardId, SealedPart)| shard.0 < again.shards && part.key.clock < at;
    let stale = outcome.parts.into_iter().filter(in_cut).collect();
    Some((again, Restart { snapshots, stale }))
}

fn the_check_catches(mutant: Mutant, model: Model) {
    let mut seen = Vec::new();
    for seed in 0..CATCH_WITHIN {
        let plan = Plan::new(model, seed);
        let violations = run(&plan, &Ledger::new(&plan), Some(mutant), None).violations;
        if let Some(caught) = violations.iter().find(|v| v.clause == mutant.breaks()) {
            println!("{mutant:?} under {model:?}, seed {seed}: {:?} does not hold: {}", caught.clause, caught.what);
            return;
        }
        seen.extend(violations.into_iter().map(|v| v.clause));
    }
    panic!("{mutant:?} under {model:?} is not caught by {:?}; others saw it: {seen:?}", mutant.breaks());
}

#[test]
fn bsp_keeps_every_clause_bit_by_bit() {
    every_clause_holds("bsp_keeps_every_clause_bit_by_bit", Model::Bsp);
}

#[test]
fn ssp_keeps_every_clause() {
    every_clause_holds("ssp_keeps_every_clause", Model::Ssp);
}

#[test]
fn essp_keeps_every_clause() {
    every_clause_holds("essp_keeps_every_clause", Model::Essp);
}

#[test]
fn async_keeps_every_clause_but_the_bound() {
    every_clause_holds("async_keeps_every_clause_but_the_bound", Model::Async);
}

#[test]
fn the_suite_plays_ten_thousand_schedules() {
    assert!(SCHEDULES.iter().map(|(_, n)| n).sum::<u64>() >= 10_000);
}

#[test]
fn c1_catches_clocks_shown_before_their_data() {
    for model in [Model::Bsp, Model::Ssp, Model::Essp] {
        the_check_catches(Mutant::ClockBeforeData, model);
    }
}

#[test]
fn c2_catches_a_gate_that_is_one_clock_laxer() {
    for model in [Model::Bsp, Model::Ssp, Model::Essp] {
        the_check_catches(Mutant::LaxerGate, model);
    }
}

#[test]
fn c3_catches_watermarks_that_are_ahead() {
    for model in [Model::Bsp, Model::Ssp, Model::Essp, Model::Async] {
        the_check_catches(Mutant::WatermarkAhead, model);
    }
}

#[test]
fn c4_catches_parts_applied_as_they_arrive() {
    for model in [Model::Ssp, Model::Essp, Model::Async] {
        the_check_catches(Mutant::ArrivalOrder, model);
    }
}

#[test]
fn c5_catches_a_changed_row_that_is_left_out() {
    for model in [Model::Bsp, Model::Essp] {
        the_check_catches(Mutant::RowLeftOut, model);
    }
}

#[test]
fn c7_catches_workers_that_wait() {
    the_check_catches(Mutant::AsyncWaits, Model::Async);
}

#[test]
fn c10_catches_a_part_that_is_applied_again() {
    for model in [Model::Bsp, Model::Ssp, Model::Essp, Model::Async] {
        the_check_catches(Mutant::RepeatsApplied, model);
    }
}

#[test]
fn c11_catches_a_cut_that_holds_nothing_apart() {
    for model in [Model::Ssp, Model::Essp, Model::Async] {
        the_check_catches(Mutant::CutWithoutHolding, model);
    }
}

#[test]
fn c13_catches_shards_that_apply_at_once() {
    the_check_catches(Mutant::AppliedAtOnce, Model::Bsp);
}
