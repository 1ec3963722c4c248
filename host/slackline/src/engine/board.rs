//! Where workers post that a clock is over: metrics come together here, and whether the job goes on is decided here.
//!
//! One lock, taken a few times a clock by each worker. A worker begins a clock only with the board's leave, so that a
//! decision to stop names one clock for all: the one after the furthest that has begun. Under BSP a worker also waits
//! until the clock before is decided, which makes the stopping clock a function of seed and data alone (C13).

use crate::engine::error::RunError;
use crate::engine::run::News;
use crate::engine::swap::Desk;
use crate::engine::telemetry::{Sums, combine};
use crate::engine::turns::{Turn, Turns};
use crate::engine::versions::Version;
use crate::events::{HistoryPoint, Metrics};
use crate::job::StopWatch;
use crossbeam_channel::Sender;
use parking_lot::{Condvar, Mutex};
use slackline_core::manifest::MetricSpec;
use slackline_core::{Clock, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Why a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// All clocks were done.
    Finished,
    /// A stop rule held; in words.
    Stopped(String),
    /// A person asked.
    Interrupted,
}

/// The board of one run.
pub struct Board {
    pub(super) state: Mutex<State>,
    pub(super) moved: Condvar,
    /// Copied to every worker's `run.cancelled`.
    cancelled: Arc<AtomicBool>,
    wait_for_decision: bool,
    begun: Instant,
    /// Rung when there is news; a full bell rings anyway.
    bell: Sender<News>,
}

pub(super) struct State {
    /// Who may begin what.
    pub(super) turns: Turns<Arc<Version>>,
    /// What swaps need besides.
    pub(super) desk: Desk,
    /// The metrics that are known, from the clock on that stands beside them.
    pub(super) specs: Vec<(Clock, Arc<[MetricSpec]>)>,
    /// All workers are done.
    pub(super) over: bool,
    /// Metrics of clocks that some workers have ended, by worker.
    open: BTreeMap<Clock, Vec<Option<Posted>>>,
    /// Clocks below this are decided.
    decided: Clock,
    ending: Ending,
    watch: Option<StopWatch>,
    history: Vec<HistoryPoint>,
    news: Vec<HistoryPoint>,
    pub(super) failure: Option<RunError>,
}

/// What a worker says of a clock that it ended.
#[derive(Clone, Debug, Default)]
pub struct Posted {
    /// Summed in steps.
    pub steps: Sums,
    /// Summed in an evaluation that fell on the clock.
    pub evaluation: Sums,
}

