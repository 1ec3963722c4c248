//! The border's body in a component: the contract's imports. A list that the host returns becomes the caller's vector as
//! it is, without a copy; the vector it replaces is freed before the call, so the allocator hands the same block out
//! again and it is still in the processor's cache.

use crate::bindings::slackline::plugin as wit;
use crate::element::{DType, Element, TableElement};
use crate::error::{Error, Limit, Result};
use crate::manifest::Layout;
use crate::table::{SparseRows, TableInfo};
use crate::telemetry::Level;

pub struct Table(wit::tables::Table);
pub struct Buffer(wit::buffers::Buffer);
/// The contract's own type, so that a borrowed one can be shown to a plugin as it is.
pub type RawBatch = wit::input::Batch;
#[repr(transparent)]
pub struct Batch(RawBatch);

/// What an element needs of the border: its own functions of the contract.
pub trait WireElement: Sized {
    fn read(buffer: &wit::buffers::Buffer, at: u64, n: u32) -> Result<Vec<Self>, wit::types::Error>;
    fn write(buffer: &wit::buffers::Buffer, at: u64, values: &[Self]) -> Result<(), wit::types::Error>;
}

/// What a table's element needs of the border.
pub trait WireTableElement: Sized {
    fn get(table: &wit::tables::Table, rows: &[u64]) -> Result<Vec<Self>, wit::types::Error>;
    fn inc(table: &wit::tables::Table, rows: &[u64], deltas: &[Self]) -> Result<(), wit::types::Error>;
    fn get_sparse(table: &wit::tables::Table, rows: &[u64]) -> Result<SparseRows<Self>, wit::types::Error>;
    fn inc_sparse(table: &wit::tables::Table, rows: &[u64], deltas: &SparseRows<Self>)
    -> Result<(), wit::types::Error>;
}

macro_rules! wire {
    ($($ty:ty, $read:ident, $write:ident;)*) => {
        $(impl WireElement for $ty {
            #[inline]
            fn read(buffer: &wit::buffers::Buffer, at: u64, n: u32) -> Result<Vec<Self>, wit::types::Error> {
                buffer.$read(at, n)
            }
            #[inline]
            fn write(buffer: &wit::buffers::Buffer, at: u64, values: &[Self]) -> Result<(), wit::types::Error> {
                buffer.$write(at, values)
            }
        })*
    };
}

wire! {
    f32, read_f32, write_f32;
    f64, read_f64, write_f64;
    i32, read_i32, write_i32;
    i64, read_i64, write_i64;
    u32, read_u32, write_u32;
    u64, read_u64, write_u64;
    u8, read_u8, write_u8;
}

macro_rules! wire_table {
    ($($ty:ty, $get:ident, $inc:ident, $get_sparse:ident, $inc_sparse:ident, $param:ident;)*) => {
        $(impl WireTableElement for $ty {
            #[inline]
            fn get(table: &wit::tables::Table, rows: &[u64]) -> Result<Vec<Self>, wit::types::Error> {
                table.$get(rows)
            }
            #[inline]
            fn inc(table: &wit::tables::Table, rows: &[u64], deltas: &[Self]) -> Result<(), wit::types::Error> {
                table.$inc(rows, deltas)
            }
            fn get_sparse(table: &wit::tables::Table, rows: &[u64]) -> Result<SparseRows<Self>, wit::types::Error> {
                let got = table.$get_sparse(rows)?;
                Ok(SparseRows { offsets: got.offsets, columns: got.columns, values: got.values })
            }
            fn inc_sparse(
                table: &wit::tables::Table,
                rows: &[u64],
                deltas: &SparseRows<Self>,
            ) -> Result<(), wit::types::Error> {
                let deltas = wit::tables::$param {
                    offsets: &deltas.offsets,
                    columns: &deltas.columns,
                    values: &deltas.values,
                };
                table.$inc_sparse(rows, deltas)
            }
        })*
    };
}

wire_table! {
    f32, get_f32, inc_f32, get_sparse_f32, inc_sparse_f32, SparseF32Param;
    f64, get_f64, inc_f64, get_sparse_f64, inc_sparse_f64, SparseF64Param;
    i32, get_i32, inc_i32, get_sparse_i32, inc_sparse_i32, SparseI32Param;
    i64, get_i64, inc_i64, get_sparse_i64, inc_sparse_i64, SparseI64Param;
}

impl Table {
    pub fn open(name: &str) -> Result<(Self, TableInfo)> {
        let raw = wit::tables::open(name)?;
        let layout = match raw.layout() {
            wit::tables::Layout::Dense => Layout::Dense,
            wit::tables::Layout::Sparse => Layout::Sparse,
        };
        let info = TableInfo { width: raw.width(), dtype: raw.dtype().into(), layout, rows: raw.rows() };
        Ok((Self(raw), info))
    }

