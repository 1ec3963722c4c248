//! Where workers post that a clock is over: metrics come together here, and whether the job goes on is decided here.
//!
//! One lock, taken a few times a clock by each worker. A worker begins a clock only with the board's leave, so that a
//! decision to stop names one clock for all: the one after the furthest that has begun. Under BSP a worker also waits
//! until the clock before is decided, which makes the stopping clock a function of seed and data alone (C13).

use crate::engine::error::RunError;
use crate::engine::run::News;
use crate::engine::telemetry::{Sums, combine};
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
    state: Mutex<State>,
    moved: Condvar,
    /// Copied to every worker's `run.cancelled`.
    cancelled: Arc<AtomicBool>,
    wait_for_decision: bool,
    specs: Arc<[MetricSpec]>,
    begun: Instant,
    /// Rung when there is news; a full bell rings anyway.
    bell: Sender<News>,
}

struct State {
    /// The clock that each worker has begun.
    begun: Vec<Clock>,
    /// Metrics of clocks that some workers have ended, by worker.
    open: BTreeMap<Clock, Vec<Option<Posted>>>,
    /// Clocks below this are decided.
    decided: Clock,
    stop_at: Clock,
    ending: Ending,
    watch: Option<StopWatch>,
    history: Vec<HistoryPoint>,
    news: Vec<HistoryPoint>,
    failure: Option<RunError>,
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
            begun: vec![start; workers as usize],
            open: BTreeMap::new(),
            decided: start,
            stop_at: max.unwrap_or(Clock::MAX).max(start),
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
            specs,
            begun: Instant::now(),
            bell,
        }
    }

    /// Whether `worker` may begin `clock`; waits for the decision on the clock before where the model asks for it.
    pub fn begin(&self, worker: WorkerId, clock: Clock) -> bool {
        let mut state = self.state.lock();
        while self.wait_for_decision && state.decided < clock && state.failure.is_none() {
            self.moved.wait(&mut state);
        }
        if state.failure.is_some() || clock >= state.stop_at {
            return false;
        }
        state.begun[worker.index()] = clock;
        true
    }

    /// `worker` has ended `clock`. When all have, its metrics are complete and the stop rule is asked.
    pub fn ended(&self, worker: WorkerId, clock: Clock, posted: Posted) {
        let mut state = self.state.lock();
        let workers = state.begun.len();
        state.open.entry(clock).or_insert_with(|| vec![None; workers])[worker.index()] = Some(posted);
        while let Some(posts) = state.open.first_entry().filter(|e| e.get().iter().all(Option::is_some)) {
            let (clock, posts) = posts.remove_entry();
            let point = self.point(clock, posts.into_iter().flatten().collect());
            if let Some(spec) = self.unsound(&point.metrics) {
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

    fn point(&self, clock: Clock, posts: Vec<Posted>) -> HistoryPoint {
        let (steps, evaluations): (Vec<_>, Vec<_>) = posts.into_iter().map(|p| (p.steps, p.evaluation)).unzip();
        let mut metrics = combine(&self.specs, &steps);
        // An evaluation sees the whole model at once: it speaks for the clock where both know a metric.
        metrics.extend(combine(&self.specs, &evaluations));
        HistoryPoint { clock, seconds: self.seconds(), metrics }
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

    /// The history below `clock`.
    pub fn history_below(&self, clock: Clock) -> Vec<HistoryPoint> {
        self.state.lock().history.iter().filter(|p| p.clock < clock).cloned().collect()
    }

    /// Whether every metric that must be finite is, in the clocks below `clock`.
    pub fn sound_below(&self, clock: Clock) -> bool {
        let state = self.state.lock();
        state.history.iter().filter(|p| p.clock < clock).all(|p| self.unsound(&p.metrics).is_none())
    }

    /// A metric that must be finite and is not.
    fn unsound(&self, metrics: &Metrics) -> Option<&MetricSpec> {
        self.specs.iter().find(|s| s.finite && metrics.get(&s.name).is_some_and(|v| !v.is_finite()))
    }

    /// The clock at which all stop, and why.
    pub fn ending(&self) -> (Clock, Ending) {
        let state = self.state.lock();
        (state.stop_at, state.ending.clone())
    }

    /// Combined metrics of one final evaluation.
    pub fn combine(&self, sums: &[Sums]) -> Metrics {
        combine(&self.specs, sums)
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

    fn stop(&mut self, ending: Ending) {
        let at = self.begun.iter().max().map_or(0, |c| c + 1);
        if at < self.stop_at {
            self.stop_at = at;
            self.ending = ending;
        } else if at == self.stop_at && ending == Ending::Interrupted {
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

    const A: WorkerId = WorkerId(0);
    const B: WorkerId = WorkerId(1);

    #[test]
    fn a_clock_is_news_once_every_worker_has_ended_it() {
        let board = board(2, Some(2), false, None);
        assert!(board.begin(A, 0) && board.begin(B, 0));
        board.ended(A, 0, post(1.0));
        assert!(board.begin(A, 1));
        board.ended(A, 1, post(3.0));
        assert!(board.news().is_empty());
        board.ended(B, 0, post(2.0));
        let news = board.news();
        assert_eq!(news.iter().map(|p| (p.clock, p.metrics["loss"])).collect::<Vec<_>>(), [(0, 1.5)]);
        assert!(!board.begin(A, 2), "two clocks were asked for");
    }

    #[test]
    fn under_bsp_a_stop_rule_stops_at_the_clock_that_it_held_in() {
        let board = board(2, None, true, Some(1.0));
        assert!(board.begin(A, 0) && board.begin(B, 0));
        board.ended(A, 0, post(0.5));
        board.ended(B, 0, post(0.5));
        assert!(!board.begin(A, 1) && !board.begin(B, 1));
        assert!(matches!(board.ending(), (1, Ending::Stopped(_))));
    }

    #[test]
    fn without_bsp_all_stop_after_the_furthest_that_has_begun() {
        let board = board(2, None, false, Some(1.0));
        assert!(board.begin(A, 0) && board.begin(B, 0));
        board.ended(A, 0, post(0.5));
        assert!(board.begin(A, 1));
        board.ended(B, 0, post(0.5));
        assert!(board.begin(B, 1), "A has begun clock 1, so B must do it too");
        board.ended(A, 1, post(0.5));
        assert!(!board.begin(A, 2));
        assert_eq!(board.ending().0, 2);
    }

    #[test]
    fn an_interrupt_names_one_clock_for_all_and_never_a_later_one_than_asked_for() {
        let running = board(2, None, false, None);
        assert!(running.begin(A, 0));
        running.interrupt();
        assert!(!running.begin(A, 1));
        assert_eq!(running.ending(), (1, Ending::Interrupted));
        let at_its_end = board(1, Some(1), false, None);
        assert!(at_its_end.begin(A, 0));
        at_its_end.interrupt();
        assert_eq!(at_its_end.ending(), (1, Ending::Interrupted));
    }

    #[test]
    fn a_metric_that_must_be_finite_fails_the_run() {
        let board = board(1, None, false, None);
        assert!(board.begin(A, 0));
        board.ended(A, 0, post(f64::NAN));
        assert!(!board.begin(A, 1) && board.failed());
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
        assert!(board.begin(A, 3));
        board.ended(A, 3, post(2.0));
        assert!(!board.begin(A, 4), "three clocks without improvement, two of them before the cut");
    }
}
