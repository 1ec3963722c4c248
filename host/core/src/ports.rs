//! What a role needs from outside, as traits: the binary gives real ones, tests give simulated ones.

use crate::buffer::Buffer;
use crate::column::Batch;
use crate::error::{HostError, PluginError};
use crate::ids::{Clock, TableId, WorkerId};
use crate::local::LocalState;
use crate::manifest::{Facts, Manifest, Plan};
use crate::part::PartKey;
use crate::random::RandomStream;
use crate::table::TableSpec;
use crate::values::{Values, ValuesMut, ValuesRef};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

/// Something that a worker's thread shares with its instance. The lock is not contended: both run on that thread.
pub type Shared<T> = Arc<Mutex<T>>;

/// Sparse rows, flat: row `i` owns `columns[offsets[i]..offsets[i + 1]]` and the values at the same places.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows {
    /// Rows + 1 places.
    pub offsets: Vec<u32>,
    /// Columns, ascending within a row.
    pub columns: Vec<u32>,
    /// Values, one a column.
    pub values: Values,
}

/// One worker's side of the model. Reads obey the job's consistency and may block at the gate; increments never block
/// on the network (DESIGN §2) and are coalesced until the clock ends.
pub trait Tables: Send {
    /// A table by its name.
    fn open(&mut self, name: &str) -> Result<(TableId, TableSpec), HostError>;
    /// Rows in the order asked, concatenated into `out` (rows × width values of the table's type).
    fn get(&mut self, table: TableId, rows: &[u64], out: ValuesMut<'_>) -> Result<(), HostError>;
    /// Adds `deltas` (rows × width) to the rows; a row may occur more than once.
    fn inc(&mut self, table: TableId, rows: &[u64], deltas: ValuesRef<'_>) -> Result<(), HostError>;
    /// Rows of a sparse table.
    fn get_sparse(&mut self, table: TableId, rows: &[u64]) -> Result<SparseRows, HostError>;
    /// Adds to rows of a sparse table; a column that becomes exactly zero disappears.
    fn inc_sparse(
        &mut self,
        table: TableId,
        rows: &[u64],
        offsets: &[u32],
        columns: &[u32],
        values: ValuesRef<'_>,
    ) -> Result<(), HostError>;
    /// Says what the next reads will touch; returns at once.
    fn prefetch(&mut self, table: TableId, rows: &[u64]);
}

/// Where a plugin's words and numbers go.
pub trait Telemetry: Send {
    /// A line; the host bounds rate and length before it gets here.
    fn log(&mut self, level: Level, line: &str);
    /// Adds to a metric of the clock.
    fn metric(&mut self, name: &str, value: f64, weight: f64) -> Result<(), HostError>;
}

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// The native core on typed slices. Shapes are row-major; lengths and types are checked, never trusted. Floating
/// kernels take f32 or f64, all value arguments of one call of one type, and give the same bits on any thread count.
pub trait Kernels: Send + Sync {
    /// y ← a·x + y.
    fn axpy(&self, a: f64, x: ValuesRef<'_>, y: ValuesMut<'_>) -> Result<(), HostError>;
    /// x ← a·x.
    fn scale(&self, a: f64, x: ValuesMut<'_>) -> Result<(), HostError>;
    /// Σ x·y.
    fn dot(&self, x: ValuesRef<'_>, y: ValuesRef<'_>) -> Result<f64, HostError>;
    /// y ← α·op(A)·x + β·y, A is m × n.
    #[allow(clippy::too_many_arguments)]
    fn gemv(
        &self,
        transpose: bool,
        m: u32,
        n: u32,
        alpha: f64,
        a: ValuesRef<'_>,
        x: ValuesRef<'_>,
        beta: f64,
        y: ValuesMut<'_>,
    ) -> Result<(), HostError>;
    /// C ← α·op(A)·op(B) + β·C; op(A) is m × k, op(B) is k × n.
    #[allow(clippy::too_many_arguments)]
    fn gemm(
        &self,
        ta: bool,
        tb: bool,
        m: u32,
        n: u32,
        k: u32,
        alpha: f64,
        a: ValuesRef<'_>,
        b: ValuesRef<'_>,
        beta: f64,
        c: ValuesMut<'_>,
    ) -> Result<(), HostError>;
    /// Y ← A·X, A in CSR (offsets u32, columns u32), X with `width` columns. `transpose`: Y ← Y + Aᵀ·X.
    #[allow(clippy::too_many_arguments)]
    fn spmm(
        &self,
        transpose: bool,
        offsets: ValuesRef<'_>,
        columns: ValuesRef<'_>,
        values: ValuesRef<'_>,
        x: ValuesRef<'_>,
        width: u32,
        y: ValuesMut<'_>,
    ) -> Result<(), HostError>;
    /// `out[e] ← ⟨X[i_e], Y[j_e]⟩`.
    fn sddmm(
        &self,
        i: ValuesRef<'_>,
        j: ValuesRef<'_>,
        x: ValuesRef<'_>,
        y: ValuesRef<'_>,
        width: u32,
        out: ValuesMut<'_>,
    ) -> Result<(), HostError>;
    /// `out[e] ← X[rows_e]`.
    fn gather(&self, rows: ValuesRef<'_>, x: ValuesRef<'_>, width: u32, out: ValuesMut<'_>) -> Result<(), HostError>;
    /// `Y[rows_e] ← Y[rows_e] + X[e]`.
    fn scatter_add(&self, rows: ValuesRef<'_>, x: ValuesRef<'_>, width: u32, y: ValuesMut<'_>)
    -> Result<(), HostError>;
    /// Each row of `width` ← softmax of it.
    fn softmax_rows(&self, x: ValuesMut<'_>, width: u32) -> Result<(), HostError>;
    /// x ← sign(x)·max(|x| − t, 0).
    fn soft_threshold(&self, x: ValuesMut<'_>, t: f64) -> Result<(), HostError>;
    /// Element-wise: `exp`, `ln`, `sqrt`, `abs`, `neg`, `recip`, `square`, `sigmoid`, `tanh`, `relu`.
    fn map(&self, op: &str, x: ValuesMut<'_>) -> Result<(), HostError>;
    /// `sum`, `min`, `max`, `sum-squares`, `sum-abs`, `max-abs`.
    fn reduce(&self, op: &str, x: ValuesRef<'_>) -> Result<f64, HostError>;
}

/// All that one worker gives its instance: handles, so that the instance can be dropped and re-made at any tick.
#[derive(Clone)]
pub struct WorkerHost {
    /// The model.
    pub tables: Shared<dyn Tables>,
    /// The native core.
    pub kernels: Arc<dyn Kernels>,
    /// Words and numbers.
    pub telemetry: Shared<dyn Telemetry>,
    /// Partition-local state.
    pub local: LocalState,
    /// The worker's own stream.
    pub random: Shared<RandomStream>,
    /// Where the worker stands.
    pub run: RunInfo,
}

/// Where a worker stands.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Its place among the workers.
    pub worker: u32,
    /// Number of workers.
    pub workers: u32,
    /// Its clock; the driver advances it.
    pub clock: Arc<AtomicU32>,
    /// Set when the job is being stopped.
    pub cancelled: Arc<AtomicBool>,
    /// Rows of the worker's partition of each dataset.
    pub partition_rows: Arc<std::collections::BTreeMap<String, u64>>,
}

/// A loaded plugin: a compiled component, or (in benches) its native twin.
pub trait Plugin: Send + Sync {
    /// What `describe` said.
    fn manifest(&self) -> &Manifest;
    /// The tables of a job. `params` is a JSON object.
    fn plan(&self, params: &str, facts: &Facts) -> Result<Plan, PluginError>;
    /// A fresh instance for a worker.
    fn create(&self, host: WorkerHost, params: &str) -> Result<Box<dyn Program>, PluginError>;
    /// An instance from what [`Program::save`] of the digest `writer` gave.
    fn restore(
        &self,
        host: WorkerHost,
        writer: &str,
        state: &[u8],
        params: &str,
    ) -> Result<Box<dyn Program>, PluginError>;
}

/// A live instance. After an error it is dropped, never called again.
pub trait Program: Send {
    /// Shows a batch of the partition before the first step.
    fn prepare(&mut self, batch: &Batch) -> Result<(), PluginError>;
    /// One bounded quantum.
    fn step(&mut self, batch: &Batch) -> Result<(), PluginError>;
    /// The clock `ended` is over; increments made here still belong to it.
    fn end_clock(&mut self, ended: Clock) -> Result<(), PluginError>;
    /// Adds a batch to the metrics; the model is not changed.
    fn evaluate(&mut self, batch: &Batch) -> Result<(), PluginError>;
    /// Predictions for a batch, by column: one value, or one list, a row.
    fn predict(&mut self, batch: &Batch) -> Result<Vec<(String, Buffer)>, PluginError>;
    /// What the plugin wants back in `restore`; small.
    fn save(&mut self) -> Result<Vec<u8>, PluginError>;
    /// Bytes of guest memory now; 0 for a native twin.
    fn memory_bytes(&self) -> u64;
}

/// Read access to a shard in place: what a worker in the same process sees without a message.
pub trait ShardRows {
    /// The shard's min clock.
    fn min_clock(&self) -> Clock;
    /// Everything of `worker` before this place is applied.
    fn applied(&self, worker: WorkerId) -> PartKey;
    /// Copies dense rows (ids of the whole table, all owned by this shard) to the places `places` of `out`, in units of
    /// the row width; `places: None` means 0, 1, 2, ….
    fn read_dense(&self, table: TableId, rows: &[u64], places: Option<&[u32]>, out: ValuesMut<'_>);
    /// A sparse row's columns and values.
    fn read_sparse(&self, table: TableId, row: u64) -> (&[u32], ValuesRef<'_>);
    /// Hints that these rows are read soon.
    fn prefetch(&self, table: TableId, rows: &[u64]);
}
