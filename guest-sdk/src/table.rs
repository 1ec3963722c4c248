//! The model, a table at a time.

use crate::buffer::Buffer;
use crate::element::TableElement;
use crate::error::{Error, Result};
use crate::manifest::Layout;
use crate::sys;
use std::marker::PhantomData;

/// What the host says of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Values in a dense row; columns that a sparse row may have.
    pub width: u32,
    /// Type of its values.
    pub dtype: crate::DType,
    /// Dense or sparse rows.
    pub layout: Layout,
    /// Number of rows.
    pub rows: u64,
}

/// A table of the job. Reads obey the job's consistency; increments are coalesced until the clock ends, and this worker
/// sees its own at once. Ask for many rows a call: a hundred hide the cost of the border.
pub struct Table<T: TableElement> {
    raw: sys::Table,
    info: TableInfo,
    name: String,
    kind: PhantomData<T>,
}

/// Sparse rows, flat: row `i` owns `columns[offsets[i]..offsets[i + 1]]`, ascending, and the values at the same places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseRows<T> {
    /// Rows + 1 places.
    pub offsets: Vec<u32>,
    /// Columns.
    pub columns: Vec<u32>,
    /// Values, one a column.
    pub values: Vec<T>,
}

impl<T: Copy> SparseRows<T> {
    /// No rows.
    pub fn new() -> Self {
        Self { offsets: vec![0], columns: Vec::new(), values: Vec::new() }
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.columns.clear();
        self.values.clear();
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let (a, b) = (self.offsets[i] as usize, self.offsets[i + 1] as usize);
        (&self.columns[a..b], &self.values[a..b])
    }

    /// Appends a row.
    pub fn push(&mut self, entries: impl IntoIterator<Item = (u32, T)>) {
        for (column, value) in entries {
            self.columns.push(column);
            self.values.push(value);
        }
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.offsets.push(self.columns.len() as u32);
    }
}

impl<T: TableElement> Table<T> {
    /// Opens a table of the job's plan; its type must be `T`.
    pub fn open(name: &str) -> Result<Self> {
        let (raw, info) = sys::Table::open(name)?;
        if info.dtype != T::DTYPE {
            return Err(Error::Invalid(format!("table {name:?} holds {}, not {}", info.dtype, T::DTYPE)));
        }
        Ok(Self { raw, info, name: name.to_owned(), kind: PhantomData })
    }

    /// Opens a table that must have `width`.
    pub fn open_with_width(name: &str, width: u32) -> Result<Self> {
        let table = Self::open(name)?;
        if table.info.width != width {
            return Err(Error::Invalid(format!("table {name:?} has width {}, not {width}", table.info.width)));
        }
        Ok(table)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Values in a dense row; columns that a sparse row may have.
    pub fn width(&self) -> usize {
        self.info.width as usize
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.info.rows
    }

    /// Dense or sparse rows.
    pub fn layout(&self) -> Layout {
        self.info.layout
    }

    /// Rows in the order asked, concatenated, in place of what `out` held: rows × width values.
    pub fn get(&self, rows: &[u64], out: &mut Vec<T>) -> Result<()> {
        self.raw.get(rows, self.width(), out)
    }

    /// Adds `deltas` (rows × width) to the rows; a row may occur more than once.
    pub fn inc(&self, rows: &[u64], deltas: &[T]) -> Result<()> {
        self.raw.inc(rows, deltas)
    }

    /// Sparse rows, in place of what `out` held.
    pub fn get_sparse(&self, rows: &[u64], out: &mut SparseRows<T>) -> Result<()> {
        self.raw.get_sparse(rows, out)
    }

    /// Adds to sparse rows; `deltas` holds one row for each of `rows`.
    pub fn inc_sparse(&self, rows: &[u64], deltas: &SparseRows<T>) -> Result<()> {
        self.raw.inc_sparse(rows, deltas)
    }

    /// Dense rows from table to buffer without entering the guest.
    pub fn get_into(&self, rows: &Buffer<u64>, into: &Buffer<T>) -> Result<()> {
        self.raw.get_into(&rows.raw, &into.raw)
    }

    /// Adds a buffer's values (rows × width) to dense rows.
    pub fn inc_from(&self, rows: &Buffer<u64>, deltas: &Buffer<T>) -> Result<()> {
        self.raw.inc_from(&rows.raw, &deltas.raw)
    }

    /// Says what the next steps will touch; returns at once.
    pub fn prefetch(&self, rows: &[u64]) {
        self.raw.prefetch(rows);
    }
}