impl Board {
    /// For `workers` workers from `start` to `max` clocks.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        workers: u32,
        start: Clock,
        max: Option<Clock>,
        wait_for_decision: bool,
        specs: Arc<[MetricSpec]>,
        watch: Option<StopWatch>,
        history: Vec<HistoryPoint>,
        bell: Sender<News>,
    ) -> Self {
        let mut state = State {
            turns: Turns::new(workers, start, max.unwrap_or(Clock::MAX).max(start)),
            desk: Desk::new(workers),
            specs: vec![(0, specs)],
            over: false,
            open: BTreeMap::new(),
            decided: start,
            ending: Ending::Finished,
            watch,
            history: Vec::new(),
            news: Vec::new(),
            failure: None,
        };
        // A resumed run has seen these already: the stop rule goes on from where it was.
        for point in history {
            state.observe(&point);
            state.history.push(point);
        }
        Self {
            state: Mutex::new(state),
            moved: Condvar::new(),
            cancelled: Arc::new(AtomicBool::new(false)),
            wait_for_decision,
            begun: Instant::now(),
            bell,
        }
    }

    /// What `worker` does next, which has ended all clocks before `clock`. Waits for the decision on the clock before where
    /// the model asks for it, and at a swap's clock for its verdict.
    pub fn turn(&self, worker: WorkerId, clock: Clock) -> Turn<Arc<Version>> {
        let mut state = self.state.lock();
        loop {
            if state.failure.is_some() {
                return Turn::Stop;
            }
            if !self.wait_for_decision || state.decided >= clock {
                match state.turns.ask(worker, clock) {
                    Turn::Wait => {}
                    turn => {
                        // Whoever has heard a verdict may have been the last to.
                        if matches!(turn, Turn::Adopt | Turn::Keep) {
                            self.moved.notify_all();
                        }
                        return turn;
                    }
                }
            }
            self.moved.wait(&mut state);
        }
    }

    /// `worker` has ended `clock`. When all have, its metrics are complete and the stop rule is asked.
    pub fn ended(&self, worker: WorkerId, clock: Clock, posted: Posted) {
        let mut state = self.state.lock();
        let workers = state.turns.begun().len();
        state.open.entry(clock).or_insert_with(|| vec![None; workers])[worker.index()] = Some(posted);
        while let Some(posts) = state.open.first_entry().filter(|e| e.get().iter().all(Option::is_some)) {
            let (clock, posts) = posts.remove_entry();
            let point = state.point(clock, self.seconds(), posts.into_iter().flatten().collect());
            if let Some(spec) = state.unsound(&point).cloned() {
                let value = point.metrics.get(&spec.name).copied().unwrap_or(f64::NAN);
                state.fail(RunError::metric(&spec.name, value, clock));
                self.cancelled.store(true, Ordering::Relaxed);
            } else if let Some(reason) = state.observe(&point) {
                state.stop(Ending::Stopped(reason));
            }
            state.decided = clock + 1;
            state.history.push(point.clone());
            state.news.push(point);
        }
        drop(state);
        self.moved.notify_all();
        // Rung without the lock: the listener takes it.
        let _ = self.bell.try_send(News::Clock);
    }

    /// Asks every worker to stop after the furthest clock that has begun.
    pub fn interrupt(&self) {
        self.state.lock().stop(Ending::Interrupted);
        self.moved.notify_all();
    }

    /// Ends the run with an error; the first one counts.
    pub fn fail(&self, error: RunError) {
        self.state.lock().fail(error);
        self.cancelled.store(true, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// Whether the run has failed.
    pub fn failed(&self) -> bool {
        self.state.lock().failure.is_some()
    }

    /// The error that ended the run.
    pub fn take_failure(&self) -> Option<RunError> {
        self.state.lock().failure.take()
    }

    /// Clocks that became complete since the last call.
    pub fn news(&self) -> Vec<HistoryPoint> {
        std::mem::take(&mut self.state.lock().news)
    }

    /// All workers are done: nobody waits for them any more.
    pub fn finish(&self) {
        self.state.lock().over = true;
        self.moved.notify_all();
    }

    /// The newest clock that everyone has ended, and its metrics.
    pub fn newest(&self) -> Option<HistoryPoint> {
        self.state.lock().history.last().cloned()
    }

    /// The history below `clock`.
    pub fn history_below(&self, clock: Clock) -> Vec<HistoryPoint> {
        self.state.lock().history.iter().filter(|p| p.clock < clock).cloned().collect()
    }

    /// Whether every metric that must be finite is, in the clocks below `clock`.
    pub fn sound_below(&self, clock: Clock) -> bool {
        let state = self.state.lock();
        state.history.iter().filter(|p| p.clock < clock).all(|p| state.unsound(p).is_none())
    }

    /// The clock at which all stop, and why.
    pub fn ending(&self) -> (Clock, Ending) {
        let state = self.state.lock();
        (state.turns.stop_at(), state.ending.clone())
    }

    /// Combined metrics of one final evaluation.
    pub fn combine(&self, sums: &[Sums]) -> Metrics {
        let specs = self.state.lock().specs.last().map(|(_, specs)| specs.clone());
        specs.map_or_else(Metrics::new, |specs| combine(&specs, sums))
    }

    /// Set when the run is being torn down.
    pub fn cancelled(&self) -> Arc<AtomicBool> {
        self.cancelled.clone()
    }

    /// Since the run began.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

impl State {
    fn observe(&mut self, point: &HistoryPoint) -> Option<String> {
        let watch = self.watch.as_mut()?;
        let value = *point.metrics.get(watch.metric())?;
        watch.observe(point.clock, value)
    }

    /// The metrics that are known in `clock`.
    fn specs(&self, clock: Clock) -> &[MetricSpec] {
        self.specs.iter().rev().find(|(from, _)| *from <= clock).map_or(&[], |(_, specs)| specs)
    }

    fn point(&self, clock: Clock, seconds: f64, posts: Vec<Posted>) -> HistoryPoint {
        let (steps, evaluations): (Vec<_>, Vec<_>) = posts.into_iter().map(|p| (p.steps, p.evaluation)).unzip();
        let mut metrics = combine(self.specs(clock), &steps);
        // An evaluation sees the whole model at once: it speaks for the clock where both know a metric.
        metrics.extend(combine(self.specs(clock), &evaluations));
        HistoryPoint { clock, seconds, metrics }
    }

    /// A metric that must be finite and is not.
    fn unsound(&self, point: &HistoryPoint) -> Option<&MetricSpec> {
        let bad = |s: &&MetricSpec| s.finite && point.metrics.get(&s.name).is_some_and(|v| !v.is_finite());
        self.specs(point.clock).iter().find(bad)
    }

    fn stop(&mut self, ending: Ending) {
        let before = self.turns.stop_at();
        let at = self.turns.stop();
        if at < before || (at == before && ending == Ending::Interrupted) {
            self.ending = ending;
        }
    }

    fn fail(&mut self, error: RunError) {
        self.failure.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::telemetry::Weighted;
    use crate::job::StopRule;
    use slackline_core::manifest::{Goal, Then};

    fn board(workers: u32, max: Option<Clock>, bsp: bool, below: Option<f64>) -> Board {
        let spec = MetricSpec { name: "loss".into(), then: Then::Nothing, goal: Goal::Lower, finite: true };
        let rule = StopRule { metric: "loss".into(), below, above: None, patience: None, min_delta: 0.0 };
        let watch = below.map(|_| StopWatch::new(rule, Goal::Lower));
        Board::new(workers, 0, max, bsp, Arc::new([spec]), watch, Vec::new(), crossbeam_channel::bounded(16).0)
    }

    fn post(value: f64) -> Posted {
        let sums = Sums::from([("loss".to_owned(), Weighted { sum: value, weight: 1.0 })]);
        Posted { steps: sums, evaluation: Sums::new() }
    }

    /// Whether a worker may begin a clock.
    fn begins(board: &Board, worker: WorkerId, clock: Clock) -> bool {
        matches!(board.turn(worker, clock), Turn::Begin)
    }

    const A: WorkerId = WorkerId(0);
    const B: WorkerId = WorkerId(1);

    #[test]
    fn a_clock_is_news_once_every_worker_has_ended_it() {
        let board = board(2, Some(2), false, None);
        assert!(begins(&board, A, 0) && begins(&board, B, 0));
        board.ended(A, 0, post(1.0));
        assert!(begins(&board, A, 1));
        board.ended(A, 1, post(3.0));
        assert!(board.news().is_empty());
        board.ended(B, 0, post(2.0));
        let news = board.news();
        assert_eq!(news.iter().map(|p| (p.clock, p.metrics["loss"])).collect::<Vec<_>>(), [(0, 1.5)]);
        assert!(!begins(&board, A, 2), "two clocks were asked for");
    }

    #[test]
    fn under_bsp_a_stop_rule_stops_at_the_clock_that_it_held_in() {
        let board = board(2, None, true, Some(1.0));
        assert!(begins(&board, A, 0) && begins(&board, B, 0));
        board.ended(A, 0, post(0.5));
        board.ended(B, 0, post(0.5));
        assert!(!begins(&board, A, 1) && !begins(&board, B, 1));
        assert!(matches!(board.ending(), (1, Ending::Stopped(_))));
    }

    #[test]
    fn without_bsp_all_stop_after_the_furthest_that_has_begun() {
        let board = board(2, None, false, Some(1.0));
        assert!(begins(&board, A, 0) && begins(&board, B, 0));
        board.ended(A, 0, post(0.5));
        assert!(begins(&board, A, 1));
        board.ended(B, 0, post(0.5));
        assert!(begins(&board, B, 1), "A has begun clock 1, so B must do it too");
        board.ended(A, 1, post(0.5));
        assert!(!begins(&board, A, 2));
        assert_eq!(board.ending().0, 2);
    }

    #[test]
    fn an_interrupt_names_one_clock_for_all_and_never_a_later_one_than_asked_for() {
        let running = board(2, None, false, None);
        assert!(begins(&running, A, 0));
        running.interrupt();
        assert!(!begins(&running, A, 1));
        assert_eq!(running.ending(), (1, Ending::Interrupted));
        let at_its_end = board(1, Some(1), false, None);
        assert!(begins(&at_its_end, A, 0));
        at_its_end.interrupt();
        assert_eq!(at_its_end.ending(), (1, Ending::Interrupted));
    }

    #[test]
    fn a_metric_that_must_be_finite_fails_the_run() {
        let board = board(1, None, false, None);
        assert!(begins(&board, A, 0));
        board.ended(A, 0, post(f64::NAN));
        assert!(!begins(&board, A, 1) && board.failed());
        assert!(board.take_failure().unwrap().to_string().contains("metric loss is NaN at clock 0"));
    }

    #[test]
    fn a_resumed_run_remembers_what_its_stop_rule_saw() {
        let spec = MetricSpec { name: "loss".into(), then: Then::Nothing, goal: Goal::Lower, finite: true };
        let rule = StopRule { metric: "loss".into(), below: None, above: None, patience: Some(3), min_delta: 0.0 };
        let seen = |clock, loss: f64| HistoryPoint { clock, seconds: 0.0, metrics: [("loss".to_owned(), loss)].into() };
        let history = vec![seen(0, 1.0), seen(1, 2.0), seen(2, 2.0)];
        let watch = Some(StopWatch::new(rule, Goal::Lower));
        let bell = crossbeam_channel::bounded(16).0;
        let board = Board::new(1, 3, None, true, Arc::new([spec]), watch, history, bell);
        assert!(begins(&board, A, 3));
        board.ended(A, 3, post(2.0));
        assert!(!begins(&board, A, 4), "three clocks without improvement, two of them before the cut");
    }
}
