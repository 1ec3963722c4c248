//! One worker's updates: the open oplogs of the current clock, and the frozen ones that a shard has not applied yet.
//!
//! Reads go through both (C3). Logs are kept per table and shard, so that sealing moves whole blocks and copies nothing.

use slackline_core::oplog::{Oplog, each_place, new_oplog};
use slackline_core::part::{PartKey, SealedPart};
use slackline_core::{Clock, ShardId, ShardMap, TableId, TableSpec, ValuesMut, ValuesRef, WorkerId};
use std::collections::VecDeque;

/// The updates of one worker.
pub struct WorkerLog {
    worker: WorkerId,
    clock: Clock,
    /// The next part of the current clock, the same for every shard.
    part: u32,
    shards: Vec<ShardLog>,
    maps: Vec<ShardMap>,
    tables: Vec<TableSpec>,
    /// Places of a request by shard, reused from call to call.
    places: Vec<Vec<u32>>,
}

struct ShardLog {
    open: Vec<Box<dyn Oplog>>,
    in_flight: VecDeque<Frozen>,
    /// Empty logs, by table, ready for use.
    spare: Vec<Vec<Box<dyn Oplog>>>,
}

/// What one part holds of one table.
pub type TableLog = (TableId, Box<dyn Oplog>);

struct Frozen {
    key: PartKey,
    logs: Vec<TableLog>,
}

impl WorkerLog {
    /// For `worker`, at `clock`, over `shards` shards.
    pub fn new(worker: WorkerId, clock: Clock, tables: &[TableSpec], shards: u32) -> Self {
        let maps: Vec<ShardMap> = tables.iter().map(|t| ShardMap::new(t, shards)).collect();
        let log = |shard| ShardLog {
            open: (0..tables.len()).map(|t| fresh(t, tables, &maps, shard)).collect(),
            in_flight: VecDeque::new(),
            spare: tables.iter().map(|_| Vec::new()).collect(),
        };
        Self {
            worker,
            clock,
            part: 0,
            shards: (0..shards.max(1)).map(|s| log(ShardId(s))).collect(),
            maps,
            tables: tables.to_vec(),
            places: vec![Vec::new(); shards.max(1) as usize],
        }
    }

    /// The worker's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The job's tables.
    pub fn tables(&self) -> &[TableSpec] {
        &self.tables
    }