    pub fn get<T: TableElement>(&self, rows: &[u64], _width: usize, out: &mut Vec<T>) -> Result<()> {
        *out = Vec::new();
        *out = T::get(&self.0, rows)?;
        Ok(())
    }

    pub fn inc<T: TableElement>(&self, rows: &[u64], deltas: &[T]) -> Result<()> {
        Ok(T::inc(&self.0, rows, deltas)?)
    }

    pub fn get_sparse<T: TableElement>(&self, rows: &[u64], out: &mut SparseRows<T>) -> Result<()> {
        *out = SparseRows { offsets: Vec::new(), columns: Vec::new(), values: Vec::new() };
        *out = T::get_sparse(&self.0, rows)?;
        Ok(())
    }

    pub fn inc_sparse<T: TableElement>(&self, rows: &[u64], deltas: &SparseRows<T>) -> Result<()> {
        Ok(T::inc_sparse(&self.0, rows, deltas)?)
    }

    pub fn get_into(&self, rows: &Buffer, into: &Buffer) -> Result<()> {
        Ok(self.0.get_into(&rows.0, &into.0)?)
    }

    pub fn inc_from(&self, rows: &Buffer, deltas: &Buffer) -> Result<()> {
        Ok(self.0.inc_from(&rows.0, &deltas.0)?)
    }

    pub fn prefetch(&self, rows: &[u64]) {
        self.0.prefetch(rows);
    }
}

impl Buffer {
    pub fn alloc(dtype: DType, len: u64) -> Result<Self> {
        Ok(Self(wit::buffers::Buffer::alloc(dtype.into(), len)?))
    }

    pub fn len(&self) -> u64 {
        self.0.len()
    }

    pub fn dtype(&self) -> DType {
        self.0.dtype().into()
    }

    pub fn read<T: Element>(&self, at: u64, n: u32, out: &mut Vec<T>) -> Result<()> {
        *out = Vec::new();
        *out = <T as WireElement>::read(&self.0, at, n)?;
        Ok(())
    }

    pub fn write<T: Element>(&self, at: u64, values: &[T]) -> Result<()> {
        Ok(<T as WireElement>::write(&self.0, at, values)?)
    }

    pub fn fill(&self, value: f64) -> Result<()> {
        Ok(self.0.fill(value)?)
    }

    pub fn slice(&self, at: u64, n: u64) -> Result<Self> {
        Ok(Self(self.0.slice(at, n)?))
    }

    pub fn copy_from(&self, source: &Buffer) -> Result<()> {
        Ok(self.0.copy_from(&source.0)?)
    }
}

impl Batch {
    pub fn rows(&self) -> u32 {
        self.0.rows()
    }

    pub fn dataset(&self) -> String {
        self.0.dataset()
    }

    pub fn ids(&self) -> Vec<u64> {
        self.0.ids()
    }

    pub fn has(&self, column: &str) -> bool {
        self.0.has(column)
    }

    pub fn column(&self, name: &str) -> Result<Buffer> {
        Ok(Buffer(self.0.column(name)?))
    }

    pub fn offsets(&self, name: &str) -> Result<Buffer> {
        Ok(Buffer(self.0.offsets(name)?))
    }
}

pub fn partition_rows(dataset: &str) -> u64 {
    wit::input::partition_rows(dataset)
}

pub fn local_open(name: &str, dtype: DType, len: u64) -> Result<Buffer> {
    Ok(Buffer(wit::local_state::open(name, dtype.into(), len)?))
}

pub fn put(column: &str, values: &Buffer) -> Result<()> {
    Ok(wit::output::put(column, &values.0)?)
}

pub fn worker() -> u32 {
    wit::run::worker()
}

pub fn workers() -> u32 {
    wit::run::workers()
}

pub fn clock() -> u32 {
    wit::run::now()
}

pub fn cancelled() -> bool {
    wit::run::cancelled()
}

pub fn random(out: &mut [u64]) {
    let words = wit::run::random_u64(out.len() as u32);
    out.copy_from_slice(&words);
}

pub fn log(at: Level, line: &str) {
    let at = match at {
        Level::Debug => wit::telemetry::Level::Debug,
        Level::Info => wit::telemetry::Level::Info,
        Level::Warn => wit::telemetry::Level::Warn,
        Level::Error => wit::telemetry::Level::Error,
    };
    wit::telemetry::log(at, line);
}

pub fn metric(name: &str, value: f64, weight: f64) {
    wit::telemetry::metric(name, value, weight);
}

