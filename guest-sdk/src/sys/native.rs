//! The border's native body: everything goes to the installed [`Backend`](crate::native::Backend).

use crate::element::{DType, Element, TableElement};
use crate::error::{Error, Result};
use crate::native::{Handle, SparseIn, SparseOut, with};
use crate::table::{SparseRows, TableInfo};
use crate::telemetry::Level;

/// What an element needs of the border; nothing natively.
pub trait WireElement {}
impl<T> WireElement for T {}

/// What a table's element needs of the border; nothing natively.
pub trait WireTableElement {}
impl<T> WireTableElement for T {}

pub struct Table(Handle);
pub struct Buffer(Handle);
pub struct Batch(pub Handle);

fn make_room<T: Element>(out: &mut Vec<T>, n: usize) {
    out.resize(n, T::default());
}

impl Table {
    pub fn open(name: &str) -> Result<(Self, TableInfo)> {
        with(|b| b.table_open(name)).map(|(h, info)| (Self(h), info))
    }

    pub fn get<T: TableElement>(&self, rows: &[u64], width: usize, out: &mut Vec<T>) -> Result<()> {
        let n = rows.len().checked_mul(width).ok_or_else(|| Error::invalid("too many rows in one get"))?;
        make_room(out, n);
        with(|b| b.table_get(&self.0, rows, T::wrap_mut(out)))
    }

    pub fn inc<T: TableElement>(&self, rows: &[u64], deltas: &[T]) -> Result<()> {
        with(|b| b.table_inc(&self.0, rows, T::wrap(deltas)))
    }

    pub fn get_sparse<T: TableElement>(&self, rows: &[u64], out: &mut SparseRows<T>) -> Result<()> {
        let out =
            SparseOut { offsets: &mut out.offsets, columns: &mut out.columns, values: T::wrap_vec(&mut out.values) };
        with(|b| b.table_get_sparse(&self.0, rows, out))
    }

    pub fn inc_sparse<T: TableElement>(&self, rows: &[u64], deltas: &SparseRows<T>) -> Result<()> {
        let deltas = SparseIn { offsets: &deltas.offsets, columns: &deltas.columns, values: T::wrap(&deltas.values) };
        with(|b| b.table_inc_sparse(&self.0, rows, deltas))
    }

    pub fn get_into(&self, rows: &Buffer, into: &Buffer) -> Result<()> {
        with(|b| b.table_get_into(&self.0, &rows.0, &into.0))
    }

    pub fn inc_from(&self, rows: &Buffer, deltas: &Buffer) -> Result<()> {
        with(|b| b.table_inc_from(&self.0, &rows.0, &deltas.0))
    }

    pub fn prefetch(&self, rows: &[u64]) {
        with(|b| b.table_prefetch(&self.0, rows));
    }
}

impl Buffer {
    pub fn alloc(dtype: DType, len: u64) -> Result<Self> {
        with(|b| b.buffer_alloc(dtype, len)).map(Self)
    }

    pub fn len(&self) -> u64 {
        with(|b| b.buffer_len(&self.0))
    }

    pub fn dtype(&self) -> DType {
        with(|b| b.buffer_dtype(&self.0))
    }

    pub fn read<T: Element>(&self, at: u64, n: u32, out: &mut Vec<T>) -> Result<()> {
        make_room(out, n as usize);
        with(|b| b.buffer_read(&self.0, at, T::wrap_mut(out)))
    }

    pub fn write<T: Element>(&self, at: u64, values: &[T]) -> Result<()> {
        with(|b| b.buffer_write(&self.0, at, T::wrap(values)))
    }

    pub fn fill(&self, value: f64) -> Result<()> {
        with(|b| b.buffer_fill(&self.0, value))
    }

    pub fn slice(&self, at: u64, n: u64) -> Result<Self> {
        with(|b| b.buffer_slice(&self.0, at, n)).map(Self)
    }

    pub fn copy_from(&self, source: &Buffer) -> Result<()> {
        with(|b| b.buffer_copy(&self.0, &source.0))
    }
}

impl Batch {
    pub fn rows(&self) -> u32 {
        with(|b| b.batch_rows(&self.0))
    }

    pub fn dataset(&self) -> String {
        with(|b| b.batch_dataset(&self.0))
    }

