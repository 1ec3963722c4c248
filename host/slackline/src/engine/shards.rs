//! The job's shards in this process: each behind a lock, with the gate in front.
//!
//! There is no thread per shard here: the worker that ticks applies its own part under the shard's write lock, and the
//! last worker of a BSP clock applies everyone's. With as many workers as cores a separate owner thread would only add
//! two wake-ups a clock. Readers share the lock and hold it for one bulk copy.

use crate::engine::cuts::{CutMessage, CutSchedule};
use crossbeam_channel::Sender;
use parking_lot::{Condvar, Mutex, RwLock};
use slackline_client::LocalShards;
use slackline_core::ports::ShardRows;
use slackline_core::{Clock, HostError, SealedPart, ShardId};
use slackline_server::{Output, Received, Shard, TableSnapshot};
use std::time::{Duration, Instant};

/// All shards of a job.
pub struct Shards {
    shards: Vec<LocalShard>,
    begun: Instant,
    /// How long a read may wait at the gate.
    deadline: Duration,
    schedule: CutSchedule,
    /// Taken away when the workers are done, so that the cut keeper sees the end.
    cuts: Mutex<Option<Sender<CutMessage>>>,
}

struct LocalShard {
    shard: RwLock<Shard>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

struct Gate {
    min: Clock,
    closed: bool,
}

impl Shards {
    /// Takes shards at their starting clock; snapshots for scheduled cuts go to `cuts`.
    pub fn new(
        shards: Vec<Shard>,
        deadline: Duration,
        schedule: CutSchedule,
        cuts: Option<Sender<CutMessage>>,
    ) -> Self {
        let shards = shards
            .into_iter()
            .map(|mut shard| {
                if cuts.is_some()
                    && let Some(at) = schedule.after(shard.min_clock())
                {
                    shard.request_cut(at, &mut Vec::new());
                }
                let gate = Mutex::new(Gate { min: shard.min_clock(), closed: false });
                LocalShard { shard: RwLock::new(shard), gate, moved: Condvar::new() }
            })
            .collect();
        Self { shards, begun: Instant::now(), deadline, schedule, cuts: Mutex::new(cuts) }
    }

    /// Opens no gate any more: whoever waits, or comes to wait, is told that the job is over.
    pub fn close(&self) {
        for shard in &self.shards {
            shard.gate.lock().closed = true;
            shard.moved.notify_all();
        }
    }

    /// Hands in all rows for the cut at `at`, which no part stamped `at` or later will follow.
    pub fn hand_in(&self, at: Clock) {
        let Some(cuts) = self.cuts.lock().clone() else { return };
        for (shard, tables) in (0..).map(ShardId).zip(self.snapshots()) {
            // When the keeper has ended, it has reported why.
            let _ = cuts.send(CutMessage::Shard { at, shard, tables });
        }
    }

    /// No more cuts come from here.
    pub fn release(&self) {
        self.cuts.lock().take();
    }

    /// Copies of all rows of all shards, by shard.
    pub fn snapshots(&self) -> Vec<Vec<TableSnapshot>> {
        self.shards.iter().map(|s| s.shard.read().snapshot()).collect()
    }

    /// Bytes that rows take, and rows that were applied.
    pub fn totals(&self) -> (u64, u64) {
        self.shards.iter().fold((0, 0), |(bytes, rows), s| {
            let shard = s.shard.read();
            (bytes + shard.bytes(), rows + shard.applied_counts().1)
        })
    }

    /// Number of shards.
    pub fn count(&self) -> u32 {
        self.shards.len() as u32
    }
}

impl LocalShards for Shards {
    fn wait(&self, shard: ShardId, need: Clock) -> Result<Clock, HostError> {
        let shard = &self.shards[shard.index()];
        let mut gate = shard.gate.lock();
        let until = Instant::now() + self.deadline;
        while gate.min < need {
            if gate.closed {
                return Err(HostError::Cancelled);
            }
            if shard.moved.wait_until(&mut gate, until).timed_out() && gate.min < need {
                return Err(HostError::Unavailable(format!(
                    "waited {} s at the gate for clock {need} while the slowest worker is at {}; raise \
                     limits.host_call_deadline if its clocks are that long",
                    self.deadline.as_secs(),
                    gate.min
                )));
            }
        }
        Ok(gate.min)
    }

    fn read(&self, shard: ShardId, read: &mut dyn FnMut(&dyn ShardRows)) {
        read(&*self.shards[shard.index()].shard.read());
    }

    fn send(&self, id: ShardId, part: SealedPart) {
        let local = &self.shards[id.index()];
        let (mut out, mut due, mut min) = (Vec::new(), Vec::new(), None);
        {
            let mut shard = local.shard.write();
            // A refused part would stop its worker's clock for ever. The worker has checked every row of it, so this
            // would be a fault of ours, and the worker's thread reports it as one.
            assert_ne!(shard.receive_part(part, &mut out), Received::Refused, "a part of this process was refused");
            while !out.is_empty() {
                for output in std::mem::take(&mut out) {
                    match output {
                        Output::MinClock(clock) => min = Some(clock),
                        Output::CutDue(at) => {
                            due.push((at, shard.snapshot()));
                            shard.release_cut(self.schedule.after(at), &mut out);
                        }
                        // Workers of this process read the shard itself.
                        Output::Send(..) => {}
                    }
                }
            }
        }
        if let Some(min) = min {
            local.gate.lock().min = min;
            local.moved.notify_all();
        }
        for (at, tables) in due {
            if let Some(cuts) = self.cuts.lock().clone() {
                // The cut writer ends only after the workers; if it died, its error is reported from there.
                let _ = cuts.send(CutMessage::Shard { at, shard: id, tables });
            }
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}
