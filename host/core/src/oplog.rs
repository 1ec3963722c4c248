//! A worker's updates of the current clock to the rows of one table at one shard, coalesced by row.
//!
//! An oplog is written by `inc`, read through by `get` (C3), and frozen at the tick: its deltas become a block that the
//! shard and the worker share, while the worker keeps the index to go on reading through it until the shard has applied
//! it. Frozen logs are recycled, so a steady state allocates nothing.

use crate::ids::TableId;
use crate::part::{RowDeltas, TableDeltas};
use crate::sparse::SparseRow;
use crate::table::{Layout, TableSpec};
use crate::values::{DType, Element, ValuesMut, ValuesRef};
use std::ops::Range;
use std::sync::Arc;

/// Coalesced updates of one table at one shard. Rows are ids of the whole table; the caller has checked that they lie in
/// the shard's range and that lengths agree.
pub trait Oplog: Send + Sync {
    /// Adds rows × width dense values. `places` picks the rows of `rows` (and of `deltas`) that belong here.
    fn add_dense(&mut self, rows: &[u64], places: Option<&[u32]>, deltas: ValuesRef<'_>);
    /// Adds to one sparse row.
    fn add_sparse(&mut self, row: u64, columns: &[u32], values: ValuesRef<'_>);
    /// Adds this log's deltas to rows that were read: row `rows[p]` at place `p` of `out`.
    fn overlay_dense(&self, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>);
    /// Calls `add` with this log's deltas to one sparse row, if it has any.
    fn overlay_sparse(&self, row: u64, add: &mut dyn FnMut(&[u32], ValuesRef<'_>));
    /// Whether it holds no update.
    fn is_empty(&self) -> bool;
    /// Freezes it: no more updates; the block travels to the shard.
    fn freeze(&mut self) -> Arc<TableDeltas>;
    /// The frozen block.
    fn block(&self) -> Option<&TableDeltas>;
    /// Empties it for reuse, taking the block's memory back when the shard has let go of it.
    fn recycle(&mut self);
}

/// An oplog for `table`, for rows in `range`.
pub fn new_oplog(id: TableId, table: &TableSpec, range: Range<u64>) -> Box<dyn Oplog> {
    match table.dtype {
        DType::F64 => typed::<f64>(id, table, range),
        DType::I32 => typed::<i32>(id, table, range),
        DType::I64 => typed::<i64>(id, table, range),
        _ => typed::<f32>(id, table, range),
    }
}

fn typed<T: Element>(id: TableId, table: &TableSpec, range: Range<u64>) -> Box<dyn Oplog> {
    let index = Index::new(range);
    match table.layout {
        Layout::Dense => {
            Box::new(Dense::<T> { id, width: table.width as usize, index, open: Open::default(), frozen: None })
        }
        Layout::Sparse => {
            Box::new(Sparse::<T> { id, index, rows: Vec::new(), data: Vec::new(), spare: Vec::new(), frozen: None })
        }
    }
}

/// Row id → slot, direct: four bytes a row of the shard, touched only where updates are.
struct Index {
    first: u64,
    /// 0: no slot; else slot + 1. Allocated on the first update.
    slots: Vec<u32>,
    rows: usize,
}

impl Index {
    fn new(range: Range<u64>) -> Self {
        Self { first: range.start, slots: Vec::new(), rows: (range.end - range.start) as usize }
    }

    #[inline]
    fn get(&self, row: u64) -> Option<usize> {
        match self.slots.get((row - self.first) as usize) {
            Some(&slot) if slot != 0 => Some(slot as usize - 1),
            _ => None,
        }
    }

    /// The slot of `row`, and whether it is new (then it is `next`).
    #[inline]
    fn slot(&mut self, row: u64, next: usize) -> (usize, bool) {
        if self.slots.is_empty() {
            self.slots = vec![0; self.rows];
        }
        let slot = &mut self.slots[(row - self.first) as usize];
        if *slot == 0 {
            *slot = next as u32 + 1;
            (next, true)
        } else {
            (*slot as usize - 1, false)
        }
    }

    fn clear(&mut self, rows: &[u64]) {
        if rows.len() * 8 > self.slots.len() {
            self.slots.fill(0);
        } else {
            for &row in rows {
                self.slots[(row - self.first) as usize] = 0;
            }
        }
    }
}

struct Open<T> {
    rows: Vec<u64>,
    deltas: Vec<T>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), deltas: Vec::new() }
    }
}

struct Dense<T> {
    id: TableId,
    width: usize,
    index: Index,
    open: Open<T>,
    frozen: Option<Arc<TableDeltas>>,
}

impl<T: Element> Dense<T> {
    fn deltas(&self) -> &[T] {
        match self.frozen.as_deref() {
            Some(TableDeltas { deltas: RowDeltas::Dense(v), .. }) => T::of(v).map_or(&[], Vec::as_slice),
            _ => &self.open.deltas,
        }
    }
}

/// Calls `f(place, row)` for the chosen places, or for all.
#[inline]
pub fn each_place(rows: &[u64], places: Option<&[u32]>, mut f: impl FnMut(usize, u64)) {
    match places {
        None => rows.iter().enumerate().for_each(|(place, &row)| f(place, row)),
        Some(places) => places.iter().for_each(|&p| f(p as usize, rows[p as usize])),
    }
}

impl<T: Element> Oplog for Dense<T> {
    fn add_dense(&mut self, rows: &[u64], places: Option<&[u32]>, deltas: ValuesRef<'_>) {
        let (Some(deltas), width) = (T::slice(deltas), self.width) else { return };
        let (index, open) = (&mut self.index, &mut self.open);
        each_place(rows, places, |place, row| {
            let delta = &deltas[place * width..(place + 1) * width];
            let (slot, new) = index.slot(row, open.rows.len());
            if new {
                open.rows.push(row);
                open.deltas.extend_from_slice(delta);
            } else {
                add_to(&mut open.deltas[slot * width..(slot + 1) * width], delta);
            }
        });
    }