    pub fn ids(&self) -> Vec<u64> {
        with(|b| b.batch_ids(&self.0))
    }

    pub fn has(&self, column: &str) -> bool {
        with(|b| b.batch_has(&self.0, column))
    }

    pub fn column(&self, name: &str) -> Result<Buffer> {
        with(|b| b.batch_column(&self.0, name)).map(Buffer)
    }

    pub fn offsets(&self, name: &str) -> Result<Buffer> {
        with(|b| b.batch_offsets(&self.0, name)).map(Buffer)
    }
}

pub fn partition_rows(dataset: &str) -> u64 {
    with(|b| b.partition_rows(dataset))
}

pub fn local_open(name: &str, dtype: DType, len: u64) -> Result<Buffer> {
    with(|b| b.local_open(name, dtype, len)).map(Buffer)
}

pub fn put(column: &str, values: &Buffer) -> Result<()> {
    with(|b| b.output_put(column, &values.0))
}

pub fn worker() -> u32 {
    with(|b| b.worker())
}

pub fn workers() -> u32 {
    with(|b| b.workers())
}

pub fn clock() -> u32 {
    with(|b| b.clock())
}

pub fn cancelled() -> bool {
    with(|b| b.cancelled())
}

pub fn random(out: &mut [u64]) {
    with(|b| b.random(out));
}

pub fn log(at: Level, line: &str) {
    with(|b| b.log(at, line));
}

pub fn metric(name: &str, value: f64, weight: f64) {
    with(|b| b.metric(name, value, weight));
}

pub fn axpy(a: f64, x: &Buffer, y: &Buffer) -> Result<()> {
    with(|b| b.axpy(a, &x.0, &y.0))
}

pub fn scale(a: f64, x: &Buffer) -> Result<()> {
    with(|b| b.scale(a, &x.0))
}

pub fn dot(x: &Buffer, y: &Buffer) -> Result<f64> {
    with(|b| b.dot(&x.0, &y.0))
}

#[allow(clippy::too_many_arguments)]
pub fn gemv(t: bool, m: u32, n: u32, alpha: f64, a: &Buffer, x: &Buffer, beta: f64, y: &Buffer) -> Result<()> {
    with(|b| b.gemv(t, m, n, alpha, &a.0, &x.0, beta, &y.0))
}

#[allow(clippy::too_many_arguments)]
pub fn gemm(
    ta: bool,
    tb: bool,
    m: u32,
    n: u32,
    k: u32,
    alpha: f64,
    x: &Buffer,
    y: &Buffer,
    beta: f64,
    c: &Buffer,
) -> Result<()> {
    with(|b| b.gemm(ta, tb, m, n, k, alpha, &x.0, &y.0, beta, &c.0))
}

#[allow(clippy::too_many_arguments)]
pub fn spmm(
    transpose: bool,
    offsets: &Buffer,
    columns: &Buffer,
    values: &Buffer,
    x: &Buffer,
    width: u32,
    y: &Buffer,
) -> Result<()> {
    with(|b| b.spmm(transpose, &offsets.0, &columns.0, &values.0, &x.0, width, &y.0))
}

pub fn sddmm(i: &Buffer, j: &Buffer, x: &Buffer, y: &Buffer, width: u32, out: &Buffer) -> Result<()> {
    with(|b| b.sddmm(&i.0, &j.0, &x.0, &y.0, width, &out.0))
}

pub fn gather(rows: &Buffer, x: &Buffer, width: u32, out: &Buffer) -> Result<()> {
    with(|b| b.gather(&rows.0, &x.0, width, &out.0))
}

pub fn scatter_add(rows: &Buffer, x: &Buffer, width: u32, y: &Buffer) -> Result<()> {
    with(|b| b.scatter_add(&rows.0, &x.0, width, &y.0))
}

pub fn softmax_rows(x: &Buffer, width: u32) -> Result<()> {
    with(|b| b.softmax_rows(&x.0, width))
}

pub fn soft_threshold(x: &Buffer, t: f64) -> Result<()> {
    with(|b| b.soft_threshold(&x.0, t))
}

pub fn map(op: &str, x: &Buffer) -> Result<()> {
    with(|b| b.map(op, &x.0))
}

pub fn reduce(op: &str, x: &Buffer) -> Result<f64> {
    with(|b| b.reduce(op, &x.0))
}
