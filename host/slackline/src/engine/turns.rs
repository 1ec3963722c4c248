//! Who may begin which clock, and on which version: the order of a swap as a pure machine, without threads or time.
//!
//! A swap is planned for a clock S that nobody has begun. A worker that comes to S prepares the new version beside the old
//! one and then waits for the verdict, which needs everyone's preparation: so all begin S on the new version, or all on the
//! old one. Workers below S are not held, and after S nobody is: the barrier stands once a swap. Everyone who waits at S has
//! ended S − 1, so that nobody's gate depends on them, and the wait ends.

use slackline_core::{Clock, WorkerId};

/// What a worker between two clocks does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn<V> {
    /// Begins the clock.
    Begin,
    /// Ends: the job stops here.
    Stop,
    /// Hands over a copy of its state, and asks again.
    HandOver,
    /// Makes an instance of this version beside the one that runs, says so, and asks again.
    Prepare(V),
    /// Takes the prepared instance for its own, and asks again.
    Adopt,
    /// Lets the prepared instance go, and asks again.
    Keep,
    /// Asks again when something has moved.
    Wait,
}

/// How far a swap is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some workers have not prepared yet.
    Open,
    /// Everyone has: [`Turns::resolve`] is due, and until then they wait.
    Prepared,
    /// A worker could not prepare; everyone stays with the old version.
    Refused(WorkerId, String),
    /// The job stops at this clock, before the swap's.
    Stopped(Clock),
}

/// Why a swap cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// The clock asked for has begun: this one is the first that has not.
    Past(Clock),
    /// The job stops at this clock, before the swap's.
    Stops(Clock),
    /// Another swap is not over.
    Busy,
}

/// The machine.
#[derive(Debug)]
pub struct Turns<V> {
    /// The clock that each worker has begun.
    begun: Vec<Clock>,
    stop_at: Clock,
    plan: Option<Plan<V>>,
    /// Whose state is still wanted.
    wanted: Vec<bool>,
}

#[derive(Debug)]
struct Plan<V> {
    version: V,
    at: Clock,
    sides: Vec<Side>,
    progress: Progress,
    /// Whether the new version goes on, once that is decided.
    verdict: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Has not come to the swap's clock.
    Before,
    /// Makes its instance.
    Preparing,
    /// Has made it, or failed to.
    Prepared,
    /// Has heard the verdict.
    Told,
}

impl<V: Clone> Turns<V> {
    /// For `workers` workers at `start`; all stop at `stop_at`.
    pub fn new(workers: u32, start: Clock, stop_at: Clock) -> Self {
        let n = workers as usize;
        Self { begun: vec![start; n], stop_at, plan: None, wanted: vec![false; n] }
    }

    /// What `worker`, which has ended everything before `clock`, does next.
    pub fn ask(&mut self, worker: WorkerId, clock: Clock) -> Turn<V> {
        let w = worker.index();
        if clock >= self.stop_at {
            return Turn::Stop;
        }
        if std::mem::take(&mut self.wanted[w]) {
            return Turn::HandOver;
        }
        if let Some(plan) = self.plan.as_mut().filter(|p| p.at == clock) {
            match (plan.sides[w], plan.verdict) {
                (Side::Before, None) => {
                    plan.sides[w] = Side::Preparing;
                    return Turn::Prepare(plan.version.clone());
                }
                (Side::Preparing, _) | (Side::Prepared, None) => return Turn::Wait,
                (Side::Prepared, Some(new)) => {
                    plan.sides[w] = Side::Told;
                    self.clear();
                    return if new { Turn::Adopt } else { Turn::Keep };
                }
                (Side::Before, Some(_)) | (Side::Told, _) => {}
            }
        }
        self.begun[w] = clock;
        Turn::Begin
    }

    /// Asks every worker for its state.
    pub fn want_state(&mut self) {
        self.wanted.fill(true);
    }

    /// Nobody wants it any more.
    pub fn want_nothing(&mut self) {
        self.wanted.fill(false);
    }