pub fn axpy(a: f64, x: &Buffer, y: &Buffer) -> Result<()> {
    Ok(wit::kernels::axpy(a, &x.0, &y.0)?)
}

pub fn scale(a: f64, x: &Buffer) -> Result<()> {
    Ok(wit::kernels::scale(a, &x.0)?)
}

pub fn dot(x: &Buffer, y: &Buffer) -> Result<f64> {
    Ok(wit::kernels::dot(&x.0, &y.0)?)
}

#[allow(clippy::too_many_arguments)]
pub fn gemv(t: bool, m: u32, n: u32, alpha: f64, a: &Buffer, x: &Buffer, beta: f64, y: &Buffer) -> Result<()> {
    Ok(wit::kernels::gemv(t, m, n, alpha, &a.0, &x.0, beta, &y.0)?)
}

#[allow(clippy::too_many_arguments)]
pub fn gemm(
    ta: bool,
    tb: bool,
    m: u32,
    n: u32,
    k: u32,
    alpha: f64,
    a: &Buffer,
    b: &Buffer,
    beta: f64,
    c: &Buffer,
) -> Result<()> {
    Ok(wit::kernels::gemm(ta, tb, m, n, k, alpha, &a.0, &b.0, beta, &c.0)?)
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
    Ok(wit::kernels::spmm(transpose, &offsets.0, &columns.0, &values.0, &x.0, width, &y.0)?)
}

pub fn sddmm(i: &Buffer, j: &Buffer, x: &Buffer, y: &Buffer, width: u32, out: &Buffer) -> Result<()> {
    Ok(wit::kernels::sddmm(&i.0, &j.0, &x.0, &y.0, width, &out.0)?)
}

pub fn gather(rows: &Buffer, x: &Buffer, width: u32, out: &Buffer) -> Result<()> {
    Ok(wit::kernels::gather(&rows.0, &x.0, width, &out.0)?)
}

pub fn scatter_add(rows: &Buffer, x: &Buffer, width: u32, y: &Buffer) -> Result<()> {
    Ok(wit::kernels::scatter_add(&rows.0, &x.0, width, &y.0)?)
}

pub fn softmax_rows(x: &Buffer, width: u32) -> Result<()> {
    Ok(wit::kernels::softmax_rows(&x.0, width)?)
}

pub fn soft_threshold(x: &Buffer, t: f64) -> Result<()> {
    Ok(wit::kernels::soft_threshold(&x.0, t)?)
}

pub fn map(op: &str, x: &Buffer) -> Result<()> {
    Ok(wit::kernels::map(op, &x.0)?)
}

pub fn reduce(op: &str, x: &Buffer) -> Result<f64> {
    Ok(wit::kernels::reduce(op, &x.0)?)
}

macro_rules! same_variants {
    ($ours:ty, $theirs:ty, $($variant:ident),*) => {
        impl From<$ours> for $theirs {
            fn from(value: $ours) -> Self {
                match value { $(<$ours>::$variant => <$theirs>::$variant,)* }
            }
        }
        impl From<$theirs> for $ours {
            fn from(value: $theirs) -> Self {
                match value { $(<$theirs>::$variant => <$ours>::$variant,)* }
            }
        }
    };
}

same_variants!(DType, wit::types::Dtype, F32, F64, I32, I64, U32, U64, U8);
same_variants!(Limit, wit::types::Limit, Memory, Handles, Cpu, Bandwidth, Rows, Log);

impl From<wit::types::Error> for Error {
    fn from(e: wit::types::Error) -> Self {
        match e {
            wit::types::Error::Denied(m) => Error::Denied(m),
            wit::types::Error::LimitExceeded(l) => Error::Limit(l.into()),
            wit::types::Error::NotFound(m) => Error::NotFound(m),
            wit::types::Error::Invalid(m) => Error::Invalid(m),
            wit::types::Error::Cancelled => Error::Cancelled,
            wit::types::Error::Unavailable(m) => Error::Unavailable(m),
            wit::types::Error::Other(m) => Error::Other(m),
        }
    }
}

impl From<Error> for wit::types::Error {
    fn from(e: Error) -> Self {
        match e {
            Error::Denied(m) => wit::types::Error::Denied(m),
            Error::Limit(l) => wit::types::Error::LimitExceeded(l.into()),
            Error::NotFound(m) => wit::types::Error::NotFound(m),
            Error::Invalid(m) => wit::types::Error::Invalid(m),
            Error::Cancelled => wit::types::Error::Cancelled,
            Error::Unavailable(m) => wit::types::Error::Unavailable(m),
            Error::Other(m) => wit::types::Error::Other(m),
        }
    }
}
