//! How long a call into a plugin has run, readable from another thread.
//!
//! Time spent waiting inside host calls (at the gate, say) is not the plugin's: the host functions mark its beginning
//! and end, and those calls have deadlines of their own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Which export is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Phase {
    Describe,
    Plan,
    Create,
    Restore,
    Prepare,
    Step,
    EndClock,
    Evaluate,
    Predict,
    Save,
}

impl Phase {
    const ALL: [Phase; 10] = [
        Phase::Describe,
        Phase::Plan,
        Phase::Create,
        Phase::Restore,
        Phase::Prepare,
        Phase::Step,
        Phase::EndClock,
        Phase::Evaluate,
        Phase::Predict,
        Phase::Save,
    ];

    /// Whether the model may change here.
    pub(crate) fn may_change_model(self) -> bool {
        matches!(self, Phase::Create | Phase::Restore | Phase::Prepare | Phase::Step | Phase::EndClock)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Describe => "describe",
            Phase::Plan => "plan",
            Phase::Create => "create",
            Phase::Restore => "restore",
            Phase::Prepare => "prepare",
            Phase::Step => "step",
            Phase::EndClock => "end-clock",
            Phase::Evaluate => "evaluate",
            Phase::Predict => "predict",
            Phase::Save => "save",
        })
    }
}

/// A call that outlived its deadline.
#[derive(Clone, Debug)]
pub struct Overrun {
    /// The plugin, by name.
    pub plugin: String,
    /// The worker whose instance it is.
    pub worker: u32,
    /// The export that runs.
    pub phase: Phase,
    /// How long it has run by itself.
    pub spent: Duration,
    /// How long it may.
    pub deadline: Duration,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "plugin {} outlived its deadline in {} on worker {}: {:.1?} of computing where {:.1?} are allowed; if that is \
             not an endless loop, give it smaller batches or raise `[limits] step_deadline`",
            self.plugin, self.phase, self.worker, self.spent, self.deadline
        )
    }
}

/// One instance's stopwatch. Its thread starts and stops it, the watchdog or the epoch callback reads it.
#[derive(Debug)]
pub struct StepClock {
    plugin: String,
    worker: u32,
    deadline: Duration,
    cancelled: Arc<AtomicBool>,
    origin: Instant,
    phase: AtomicU8,
    /// Nanoseconds after `origin` at which the call began, plus one; 0 between calls.
    started: AtomicU64,
    /// Nanoseconds of this call that were spent waiting.
    waited: AtomicU64,
    /// Nanoseconds after `origin` at which waiting began, plus one; 0 while the plugin runs.
    waiting: AtomicU64,
    /// The `started` of the last call that was reported as an overrun, so that it is reported once.
    reported: AtomicU64,
    /// Nanoseconds after `origin` at which a reader first saw the cancel flag in this call, plus one.
    cancel_seen: AtomicU64,
}

impl StepClock {
    /// A stopped clock.
    pub fn new(plugin: &str, worker: u32, deadline: Duration, cancelled: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            plugin: plugin.into(),
            worker,
            deadline,
            cancelled,
            origin: Instant::now(),
            phase: AtomicU8::new(0),
            started: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            cancel_seen: AtomicU64::new(0),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }

    /// A call begins.
    pub fn start(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.cancel_seen.store(0, Ordering::Relaxed);
        self.started.store(self.now() + 1, Ordering::Release);
    }

    /// The call is over.
    pub fn stop(&self) {
        self.started.store(0, Ordering::Release);
    }

    /// The plugin waits for the host from here; gives what [`StepClock::resume`] wants back.
    pub(crate) fn wait(&self) -> u64 {
        let now = self.now();
        self.waiting.store(now + 1, Ordering::Release);
        now
    }

    /// The host answered; gives the nanoseconds that it took.
    pub(crate) fn resume(&self, since: u64) -> u64 {
        let spent = self.now().saturating_sub(since);
        // `waited` first: a reader that sees the wait ended must also see it counted.
        self.waited.fetch_add(spent, Ordering::Release);
        self.waiting.store(0, Ordering::Release);
        spent
    }

    /// How long the running call has computed by itself; `None` between calls.
    pub fn spent(&self) -> Option<Duration> {
        let started = self.started.load(Ordering::Acquire);
        let waiting = self.waiting.load(Ordering::Acquire);
        let waited = self.waited.load(Ordering::Acquire);
        if started == 0 || self.started.load(Ordering::Acquire) != started {
            return None;
        }
        let until = if waiting == 0 { self.now() } else { waiting - 1 };
        Some(Duration::from_nanos(until.saturating_sub(started - 1).saturating_sub(waited)))
    }

    /// The overrun, when the running call has outlived its deadline.
    pub fn overrun(&self) -> Option<Overrun> {
        let spent = self.spent().filter(|spent| *spent > self.deadline)?;
        let phase = Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed)) % Phase::ALL.len()];
        Some(Overrun { plugin: self.plugin.clone(), worker: self.worker, phase, spent, deadline: self.deadline })
    }

    /// [`StepClock::overrun`], but at most once a call.
    pub(crate) fn fresh_overrun(&self) -> Option<Overrun> {
        let started = self.started.load(Ordering::Acquire);
        let overrun = self.overrun()?;
        (self.reported.swap(started, Ordering::Relaxed) != started).then_some(overrun)
    }

    /// Whether the run was cancelled longer than `grace` ago, as far as this clock's reader has seen.
    pub(crate) fn cancelled_for(&self, grace: Duration) -> bool {
        if !self.cancelled.load(Ordering::Relaxed) {
            return false;
        }
        let now = self.now();
        match self.cancel_seen.compare_exchange(0, now + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => grace.is_zero(),
            Err(seen) => Duration::from_nanos(now.saturating_sub(seen - 1)) >= grace,
        }
    }

    /// How long a call may run.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(deadline: Duration) -> Arc<StepClock> {
        StepClock::new("p", 3, deadline, Arc::default())
    }

    #[test]
    fn waiting_for_the_host_does_not_count() {
        let c = clock(Duration::from_millis(20));
        c.start(Phase::Step);
        let since = c.wait();
        std::thread::sleep(Duration::from_millis(40));
        assert!(c.overrun().is_none(), "while it waits");
        assert!(c.resume(since) >= 40_000_000);
        assert!(c.overrun().is_none(), "after it waited");
        std::thread::sleep(Duration::from_millis(30));
        let o = c.overrun().expect("it computed for longer than its deadline");
        assert_eq!((o.phase, o.worker), (Phase::Step, 3));
        c.stop();
        assert!(c.spent().is_none());
    }

    #[test]
    fn cancelling_gives_a_grace() {
        let flag = Arc::new(AtomicBool::new(false));
        let c = StepClock::new("p", 0, Duration::MAX, flag.clone());
        c.start(Phase::Step);
        assert!(!c.cancelled_for(Duration::ZERO));
        flag.store(true, Ordering::Relaxed);
        assert!(!c.cancelled_for(Duration::from_millis(5)));
        std::thread::sleep(Duration::from_millis(6));
        assert!(c.cancelled_for(Duration::from_millis(5)));
    }
}