    /// Plans a swap for clock `at`, or for the first that can be.
    pub fn plan(&mut self, version: impl FnOnce(Clock) -> V, at: Option<Clock>) -> Result<Clock, Unplanned> {
        if self.plan.is_some() {
            return Err(Unplanned::Busy);
        }
        let first = self.furthest().saturating_add(1);
        let at = at.unwrap_or(first);
        if at < first {
            return Err(Unplanned::Past(first));
        }
        if at >= self.stop_at {
            return Err(Unplanned::Stops(self.stop_at));
        }
        let sides = vec![Side::Before; self.begun.len()];
        self.plan = Some(Plan { version: version(at), at, sides, progress: Progress::Open, verdict: None });
        Ok(at)
    }

    /// `worker` has prepared, or says why it cannot.
    pub fn prepared(&mut self, worker: WorkerId, done: Result<(), String>) {
        let Some(plan) = self.plan.as_mut() else { return };
        plan.sides[worker.index()] = Side::Prepared;
        if plan.verdict.is_some() {
            return;
        }
        match done {
            Err(why) => {
                plan.progress = Progress::Refused(worker, why);
                plan.verdict = Some(false);
            }
            Ok(()) if plan.sides.iter().all(|s| *s == Side::Prepared) => plan.progress = Progress::Prepared,
            Ok(()) => {}
        }
    }

    /// How far the swap is that was planned last; `None` once all have heard its verdict.
    pub fn progress(&self) -> Option<&Progress> {
        self.plan.as_ref().map(|p| &p.progress)
    }

    /// Forgets a swap that came to nothing, once whoever asked has heard why.
    pub fn heard(&mut self) {
        if let Some(plan) = self.plan.as_mut()
            && plan.verdict == Some(false)
        {
            plan.progress = Progress::Open;
        }
        self.clear();
    }

    /// Speaks the verdict on a swap that everyone has prepared.
    pub fn resolve(&mut self, new: bool) {
        if let Some(plan) = self.plan.as_mut().filter(|p| p.progress == Progress::Prepared) {
            plan.verdict = Some(new);
        }
        self.clear();
    }

    /// The clock of a swap that is to come.
    pub fn planned(&self) -> Option<Clock> {
        self.plan.as_ref().filter(|p| p.verdict.is_none()).map(|p| p.at)
    }

    /// Stops everyone at the first clock that nobody has begun, if that is before where they stop anyway; answers that
    /// clock.
    pub fn stop(&mut self) -> Clock {
        let at = self.furthest().saturating_add(1);
        if at < self.stop_at {
            self.stop_at = at;
            if let Some(plan) = self.plan.as_mut().filter(|p| p.verdict.is_none() && p.at >= at) {
                plan.progress = Progress::Stopped(at);
                plan.verdict = Some(false);
            }
        }
        at
    }

    /// The clock at which all stop.
    pub fn stop_at(&self) -> Clock {
        self.stop_at
    }

    /// The clocks that have begun, by worker.
    pub fn begun(&self) -> &[Clock] {
        &self.begun
    }

    /// The furthest clock that somebody has begun, or will whatever happens: what everyone has prepared for is not taken
    /// back by a stop.
    fn furthest(&self) -> Clock {
        let begun = self.begun.iter().max().copied().unwrap_or(0);
        let sure = self.plan.as_ref().filter(|p| p.progress == Progress::Prepared).map_or(0, |p| p.at);
        begun.max(sure)
    }

