//! A worker's share of a dataset, and the order in which it sees it. The order of an epoch depends on seed, worker and
//! epoch alone, so (epoch, position) is all that a cut needs to hold.

use crate::dataset::Dataset;
use slackline_core::Batch;
use slackline_core::random::mix;
use std::sync::Arc;

/// Which rows.
#[derive(Clone, Debug)]
pub(crate) enum Share {
    /// `len` rows from `start`, `step` apart.
    Stride { start: u64, step: u64, len: u64 },
    /// These, ascending.
    Rows(Arc<[u32]>),
}

impl Share {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Share::Stride { len, .. } => *len,
            Share::Rows(rows) => rows.len() as u64,
        }
    }

    fn row(&self, place: u64) -> u64 {
        match self {
            Share::Stride { start, step, .. } => start + step * place,
            Share::Rows(rows) => rows[place as usize].into(),
        }
    }
}

/// One worker's rows of one dataset. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) share: Share,
    pub(crate) worker: u32,
    pub(crate) batch: usize,
    pub(crate) shuffle: bool,
}

impl Partition {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.share.len()
    }

    /// The place of each row in the dataset, in the partition's order: to put what a worker says of its rows back into
    /// the order of the file.
    pub fn places(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.rows()).map(|p| self.share.row(p))
    }

    /// The rows again and again, each epoch in an order of its own if the job shuffles, for training.
    pub fn cursor(&self, seed: u64) -> Cursor {
        let mut cursor = Cursor { partition: self.clone(), seed, epoch: 0, position: 0, order: Vec::new() };
        cursor.reorder();
        cursor
    }

    /// The rows once, in the order of the file, for preparing, evaluating and predicting.
    pub fn in_order(&self) -> InOrder {
        InOrder { partition: self.clone(), position: 0 }
    }

    fn in_file_order(&self, from: u64) -> Option<Batch> {
        let to = from.saturating_add(self.batch as u64).min(self.rows());
        (from < to).then(|| self.dataset.gather((from..to).collect(), (from..to).map(|p| self.share.row(p))))
    }
}

/// A partition's rows, epoch after epoch.
#[derive(Clone, Debug)]
pub struct Cursor {
    partition: Partition,
    seed: u64,
    epoch: u64,
    position: u64,
    /// The epoch's order; empty when it is the file's.
    order: Vec<u32>,
}

impl Cursor {
    /// The next rows of this epoch. At its end `None`, once; the call after that begins the next epoch.
    #[allow(clippy::should_implement_trait)] // An iterator that goes on after `None` would surprise its users.
    pub fn next(&mut self) -> Option<Batch> {
        let rows = self.partition.rows();
        if self.position >= rows {
            self.epoch += 1;
            self.position = 0;
            self.reorder();
            return None;
        }
        let from = self.position;
        let to = from.saturating_add(self.partition.batch as u64).min(rows);
        self.position = to;
        if self.order.is_empty() {
            return self.partition.in_file_order(from);
        }
        let places = &self.order[from as usize..to as usize];
        let ids = places.iter().map(|p| u64::from(*p)).collect();
        let share = &self.partition.share;
        Some(self.partition.dataset.gather(ids, places.iter().map(|p| share.row(u64::from(*p)))))
    }

    /// Which epoch the next batch belongs to, from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Rows of this epoch already given.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes to where another cursor of the same seed and partition was: what follows is the same.
    pub fn seek(&mut self, epoch: u64, position: u64) {
        let moved = self.epoch != epoch;
        (self.epoch, self.position) = (epoch, position.min(self.partition.rows()));
        if moved {
            self.reorder();
        }
    }

    fn reorder(&mut self) {
        if !self.partition.shuffle {
            return;
        }
        // A dataset has fewer than 2³² rows (the intake sees to it).
        self.order.clear();
        self.order.extend(0..self.partition.rows() as u32);
        let key = mix(mix(mix(self.seed) ^ u64::from(self.partition.worker)) ^ self.epoch);
        shuffle(&mut self.order, key);
    }
}

/// Fisher–Yates with draws that are a function of (key, step).
fn shuffle(order: &mut [u32], key: u64) {
    for i in (1..order.len()).rev() {
        let draw = mix(key ^ mix(i as u64));
        // Multiply and shift (Lemire, 2019): below i + 1, its bias under 2⁻³² for fewer than 2³² rows.
        let j = ((u128::from(draw) * (i as u128 + 1)) >> 64) as usize;
        order.swap(i, j);
    }
}

/// A partition's rows once, in the order of the file.
#[derive(Clone, Debug)]
pub struct InOrder {
    partition: Partition,
    position: u64,
}

impl Iterator for InOrder {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let batch = self.partition.in_file_order(self.position)?;
        self.position += batch.rows() as u64;
        Some(batch)
    }
}
