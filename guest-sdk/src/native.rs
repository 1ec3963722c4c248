//! Running plugins without WebAssembly: every wrapper of the SDK goes to the [`Backend`] installed on the thread.
//!
//! [`TestHost`](crate::testing::TestHost) is one, for a plugin author's `cargo test`. A benchmark gives another over the
//! real engine, and so gets the *native twin* of a plugin. A backend is the contract's imports as one trait: slices in
//! and out, and opaque handles that are dropped like any value.

use crate::element::{DType, ValuesMut, ValuesRef, VecMut};
use crate::error::Result;
use crate::table::TableInfo;
use crate::telemetry::Level;
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Something of the backend's own that a wrapper holds: a table, a buffer, a batch. The backend gets it back as it was
/// and downcasts.
pub type Handle = Arc<dyn Any + Send + Sync>;

/// Sparse rows to be filled by the backend, in place of what they held.
#[derive(Debug)]
pub struct SparseOut<'a> {
    /// Rows + 1 places.
    pub offsets: &'a mut Vec<u32>,
    /// Columns, ascending within a row.
    pub columns: &'a mut Vec<u32>,
    /// Values, one a column.
    pub values: VecMut<'a>,
}

/// Sparse rows given to the backend.
#[derive(Clone, Copy, Debug)]
pub struct SparseIn<'a> {
    /// Rows + 1 places.
    pub offsets: &'a [u32],
    /// Columns.
    pub columns: &'a [u32],
    /// Values, one a column.
    pub values: ValuesRef<'a>,
}

