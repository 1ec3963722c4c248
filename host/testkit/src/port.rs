//! The shards as workers in the same process see them.

use crate::mutant::Mutant;
use slackline_client::LocalShards;
use slackline_core::ports::ShardRows;
use slackline_core::{Clock, HostError, PartKey, SealedPart, ShardId, TableId, ValuesMut, ValuesRef, WorkerId};
use slackline_server::Shard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shards that the simulation and its workers share. One thread uses them: the locks are what the port's type asks for.
pub struct Shards {
    shards: Vec<Mutex<Shard>>,
    /// Min clocks that were announced ahead of the data, by a mutant.
    announced: Vec<Mutex<Clock>>,
    now: AtomicU64,
}

impl Shards {
    /// Of these.
    pub fn new(shards: Vec<Shard>) -> Self {
        let announced = shards.iter().map(|_| Mutex::new(0)).collect();
        Self { shards: shards.into_iter().map(Mutex::new).collect(), announced, now: AtomicU64::new(0) }
    }

    /// One of them.
    pub fn shard(&self, id: ShardId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[id.index()])
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.shards.len() as u32
    }

    /// Sets the time.
    pub fn set_now(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
    }

    /// Announces a min clock ahead of the data.
    pub fn announce(&self, id: ShardId, min: Clock) {
        *lock(&self.announced[id.index()]) = min;
    }

    /// The min clock that workers in this process see.
    pub fn min_clock(&self, id: ShardId) -> Clock {
        let announced = *lock(&self.announced[id.index()]);
        announced.max(self.shard(id).min_clock())
    }
}

/// One worker's port: parts wait in it for the network, and a shut gate is an answer, not a wait.
pub struct Port {
    shards: std::sync::Arc<Shards>,
    mutant: Option<Mutant>,
    outbox: Mutex<Vec<(ShardId, SealedPart)>>,
    refusals: AtomicU64,
}

impl Port {
    /// To `shards`.
    pub fn new(shards: std::sync::Arc<Shards>, mutant: Option<Mutant>) -> Self {
        Self { shards, mutant, outbox: Mutex::new(Vec::new()), refusals: AtomicU64::new(0) }
    }

    /// Parts that were sent since the last call.
    pub fn take_parts(&self) -> Vec<(ShardId, SealedPart)> {
        std::mem::take(&mut lock(&self.outbox))
    }

    /// How often the gate was shut.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

impl LocalShards for Port {
    fn wait(&self, shard: ShardId, need: Clock) -> Result<Clock, HostError> {
        let min = self.shards.min_clock(shard);
        if min < need {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(HostError::Unavailable(format!("shard {shard} is at {min}, and {need} is needed")));
        }
        Ok(min)
    }

    fn read(&self, shard: ShardId, read: &mut dyn FnMut(&dyn ShardRows)) {
        let min = self.shards.min_clock(shard);
        read(&Seen { shard: &self.shards.shard(shard), min, mutant: self.mutant });
    }

    fn send(&self, shard: ShardId, part: SealedPart) {
        lock(&self.outbox).push((shard, part));
    }

    fn now(&self) -> u64 {
        self.shards.now.load(Ordering::Relaxed)
    }
}

/// A shard with the words of a mutant about it.
struct Seen<'a> {
    shard: &'a Shard,
    min: Clock,
    mutant: Option<Mutant>,
}

impl ShardRows for Seen<'_> {
    fn min_clock(&self) -> Clock {
        self.min
    }

    fn applied(&self, worker: WorkerId) -> PartKey {
        Mutant::watermark(self.mutant, self.shard.applied(worker))
    }

    fn read_dense(&self, table: TableId, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>) {
        self.shard.read_dense(table, rows, places, out);
    }

    fn read_sparse(&self, table: TableId, row: u64) -> (&[u32], ValuesRef<'_>) {
        self.shard.read_sparse(table, row)
    }

    fn prefetch(&self, table: TableId, rows: &[u64]) {
        self.shard.prefetch(table, rows);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
