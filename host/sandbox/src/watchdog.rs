//! The threads that end a runaway guest: a watchdog for an expendable process, a ticker for epoch checks.

use crate::clock::{Overrun, StepClock};
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often the epoch advances.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// What to do when a call outlives its deadline. It is called from the watchdog's thread, at most once a call, and
/// usually ends the process.
pub type OnOverrun = Arc<dyn Fn(&Overrun) + Send + Sync>;

/// Watches the clocks of all instances of an engine and reports the first overrun of each.
pub struct Watchdog {
    clocks: Arc<Mutex<Vec<Weak<StepClock>>>>,
    /// Dropping it ends the thread.
    _thread: Periodic,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watchdog")
    }
}

impl Watchdog {
    /// Starts a watchdog that looks every `period`.
    pub fn start(period: Duration, on_overrun: OnOverrun) -> std::io::Result<Self> {
        let clocks: Arc<Mutex<Vec<Weak<StepClock>>>> = Arc::default();
        let seen = clocks.clone();
        let thread = Periodic::start("watchdog", period, move || {
            let mut late = Vec::new();
            seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|clock| {
                let Some(clock) = clock.upgrade() else { return false };
                late.extend(clock.fresh_overrun());
                true
            });
            // Outside the lock: the callback may take long, or never return.
            late.iter().for_each(|o| on_overrun(o));
        })?;
        Ok(Self { clocks, _thread: thread })
    }

    /// Watches `clock` for as long as it lives.
    pub fn watch(&self, clock: &Arc<StepClock>) {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(clock));
    }
}

/// A thread that does something every so often until this is dropped.
#[derive(Debug)]
pub(crate) struct Periodic {
    _stop: Sender<()>,
}

impl Periodic {
    pub(crate) fn start(name: &str, period: Duration, mut act: impl FnMut() + Send + 'static) -> std::io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        std::thread::Builder::new().name(name.into()).spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                act();
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Phase;

    #[test]
    fn a_call_that_outlives_its_deadline_is_reported() {
        let (tell, told) = channel();
        let on_overrun: OnOverrun = Arc::new(move |o: &Overrun| drop(tell.send(o.to_string())));
        let dog = Watchdog::start(Duration::from_millis(1), on_overrun).unwrap();
        let quick = StepClock::new("quick", 0, Duration::from_secs(60), Arc::default());
        let slow = StepClock::new("slow", 1, Duration::from_millis(5), Arc::default());
        dog.watch(&quick);
        dog.watch(&slow);
        quick.start(Phase::Step);
        slow.start(Phase::Step);
        let message = told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(message.contains("plugin slow outlived its deadline in step on worker 1"), "{message}");
    }
}
