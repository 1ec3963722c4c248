//! The rows of one table that one shard owns.
//!
//! Dense rows lie in one flat slab aligned to cache lines, found by subtraction: no map, no pointer per row. A bulk read
//! asks the memory for rows a little ahead of the one it copies, which hides the cache miss that a random row costs.

use slackline_core::oplog::each_place;
use slackline_core::part::{RowDeltas, TableDeltas};
use slackline_core::sparse::SparseRow;
use slackline_core::{DType, Element, Layout, TableSpec, Values, ValuesMut, ValuesRef};
use std::ops::Range;

/// A copy of the rows of one table at one shard, for a cut.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSnapshot {
    /// The rows it holds.
    pub range: Range<u64>,
    /// All of them in order, in the layout of the table.
    pub rows: RowDeltas,
}

/// Rows of one table at one shard. Row ids are those of the whole table and have been checked against `range`.
pub trait TableRows: Send + Sync {
    /// The rows that are here.
    fn range(&self) -> Range<u64>;
    /// Whether a block is one that these rows can take: its rows are here, and its type, layout and lengths agree.
    fn fits(&self, block: &TableDeltas) -> bool;
    /// Adds a block that fits.
    fn apply(&mut self, block: &TableDeltas);
    /// Copies dense rows to places of `out` (see `ShardRows::read_dense`).
    fn read_dense(&self, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>);
    /// One sparse row.
    fn read_sparse(&self, row: u64) -> (&[u32], ValuesRef<'_>);
    /// Some rows, for a message.
    fn collect(&self, rows: &[u64]) -> RowDeltas;
    /// A copy of everything.
    fn snapshot(&self) -> TableSnapshot;
    /// Hints that these rows are read soon.
    fn prefetch(&self, rows: &[u64]);
    /// Bytes held.
    fn bytes(&self) -> u64;
}

/// Rows in their initial state.
pub fn initial_rows(table: &TableSpec, seed: u64, range: Range<u64>) -> Box<dyn TableRows> {
    let values = match table.layout {
        Layout::Dense => table.initial(seed, range.start, (range.end - range.start) as usize),
        Layout::Sparse => Values::zeros(table.dtype, 0),
    };
    let rows = match table.layout {
        Layout::Dense => RowDeltas::Dense(values),
        Layout::Sparse => {
            RowDeltas::Sparse { offsets: vec![0; (range.end - range.start) as usize + 1], columns: Vec::new(), values }
        }
    };
    match restored_rows(table, TableSnapshot { range, rows }) {
        Some(rows) => rows,
        None => unreachable!("rows made here fit their own table"),
    }
}

/// Rows from a cut; `None` when the snapshot does not fit the table.
pub fn restored_rows(table: &TableSpec, snapshot: TableSnapshot) -> Option<Box<dyn TableRows>> {
    match table.dtype {
        DType::F32 => restore::<f32>(table, snapshot),
        DType::F64 => restore::<f64>(table, snapshot),
        DType::I32 => restore::<i32>(table, snapshot),
        DType::I64 => restore::<i64>(table, snapshot),
        _ => None,
    }
}

fn restore<T: Element>(table: &TableSpec, snapshot: TableSnapshot) -> Option<Box<dyn TableRows>> {
    let (range, width) = (snapshot.range, table.width as usize);
    let n = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    match (table.layout, snapshot.rows) {
        (Layout::Dense, RowDeltas::Dense(values)) => {
            let values = T::of(&values)?;
            (values.len() == n.checked_mul(width)?)
                .then(|| Box::new(Dense { range, width, slab: Slab::from_slice(values) }) as Box<dyn TableRows>)
        }
        (Layout::Sparse, RowDeltas::Sparse { offsets, columns, values }) => {
            let values = T::of(&values)?;
            if offsets.len() != n + 1 || columns.len() != values.len() || !fits(&offsets, &columns, width) {
                return None;
            }
            let mut data = vec![SparseRow::default(); n];
            for (row, w) in data.iter_mut().zip(offsets.windows(2)) {
                let (from, to) = (w[0] as usize, w[1] as usize);
                row.add(&columns[from..to], &values[from..to]);
            }
            Some(Box::new(Sparse { range, width, data }))
        }
        _ => None,
    }
}

/// Whether offsets ascend to the number of columns and every column is below `width`.
fn fits(offsets: &[u32], columns: &[u32], width: usize) -> bool {
    offsets.first() == Some(&0)
        && offsets.last().is_some_and(|&end| end as usize == columns.len())
        && offsets.windows(2).all(|w| w[0] <= w[1])
        && columns.iter().all(|&c| (c as usize) < width)
}

/// Whether all rows lie in `range`, in one pass without a branch per row, so that it vectorises.
fn all_in(rows: &[u64], range: &Range<u64>) -> bool {
    rows.iter().fold(true, |ok, r| ok & range.contains(r))
}

const LINE: usize = 64;

/// A cache line of bytes; the unit of allocation, so that rows of 16 f32 never straddle two lines.
#[derive(Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

// SAFETY: an array of bytes of the same size as its alignment: no padding, every bit pattern valid, Copy, 'static.
unsafe impl bytemuck::Pod for Line {}

/// A flat array aligned to cache lines.
struct Slab<T> {
    lines: Vec<Line>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Element> Slab<T> {
    fn from_slice(values: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut lines = vec![Line([0; LINE]); bytes.len().div_ceil(LINE)];
        bytemuck::cast_slice_mut::<Line, u8>(&mut lines)[..bytes.len()].copy_from_slice(bytes);
        Self { lines, len: values.len(), of: std::marker::PhantomData }
    }

    #[inline]
    fn values(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    #[inline]
    fn values_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

struct Dense<T> {
    range: Range<u64>,
    width: usize,
    slab: Slab<T>,
}

/// How many rows ahead of the copy the memory is asked for (measured best of 4, 8, 16, 32 on rows of 16 f32).
const AHEAD: usize = 16;

impl<T: Element> TableRows for Dense<T> {
    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn fits(&self, block: &TableDeltas) -> bool {
        let RowDeltas::Dense(values) = &block.deltas else { return false };
        T::of(values).is_some_and(|v| block.rows.len().checked_mul(self.width) == Some(v.len()))
            && all_in(&block.rows, &self.range)
    }

    fn apply(&mut self, block: &TableDeltas) {
        let RowDeltas::Dense(values) = &block.deltas else { return };
        let Some(deltas) = T::of(values) else { return };
        let (first, width) = (self.range.start, self.width);
        let slab = self.slab.values_mut();
        for (i, &row) in block.rows.iter().enumerate() {
            if let Some(&ahead) = block.rows.get(i + AHEAD) {
                prefetch_at(slab, (ahead - first) as usize * width);
            }
            let at = (row - first) as usize * width;
            for (a, &d) in slab[at..at + width].iter_mut().zip(&deltas[i * width..(i + 1) * width]) {
                *a = a.plus(d);
            }
        }
    }

    fn read_dense(&self, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>) {
        let Some(out) = T::slice_mut(out) else { return };
        // A width known at compile time turns the copy of a short row into a few register moves.
        match (self.width, places) {
            (8, None) => self.copy_all::<8>(rows, out),
            (16, None) => self.copy_all::<16>(rows, out),
            (32, None) => self.copy_all::<32>(rows, out),
            _ => self.copy_places(rows, places, out),
        }
    }

    fn read_sparse(&self, _row: u64) -> (&[u32], ValuesRef<'_>) {
        (&[], T::wrap_ref(&[]))
    }

    fn collect(&self, rows: &[u64]) -> RowDeltas {
        let mut out = vec![T::default(); rows.len() * self.width];
        self.read_dense(rows, None, T::wrap_mut(&mut out));
        RowDeltas::Dense(T::wrap(out))
    }

    fn snapshot(&self) -> TableSnapshot {
        TableSnapshot { range: self.range.clone(), rows: RowDeltas::Dense(T::wrap(self.slab.values().to_vec())) }
    }

    fn prefetch(&self, rows: &[u64]) {
        let slab = self.slab.values();
        for &row in rows {
            prefetch_at(slab, (row - self.range.start) as usize * self.width);
        }
    }

    fn bytes(&self) -> u64 {
        (self.slab.len * size_of::<T>()) as u64
    }
}

impl<T: Element> Dense<T> {
    #[inline]
    fn copy_all<const W: usize>(&self, rows: &[u64], out: &mut [T]) {
        let (slab, _) = self.slab.values().as_chunks::<W>();
        let (out, _) = out.as_chunks_mut::<W>();
        for (i, (to, &row)) in out.iter_mut().zip(rows).enumerate() {
            if let Some(&ahead) = rows.get(i + AHEAD) {
                prefetch_at(slab, (ahead - self.range.start) as usize);
            }
            *to = slab[(row - self.range.start) as usize];
        }
    }

    fn copy_places(&self, rows: &[u64], places: Option<&[u32]>, out: &mut [T]) {
        let (slab, width) = (self.slab.values(), self.width);
        each_place(rows, places, |place, row| {
            let ahead = if places.is_none() { rows.get(place + AHEAD) } else { None };
            if let Some(&ahead) = ahead {
                prefetch_at(slab, (ahead - self.range.start) as usize * width);
            }
            let at = (row - self.range.start) as usize * width;
            out[place * width..(place + 1) * width].copy_from_slice(&slab[at..at + width]);
        });
    }
}

/// Asks the memory for the line that holds `slab[at]`.
#[inline(always)]
fn prefetch_at<T>(slab: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < slab.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: `at` is inside the slice, and a prefetch only hints: it reads nothing and cannot fault.
        unsafe { _mm_prefetch(slab.as_ptr().add(at).cast::<i8>(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slab, at);
}

struct Sparse<T> {
    range: Range<u64>,
    width: usize,
    data: Vec<SparseRow<T>>,
}

impl<T: Element> TableRows for Sparse<T> {
    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn fits(&self, block: &TableDeltas) -> bool {
        let RowDeltas::Sparse { offsets, columns, values } = &block.deltas else { return false };
        T::of(values).is_some_and(|v| v.len() == columns.len())
            && offsets.len() == block.rows.len() + 1
            && fits(offsets, columns, self.width)
            && all_in(&block.rows, &self.range)
    }

    fn apply(&mut self, block: &TableDeltas) {
        let RowDeltas::Sparse { offsets, columns, values } = &block.deltas else { return };
        let Some(values) = T::of(values) else { return };
        for (&row, w) in block.rows.iter().zip(offsets.windows(2)) {
            let (from, to) = (w[0] as usize, w[1] as usize);
            self.data[(row - self.range.start) as usize].add(&columns[from..to], &values[from..to]);
        }
    }

    fn read_dense(&self, _rows: &[u64], _places: Option<&[u32]>, _out: ValuesMut<'_>) {}

    fn read_sparse(&self, row: u64) -> (&[u32], ValuesRef<'_>) {
        let row = &self.data[(row - self.range.start) as usize];
        (row.columns(), T::wrap_ref(row.values()))
    }

    fn collect(&self, rows: &[u64]) -> RowDeltas {
        let (mut offsets, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::new());
        for &row in rows {
            let row = &self.data[(row - self.range.start) as usize];
            columns.extend_from_slice(row.columns());
            values.extend_from_slice(row.values());
            offsets.push(columns.len() as u32);
        }
        RowDeltas::Sparse { offsets, columns, values: T::wrap(values) }
    }

    fn snapshot(&self) -> TableSnapshot {
        let all: Vec<u64> = self.range.clone().collect();
        TableSnapshot { range: self.range.clone(), rows: self.collect(&all) }
    }

    fn prefetch(&self, _rows: &[u64]) {}

    fn bytes(&self) -> u64 {
        let held: usize = self.data.iter().map(|r| r.columns().len()).sum();
        (held * (size_of::<u32>() + size_of::<T>()) + self.data.len() * size_of::<SparseRow<T>>()) as u64
    }
}
