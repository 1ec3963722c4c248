//! Who wants to hear of which rows (C5), and which rows changed since the last push.

use slackline_core::part::TableDeltas;
use slackline_core::{TableId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// Subscriptions and changes of one shard. Ordered maps, so that pushes come out the same on every run.
#[derive(Default)]
pub struct Subscribers {
    rows: Vec<BTreeMap<TableId, BTreeSet<u64>>>,
    changed: BTreeMap<TableId, BTreeSet<u64>>,
}

impl Subscribers {
    /// For `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self { rows: vec![BTreeMap::new(); workers], changed: BTreeMap::new() }
    }

    /// From now on `worker` hears of `rows`.
    pub fn subscribe(&mut self, worker: WorkerId, table: TableId, rows: &[u64]) {
        self.rows[worker.index()].entry(table).or_default().extend(rows);
    }

    /// No longer.
    pub fn unsubscribe(&mut self, worker: WorkerId, table: TableId, rows: &[u64]) {
        if let Some(set) = self.rows[worker.index()].get_mut(&table) {
            rows.iter().for_each(|r| {
                set.remove(r);
            });
        }
    }

    /// Rows of a block that was applied; costs nothing while nobody subscribes.
    pub fn note(&mut self, block: &TableDeltas) {
        if self.rows.iter().any(|tables| tables.get(&block.table).is_some_and(|set| !set.is_empty())) {
            self.changed.entry(block.table).or_default().extend(&block.rows);
        }
    }

    /// For each worker, the changed rows that it subscribes to; forgets the changes.
    pub fn take(&mut self) -> Vec<Vec<(TableId, Vec<u64>)>> {
        let changed = std::mem::take(&mut self.changed);
        self.rows
            .iter()
            .map(|tables| {
                changed
                    .iter()
                    .filter_map(|(table, rows)| {
                        let wanted = tables.get(table)?;
                        let rows: Vec<u64> = rows.intersection(wanted).copied().collect();
                        (!rows.is_empty()).then_some((*table, rows))
                    })
                    .collect()
            })
            .collect()
    }
}