    /// Drops a plan that nobody has anything to hear of any more: neither a worker nor whoever asked.
    fn clear(&mut self) {
        let over = self.plan.as_ref().is_some_and(|p| match p.verdict {
            None => false,
            Some(true) => p.sides.iter().all(|s| *s == Side::Told),
            Some(false) => {
                !p.sides.iter().any(|s| matches!(s, Side::Preparing | Side::Prepared))
                    && matches!(p.progress, Progress::Open | Progress::Prepared)
            }
        });
        if over {
            self.plan = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkerId = WorkerId(0);
    const B: WorkerId = WorkerId(1);

    #[test]
    fn both_switch_at_the_clock_after_the_furthest() {
        let mut t = Turns::new(2, 0, 10);
        assert_eq!((t.ask(A, 0), t.ask(A, 1), t.ask(B, 0)), (Turn::Begin, Turn::Begin, Turn::Begin));
        assert_eq!(t.plan(|at| ("new", at), None), Ok(2));
        assert_eq!(t.plan(|at| ("newer", at), None), Err(Unplanned::Busy));
        assert_eq!(t.ask(A, 2), Turn::Prepare(("new", 2)));
        t.prepared(A, Ok(()));
        assert_eq!((t.ask(A, 2), t.ask(B, 1)), (Turn::Wait, Turn::Begin));
        assert_eq!(t.ask(B, 2), Turn::Prepare(("new", 2)));
        t.prepared(B, Ok(()));
        assert_eq!((t.progress().cloned(), t.ask(B, 2)), (Some(Progress::Prepared), Turn::Wait));
        t.resolve(true);
        assert_eq!((t.ask(A, 2), t.ask(A, 2), t.ask(A, 3)), (Turn::Adopt, Turn::Begin, Turn::Begin));
        assert_eq!((t.ask(B, 2), t.ask(B, 2)), (Turn::Adopt, Turn::Begin));
        assert_eq!(t.progress(), None);
    }

    #[test]
    fn one_who_cannot_prepare_keeps_all_with_the_old_version() {
        let mut t = Turns::new(2, 0, 10);
        assert_eq!((t.ask(A, 0), t.plan(|_| (), None)), (Turn::Begin, Ok(1)));
        assert_eq!(t.ask(A, 1), Turn::Prepare(()));
        t.prepared(A, Err("no".into()));
        assert_eq!(t.progress(), Some(&Progress::Refused(A, "no".into())));
        assert_eq!((t.ask(A, 1), t.ask(A, 1)), (Turn::Keep, Turn::Begin));
        assert_eq!((t.ask(B, 0), t.ask(B, 1)), (Turn::Begin, Turn::Begin));
        t.heard();
        assert_eq!((t.progress().cloned(), t.plan(|_| (), None)), (None, Ok(2)));
    }

    #[test]
    fn clocks_that_have_begun_and_clocks_that_never_come_are_refused() {
        let mut t = Turns::new(1, 4, 7);
        assert_eq!(t.ask(A, 5), Turn::Begin);
        assert_eq!(t.plan(|_| (), Some(5)), Err(Unplanned::Past(6)));
        assert_eq!(t.plan(|_| (), Some(7)), Err(Unplanned::Stops(7)));
        assert_eq!(t.plan(|_| (), Some(6)), Ok(6));
    }

    #[test]
    fn a_stop_before_the_swap_withdraws_it_and_one_after_everyone_prepared_comes_after_it() {
        let mut t = Turns::new(1, 0, 10);
        assert_eq!((t.ask(A, 0), t.plan(|_| (), Some(5)), t.stop()), (Turn::Begin, Ok(5), 1));
        assert_eq!((t.progress().cloned(), t.ask(A, 1)), (Some(Progress::Stopped(1)), Turn::Stop));
        let mut t = Turns::new(1, 0, 10);
        assert_eq!((t.ask(A, 0), t.plan(|_| (), None), t.ask(A, 1)), (Turn::Begin, Ok(1), Turn::Prepare(())));
        t.prepared(A, Ok(()));
        assert_eq!(t.stop(), 2);
        t.resolve(true);
        assert_eq!((t.ask(A, 1), t.ask(A, 1), t.ask(A, 2)), (Turn::Adopt, Turn::Begin, Turn::Stop));
    }

    #[test]
    fn state_is_handed_over_once_by_each() {
        let mut t: Turns<()> = Turns::new(2, 0, 10);
        t.want_state();
        assert_eq!((t.ask(A, 0), t.ask(A, 0), t.ask(B, 0)), (Turn::HandOver, Turn::Begin, Turn::HandOver));
        t.want_state();
        t.want_nothing();
        assert_eq!(t.ask(B, 0), Turn::Begin);
    }
}