    /// Calls `f` for each shard that owns some of `rows`, with the places of those rows (`None`: all).
    pub fn each_shard(&mut self, table: TableId, rows: &[u64], mut f: impl FnMut(&mut Self, ShardId, Option<&[u32]>)) {
        if self.shards.len() == 1 {
            return f(self, ShardId(0), None);
        }
        let mut places = std::mem::take(&mut self.places);
        places.iter_mut().for_each(Vec::clear);
        let map = self.maps[table.index()];
        for (place, &row) in rows.iter().enumerate() {
            places[map.owner(row).index()].push(place as u32);
        }
        for (shard, places) in places.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
            f(self, ShardId(shard as u32), Some(places));
        }
        self.places = places;
    }

    /// Adds to dense rows; the caller has checked ids, type and lengths.
    pub fn inc(&mut self, table: TableId, rows: &[u64], deltas: ValuesRef<'_>) {
        self.each_shard(table, rows, |log, shard, places| {
            log.shards[shard.index()].open[table.index()].add_dense(rows, places, deltas);
        });
    }

    /// Adds to sparse rows; the caller has checked ids, type, columns and lengths.
    pub fn inc_sparse(
        &mut self,
        table: TableId,
        rows: &[u64],
        offsets: &[u32],
        columns: &[u32],
        values: ValuesRef<'_>,
    ) {
        for (&row, w) in rows.iter().zip(offsets.windows(2)) {
            let (from, to) = (w[0] as usize, w[1] as usize);
            let shard = self.maps[table.index()].owner(row);
            if let Some(values) = values.window(from, to - from) {
                self.shards[shard.index()].open[table.index()].add_sparse(row, &columns[from..to], values);
            }
        }
    }

    /// Adds to dense rows that were read from `shard` every update of this worker from `from` on.
    pub fn overlay(
        &self,
        shard: ShardId,
        table: TableId,
        from: PartKey,
        rows: &[u64],
        places: Option<&[u32]>,
        mut out: ValuesMut<'_>,
    ) {
        let log = &self.shards[shard.index()];
        for frozen in log.in_flight.iter().filter(|f| f.key >= from) {
            for (_, oplog) in frozen.logs.iter().filter(|(t, _)| *t == table) {
                oplog.overlay_dense(rows, places, out.reborrow());
            }
        }
        let open = &log.open[table.index()];
        if !open.is_empty() {
            open.overlay_dense(rows, places, out);
        }
    }

    /// The same for one sparse row.
    pub fn overlay_sparse(
        &self,
        shard: ShardId,
        table: TableId,
        from: PartKey,
        row: u64,
        add: &mut dyn FnMut(&[u32], ValuesRef<'_>),
    ) {
        let log = &self.shards[shard.index()];
        for frozen in log.in_flight.iter().filter(|f| f.key >= from) {
            for (_, oplog) in frozen.logs.iter().filter(|(t, _)| *t == table) {
                oplog.overlay_sparse(row, add);
            }
        }
        log.open[table.index()].overlay_sparse(row, add);
    }

    /// Seals what is open into one part for every shard, also where it is empty: parts are numbered alike at every shard,
    /// and the last one carries the clock. Then, if `last`, the next clock begins.
    pub fn seal(&mut self, last: bool) -> Vec<(ShardId, SealedPart)> {
        let key = PartKey { clock: self.clock, part: self.part };
        let mut parts = Vec::with_capacity(self.shards.len());
        for (s, log) in self.shards.iter_mut().enumerate() {
            let mut frozen = Frozen { key, logs: Vec::new() };
            let mut blocks = Vec::new();
            for t in 0..self.tables.len() {
                if log.open[t].is_empty() {
                    continue;
                }
                let next = log.spare[t].pop();
                let next = next.unwrap_or_else(|| fresh(t, &self.tables, &self.maps, ShardId(s as u32)));
                let mut full = std::mem::replace(&mut log.open[t], next);
                blocks.push(full.freeze());
                frozen.logs.push((TableId(t as u32), full));
            }
            if !frozen.logs.is_empty() {
                log.in_flight.push_back(frozen);
            }
            parts.push((ShardId(s as u32), SealedPart { worker: self.worker, key, last, tables: blocks }));
        }
        let after = key.after(last);
        (self.clock, self.part) = (after.clock, after.part);
        parts
    }

    /// Forgets what is open.
    pub fn discard_open(&mut self) {
        for (s, log) in self.shards.iter_mut().enumerate() {
            for (t, open) in log.open.iter_mut().enumerate().filter(|(_, open)| !open.is_empty()) {
                *open = fresh(t, &self.tables, &self.maps, ShardId(s as u32));
            }
        }
    }

    /// A shard has applied everything before `to`: those logs are empty again.
    pub fn applied(&mut self, shard: ShardId, to: PartKey) {
        let log = &mut self.shards[shard.index()];
        while log.in_flight.front().is_some_and(|f| f.key < to) {
            let Some(frozen) = log.in_flight.pop_front() else { return };
            for (table, mut oplog) in frozen.logs {
                oplog.recycle();
                log.spare[table.index()].push(oplog);
            }
        }
    }

    /// Parts that `shard` has not applied yet, oldest first, for folding into a cache.
    pub fn in_flight(&self, shard: ShardId) -> impl Iterator<Item = (PartKey, &[TableLog])> {
        self.shards[shard.index()].in_flight.iter().map(|f| (f.key, &f.logs[..]))
    }

    /// The owner of a row.
    pub fn owner(&self, table: TableId, row: u64) -> ShardId {
        self.maps[table.index()].owner(row)
    }

    /// Number of shards.
    pub fn shards(&self) -> u32 {
        self.shards.len() as u32
    }
}

fn fresh(table: usize, tables: &[TableSpec], maps: &[ShardMap], shard: ShardId) -> Box<dyn Oplog> {
    new_oplog(TableId(table as u32), &tables[table], maps[table].range(shard))
}

/// The rows of a request at the chosen places.
pub fn chosen(rows: &[u64], places: Option<&[u32]>) -> Vec<u64> {
    let mut out = Vec::with_capacity(places.map_or(rows.len(), <[u32]>::len));
    each_place(rows, places, |_, row| out.push(row));
    out
}