/// The imports of the world `data-parallel`. Lengths and types are the backend's to check: a plugin may send anything.
pub trait Backend: Send + Sync {
    /// A table by its name.
    fn table_open(&self, name: &str) -> Result<(Handle, TableInfo)>;
    /// Dense rows in the order asked, concatenated; `out` has rows × width places.
    fn table_get(&self, table: &Handle, rows: &[u64], out: ValuesMut<'_>) -> Result<()>;
    /// Adds rows × width deltas.
    fn table_inc(&self, table: &Handle, rows: &[u64], deltas: ValuesRef<'_>) -> Result<()>;
    /// Sparse rows.
    fn table_get_sparse(&self, table: &Handle, rows: &[u64], out: SparseOut<'_>) -> Result<()>;
    /// Adds to sparse rows.
    fn table_inc_sparse(&self, table: &Handle, rows: &[u64], deltas: SparseIn<'_>) -> Result<()>;
    /// Dense rows into a buffer; keys from a buffer of u64.
    fn table_get_into(&self, table: &Handle, rows: &Handle, into: &Handle) -> Result<()>;
    /// Adds a buffer to dense rows.
    fn table_inc_from(&self, table: &Handle, rows: &Handle, deltas: &Handle) -> Result<()>;
    /// A hint.
    fn table_prefetch(&self, table: &Handle, rows: &[u64]);

    /// A buffer of zeros.
    fn buffer_alloc(&self, dtype: DType, len: u64) -> Result<Handle>;
    /// Number of values.
    fn buffer_len(&self, buffer: &Handle) -> u64;
    /// Type of the values.
    fn buffer_dtype(&self, buffer: &Handle) -> DType;
    /// Reads `out.len()` values from `at`.
    fn buffer_read(&self, buffer: &Handle, at: u64, out: ValuesMut<'_>) -> Result<()>;
    /// Writes from `at`.
    fn buffer_write(&self, buffer: &Handle, at: u64, values: ValuesRef<'_>) -> Result<()>;
    /// Sets every value.
    fn buffer_fill(&self, buffer: &Handle, value: f64) -> Result<()>;
    /// A window that shares the array.
    fn buffer_slice(&self, buffer: &Handle, at: u64, n: u64) -> Result<Handle>;
    /// Copies a buffer of the same type and length.
    fn buffer_copy(&self, buffer: &Handle, source: &Handle) -> Result<()>;

    /// Number of rows.
    fn batch_rows(&self, batch: &Handle) -> u32;
    /// Name of the dataset.
    fn batch_dataset(&self, batch: &Handle) -> String;
    /// Each row's place in its partition.
    fn batch_ids(&self, batch: &Handle) -> Vec<u64>;
    /// Whether there is such a column.
    fn batch_has(&self, batch: &Handle, column: &str) -> bool;
    /// A column's values as a buffer.
    fn batch_column(&self, batch: &Handle, name: &str) -> Result<Handle>;
    /// A list column's offsets as a buffer of u32.
    fn batch_offsets(&self, batch: &Handle, name: &str) -> Result<Handle>;
    /// Rows of this worker's partition of a dataset.
    fn partition_rows(&self, dataset: &str) -> u64;

    /// A buffer of partition-local state.
    fn local_open(&self, name: &str, dtype: DType, len: u64) -> Result<Handle>;
    /// A column of predictions.
    fn output_put(&self, column: &str, values: &Handle) -> Result<()>;

    /// This worker's place among the workers.
    fn worker(&self) -> u32;
    /// Number of workers.
    fn workers(&self) -> u32;
    /// This worker's clock.
    fn clock(&self) -> u32;
    /// The next words of the worker's seeded stream.
    fn random(&self, out: &mut [u64]);
    /// Whether the job is being stopped.
    fn cancelled(&self) -> bool;

    /// A line.
    fn log(&self, at: Level, line: &str);
    /// Adds to a metric of the clock.
    fn metric(&self, name: &str, value: f64, weight: f64);

    /// y ← a·x + y.
    fn axpy(&self, a: f64, x: &Handle, y: &Handle) -> Result<()>;
    /// x ← a·x.
    fn scale(&self, a: f64, x: &Handle) -> Result<()>;
    /// Σ x·y.
    fn dot(&self, x: &Handle, y: &Handle) -> Result<f64>;
    /// y ← α·op(A)·x + β·y.
    #[allow(clippy::too_many_arguments)]
    fn gemv(
        &self,
        transpose: bool,
        m: u32,
        n: u32,
        alpha: f64,
        a: &Handle,
        x: &Handle,
        beta: f64,
        y: &Handle,
    ) -> Result<()>;
    /// C ← α·op(A)·op(B) + β·C.
    #[allow(clippy::too_many_arguments)]
    fn gemm(
        &self,
        ta: bool,
        tb: bool,
        m: u32,
        n: u32,
        k: u32,
        alpha: f64,
        a: &Handle,
        b: &Handle,
        beta: f64,
        c: &Handle,
    ) -> Result<()>;
    /// Y ← A·X; transposed: Y ← Y + Aᵀ·X.
    #[allow(clippy::too_many_arguments)]
    fn spmm(
        &self,
        transpose: bool,
        offsets: &Handle,
        columns: &Handle,
        values: &Handle,
        x: &Handle,
        width: u32,
        y: &Handle,
    ) -> Result<()>;
    /// `out[e] ← ⟨X[i_e], Y[j_e]⟩`.
    fn sddmm(&self, i: &Handle, j: &Handle, x: &Handle, y: &Handle, width: u32, out: &Handle) -> Result<()>;
    /// `out[e] ← X[rows_e]`.
    fn gather(&self, rows: &Handle, x: &Handle, width: u32, out: &Handle) -> Result<()>;
    /// `Y[rows_e] ← Y[rows_e] + X[e]`.
    fn scatter_add(&self, rows: &Handle, x: &Handle, width: u32, y: &Handle) -> Result<()>;
    /// Softmax of each row.
    fn softmax_rows(&self, x: &Handle, width: u32) -> Result<()>;
    /// x ← sign(x)·max(|x| − t, 0).
    fn soft_threshold(&self, x: &Handle, t: f64) -> Result<()>;
    /// An element-wise function by its name in the contract.
    fn map(&self, op: &str, x: &Handle) -> Result<()>;
    /// A reduction by its name in the contract.
    fn reduce(&self, op: &str, x: &Handle) -> Result<f64>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Backend>>> = const { RefCell::new(None) };
}

/// Keeps a backend installed on this thread; dropping it brings the one before back.
pub struct Scope {
    previous: Option<Arc<dyn Backend>>,
    /// The guard belongs to its thread.
    not_send: PhantomData<*const ()>,
}

/// Sends this thread's wrappers to `backend` while the guard lives.
#[must_use = "the backend is installed while the guard lives"]
pub fn install(backend: Arc<dyn Backend>) -> Scope {
    Scope { previous: CURRENT.replace(Some(backend)), not_send: PhantomData }
}

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.previous.take());
    }
}

/// Runs `f` with the installed backend. Its absence is a mistake in a test or a benchmark, not in a plugin.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&dyn Backend) -> R) -> R {
    CURRENT.with_borrow(|current| match current {
        Some(backend) => f(&**backend),
        None => panic!("no host on this thread: run the plugin in a TestHost, or install a native::Backend"),
    })
}