    fn add_sparse(&mut self, _row: u64, _columns: &[u32], _values: ValuesRef<'_>) {}

    fn overlay_dense(&self, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>) {
        let Some(out) = T::slice_mut(out) else { return };
        let (deltas, width) = (self.deltas(), self.width);
        each_place(rows, places, |place, row| {
            if let Some(slot) = self.index.get(row) {
                add_to(&mut out[place * width..(place + 1) * width], &deltas[slot * width..(slot + 1) * width]);
            }
        });
    }

    fn overlay_sparse(&self, _row: u64, _add: &mut dyn FnMut(&[u32], ValuesRef<'_>)) {}

    fn is_empty(&self) -> bool {
        self.open.rows.is_empty() && self.frozen.is_none()
    }

    fn freeze(&mut self) -> Arc<TableDeltas> {
        let open = std::mem::take(&mut self.open);
        let deltas = RowDeltas::Dense(T::wrap(open.deltas));
        let block = Arc::new(TableDeltas { table: self.id, rows: open.rows, deltas });
        self.frozen = Some(block.clone());
        block
    }

    fn block(&self) -> Option<&TableDeltas> {
        self.frozen.as_deref()
    }

    fn recycle(&mut self) {
        if let Some(block) = self.frozen.take() {
            self.index.clear(&block.rows);
            if let Ok(TableDeltas { mut rows, deltas: RowDeltas::Dense(mut values), .. }) = Arc::try_unwrap(block) {
                rows.clear();
                if let Some(v) = T::of_mut(&mut values) {
                    v.clear();
                    self.open = Open { rows, deltas: std::mem::take(v) };
                }
            }
        }
    }
}

#[inline]
fn add_to<T: Element>(to: &mut [T], delta: &[T]) {
    for (a, &d) in to.iter_mut().zip(delta) {
        *a = a.plus(d);
    }
}

struct Sparse<T> {
    id: TableId,
    index: Index,
    rows: Vec<u64>,
    data: Vec<SparseRow<T>>,
    spare: Vec<SparseRow<T>>,
    frozen: Option<Arc<TableDeltas>>,
}

impl<T: Element> Oplog for Sparse<T> {
    fn add_dense(&mut self, _rows: &[u64], _places: Option<&[u32]>, _deltas: ValuesRef<'_>) {}

    fn add_sparse(&mut self, row: u64, columns: &[u32], values: ValuesRef<'_>) {
        let Some(values) = T::slice(values) else { return };
        let (slot, new) = self.index.slot(row, self.rows.len());
        if new {
            self.rows.push(row);
            self.data.push(self.spare.pop().unwrap_or_default());
        }
        self.data[slot].add(columns, values);
    }

    fn overlay_dense(&self, _rows: &[u64], _places: Option<&[u32]>, _out: ValuesMut<'_>) {}

    fn overlay_sparse(&self, row: u64, add: &mut dyn FnMut(&[u32], ValuesRef<'_>)) {
        let Some(slot) = self.index.get(row) else { return };
        match self.frozen.as_deref() {
            Some(TableDeltas { deltas: RowDeltas::Sparse { offsets, columns, values }, .. }) => {
                let (from, to) = (offsets[slot] as usize, offsets[slot + 1] as usize);
                if let Some(v) = T::of(values) {
                    add(&columns[from..to], T::wrap_ref(&v[from..to]));
                }
            }
            _ => add(self.data[slot].columns(), T::wrap_ref(self.data[slot].values())),
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.frozen.is_none()
    }

    fn freeze(&mut self) -> Arc<TableDeltas> {
        let mut offsets = Vec::with_capacity(self.rows.len() + 1);
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        offsets.push(0);
        for mut row in self.data.drain(..) {
            columns.extend_from_slice(row.columns());
            values.extend_from_slice(row.values());
            offsets.push(columns.len() as u32);
            row.clear();
            self.spare.push(row);
        }
        let deltas = RowDeltas::Sparse { offsets, columns, values: T::wrap(values) };
        let block = Arc::new(TableDeltas { table: self.id, rows: std::mem::take(&mut self.rows), deltas });
        self.frozen = Some(block.clone());
        block
    }

    fn block(&self) -> Option<&TableDeltas> {
        self.frozen.as_deref()
    }

    fn recycle(&mut self) {
        if let Some(block) = self.frozen.take() {
            self.index.clear(&block.rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Init;
    use crate::values::Values;

    fn table(layout: Layout) -> TableSpec {
        TableSpec { name: "t".into(), dtype: DType::F32, layout, rows: 100, width: 2, init: Init::Zero }
    }

    #[test]
    fn updates_coalesce_and_reads_see_them_before_and_after_the_freeze() {
        let mut log = new_oplog(TableId(0), &table(Layout::Dense), 10..60);
        log.add_dense(&[12, 59, 12], None, ValuesRef::F32(&[1., 2., 3., 4., 10., 20.]));
        let check = |log: &dyn Oplog| {
            let mut out = [0.5f32; 6];
            log.overlay_dense(&[59, 11, 12], None, ValuesMut::F32(&mut out));
            assert_eq!(out, [3.5, 4.5, 0.5, 0.5, 11.5, 22.5]);
        };
        check(&*log);
        assert_eq!(log.freeze().rows, [12, 59]);
        check(&*log);
        log.recycle();
        assert!(log.is_empty());
        let mut out = [0f32; 2];
        log.overlay_dense(&[12], None, ValuesMut::F32(&mut out));
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn places_pick_rows_of_a_mixed_request() {
        let mut log = new_oplog(TableId(0), &table(Layout::Dense), 0..50);
        log.add_dense(&[70, 3], Some(&[1]), ValuesRef::F32(&[9., 9., 1., 2.]));
        let mut out = [0f32; 4];
        log.overlay_dense(&[3, 70], Some(&[0]), ValuesMut::F32(&mut out));
        assert_eq!(out, [1., 2., 0., 0.]);
    }

    #[test]
    fn sparse_updates_coalesce_by_column_and_cancel_to_nothing() {
        let mut log = new_oplog(TableId(0), &table(Layout::Sparse), 0..100);
        log.add_sparse(5, &[7, 1], ValuesRef::F32(&[1.0, 2.0]));
        log.add_sparse(5, &[7], ValuesRef::F32(&[-1.0]));
        let block = log.freeze();
        let want = RowDeltas::Sparse { offsets: vec![0, 1], columns: vec![1], values: Values::F32(vec![2.0]) };
        assert_eq!((&block.rows[..], &block.deltas), (&[5u64][..], &want));
    }
}
