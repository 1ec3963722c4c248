//! The SDK's native backend over a worker's ports.

use crate::convert::{core_dtype, dtype, error, give, values, values_mut};
use crate::kernels::with_output;
use slackline_core::ports::{Level as CoreLevel, Shared, WorkerHost};
use slackline_core::{Batch, Buffer, Layout, TableId, TableSpec, Values};
use slackline_guest::native::{Backend, Handle, SparseIn, SparseOut};
use slackline_guest::telemetry::Level;
use slackline_guest::{DType, Error, Result, TableInfo, ValuesMut, ValuesRef};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One worker's host as a backend.
pub struct Twin {
    host: WorkerHost,
    outputs: Mutex<Vec<(String, Buffer)>>,
}

struct TableHandle(TableId);

/// What a batch's handle holds.
pub struct BatchHandle(pub Batch);

impl Twin {
    pub fn new(host: WorkerHost) -> Self {
        Self { host, outputs: Mutex::new(Vec::new()) }
    }

    pub fn take_outputs(&self) -> Vec<(String, Buffer)> {
        std::mem::take(&mut lock(&self.outputs))
    }
}

fn lock<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn table(handle: &Handle) -> Result<TableId> {
    handle.downcast_ref::<TableHandle>().map(|t| t.0).ok_or_else(|| Error::Invalid("not a table".into()))
}

/// The buffer behind a handle.
pub fn buffer(handle: &Handle) -> Result<&Buffer> {
    handle.downcast_ref::<Buffer>().ok_or_else(|| Error::Invalid("not a buffer".into()))
}

fn batch(handle: &Handle) -> Result<&Batch> {
    handle.downcast_ref::<BatchHandle>().map(|b| &b.0).ok_or_else(|| Error::Invalid("not a batch".into()))
}

fn info(spec: &TableSpec) -> TableInfo {
    let layout = match spec.layout {
        Layout::Dense => slackline_guest::Layout::Dense,
        Layout::Sparse => slackline_guest::Layout::Sparse,
    };
    TableInfo { width: spec.width, dtype: dtype(spec.dtype), layout, rows: spec.rows }
}

/// `n` values from `at`, as places in an array.
fn place(at: u64) -> Result<usize> {
    usize::try_from(at).map_err(|_| Error::Invalid(format!("place {at} in a buffer")))
}

/// Replaces all of a buffer.
fn write(buffer: &Buffer, from: slackline_core::ValuesRef<'_>) -> Result<()> {
    let mut guard = buffer.lock();
    let out = guard.values_mut().ok_or_else(|| Error::Denied("columns of a batch cannot be written".into()))?;
    if out.copy_from(from) { Ok(()) } else { Err(Error::Invalid("values of another type or number".into())) }
}

impl Twin {
    fn tables(&self) -> MutexGuard<'_, dyn slackline_core::ports::Tables + 'static> {
        let tables: &Shared<dyn slackline_core::ports::Tables> = &self.host.tables;
        lock(tables)
    }

    fn window<R>(&self, handle: &Handle, at: u64, n: usize, f: impl FnOnce(Buffer) -> Result<R>) -> Result<R> {
        f(buffer(handle)?.slice(place(at)?, n).map_err(error)?)
    }
}

impl Backend for Twin {
    fn table_open(&self, name: &str) -> Result<(Handle, TableInfo)> {
        let (id, spec) = self.tables().open(name).map_err(error)?;
        Ok((Arc::new(TableHandle(id)), info(&spec)))
    }

    fn table_get(&self, handle: &Handle, rows: &[u64], out: ValuesMut<'_>) -> Result<()> {
        self.tables().get(table(handle)?, rows, values_mut(out)).map_err(error)
    }

    fn table_inc(&self, handle: &Handle, rows: &[u64], deltas: ValuesRef<'_>) -> Result<()> {
        self.tables().inc(table(handle)?, rows, values(deltas)).map_err(error)
    }

    fn table_get_sparse(&self, handle: &Handle, rows: &[u64], out: SparseOut<'_>) -> Result<()> {
        let got = self.tables().get_sparse(table(handle)?, rows).map_err(error)?;
        (*out.offsets, *out.columns) = (got.offsets, got.columns);
        if give(got.values, out.values) { Ok(()) } else { Err(Error::Invalid("the table has another type".into())) }
    }

    fn table_inc_sparse(&self, handle: &Handle, rows: &[u64], deltas: SparseIn<'_>) -> Result<()> {
        let (table, delta_values) = (table(handle)?, values(deltas.values));
        self.tables().inc_sparse(table, rows, deltas.offsets, deltas.columns, delta_values).map_err(error)
    }

    fn table_get_into(&self, handle: &Handle, rows: &Handle, into: &Handle) -> Result<()> {
        let Values::U64(rows) = buffer(rows)?.to_values() else {
            return Err(Error::Invalid("row keys are u64".into()));
        };
        let mut guard = buffer(into)?.lock();
        match guard.values_mut() {
            Some(out) => self.tables().get(table(handle)?, &rows, out).map_err(error),
            None => Err(Error::Denied("columns of a batch cannot be written".into())),
        }
    }

    fn table_inc_from(&self, handle: &Handle, rows: &Handle, deltas: &Handle) -> Result<()> {
        let Values::U64(rows) = buffer(rows)?.to_values() else {
            return Err(Error::Invalid("row keys are u64".into()));
        };
        let guard = buffer(deltas)?.lock();
        self.tables().inc(table(handle)?, &rows, guard.values()).map_err(error)
    }

    fn table_prefetch(&self, handle: &Handle, rows: &[u64]) {
        if let Ok(table) = table(handle) {
            self.tables().prefetch(table, rows);
        }
    }

    fn buffer_alloc(&self, of: DType, len: u64) -> Result<Handle> {
        Ok(Arc::new(Buffer::zeros(core_dtype(of), place(len)?)))
    }

    fn buffer_len(&self, handle: &Handle) -> u64 {
        buffer(handle).map_or(0, |b| b.len() as u64)
    }

    fn buffer_dtype(&self, handle: &Handle) -> DType {
        buffer(handle).map_or(DType::U8, |b| dtype(b.dtype()))
    }

    fn buffer_read(&self, handle: &Handle, at: u64, out: ValuesMut<'_>) -> Result<()> {
        self.window(handle, at, out.len(), |window| {
            if values_mut(out).copy_from(window.lock().values()) {
                return Ok(());
            }
            Err(Error::Invalid("the buffer has another type".into()))
        })
    }

    fn buffer_write(&self, handle: &Handle, at: u64, from: ValuesRef<'_>) -> Result<()> {
        self.window(handle, at, from.len(), |window| write(&window, values(from)))
    }

    fn buffer_fill(&self, handle: &Handle, value: f64) -> Result<()> {
        let b = buffer(handle)?;
        let mut guard = b.lock();
        let Some(out) = guard.values_mut() else {
            return Err(Error::Denied("columns of a batch cannot be written".into()));
        };
        slackline_core::each_dtype!(ValuesMut, out, v => v.fill(slackline_core::Element::from_f64(value)));
        Ok(())
    }

    fn buffer_slice(&self, handle: &Handle, at: u64, n: u64) -> Result<Handle> {
        Ok(Arc::new(buffer(handle)?.slice(place(at)?, place(n)?).map_err(error)?))
    }

    fn buffer_copy(&self, handle: &Handle, source: &Handle) -> Result<()> {
        // A copy first: source and target may be windows of one array.
        let from = buffer(source)?.to_values();
        write(buffer(handle)?, from.as_ref())
    }

    fn batch_rows(&self, handle: &Handle) -> u32 {
        batch(handle).map_or(0, |b| b.rows() as u32)
    }

    fn batch_dataset(&self, handle: &Handle) -> String {
        batch(handle).map_or_else(|_| String::new(), |b| b.dataset.to_string())
    }

    fn batch_ids(&self, handle: &Handle) -> Vec<u64> {
        match batch(handle).map(|b| &*b.ids) {
            Ok(Values::U64(ids)) => ids.clone(),
            _ => Vec::new(),
        }
    }

    fn batch_has(&self, handle: &Handle, column: &str) -> bool {
        batch(handle).is_ok_and(|b| b.columns.contains_key(column))
    }

    fn batch_column(&self, handle: &Handle, name: &str) -> Result<Handle> {
        let column = batch(handle)?.columns.get(name);
        let column = column.ok_or_else(|| Error::NotFound(format!("column {name:?}")))?;
        Ok(Arc::new(Buffer::frozen(column.values.clone())))
    }

    fn batch_offsets(&self, handle: &Handle, name: &str) -> Result<Handle> {
        let column = batch(handle)?.columns.get(name);
        let offsets = column.and_then(|c| c.offsets.clone());
        let offsets = offsets.ok_or_else(|| Error::NotFound(format!("list column {name:?}")))?;
        Ok(Arc::new(Buffer::frozen(offsets)))
    }

    fn partition_rows(&self, dataset: &str) -> u64 {
        self.host.run.partition_rows.get(dataset).copied().unwrap_or(0)
    }

    fn local_open(&self, name: &str, of: DType, len: u64) -> Result<Handle> {
        Ok(Arc::new(self.host.local.open(name, core_dtype(of), place(len)?).map_err(error)?))
    }

    fn output_put(&self, column: &str, from: &Handle) -> Result<()> {
        lock(&self.outputs).push((column.to_owned(), Buffer::live(buffer(from)?.to_values())));
        Ok(())
    }

    fn worker(&self) -> u32 {
        self.host.run.worker
    }

    fn workers(&self) -> u32 {
        self.host.run.workers
    }

    fn clock(&self) -> u32 {
        self.host.run.clock.load(Ordering::Relaxed)
    }

    fn random(&self, out: &mut [u64]) {
        lock(&self.host.random).fill(out);
    }

    fn cancelled(&self) -> bool {
        self.host.run.cancelled.load(Ordering::Relaxed)
    }

    fn log(&self, at: Level, line: &str) {
        let at = match at {
            Level::Debug => CoreLevel::Debug,
            Level::Info => CoreLevel::Info,
            Level::Warn => CoreLevel::Warn,
            Level::Error => CoreLevel::Error,
        };
        lock(&self.host.telemetry).log(at, line);
    }

    fn metric(&self, name: &str, value: f64, weight: f64) {
        // An unknown name is told by the host itself, once.
        let _ = lock(&self.host.telemetry).metric(name, value, weight);
    }

    fn axpy(&self, a: f64, x: &Handle, y: &Handle) -> Result<()> {
        with_output([x], y, |[x], y| self.host.kernels.axpy(a, x, y))
    }

    fn scale(&self, a: f64, x: &Handle) -> Result<()> {
        with_output([], x, |[], x| self.host.kernels.scale(a, x))
    }

    fn dot(&self, x: &Handle, y: &Handle) -> Result<f64> {
        let (x, y) = (buffer(x)?, buffer(y)?);
        let copy = x.shares_storage(y).then(|| Buffer::live(y.to_values()));
        let (x, y) = (x.lock(), copy.as_ref().unwrap_or(y).lock());
        self.host.kernels.dot(x.values(), y.values()).map_err(error)
    }

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
    ) -> Result<()> {
        with_output([a, x], y, |[a, x], y| self.host.kernels.gemv(transpose, m, n, alpha, a, x, beta, y))
    }

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
    ) -> Result<()> {
        with_output([a, b], c, |[a, b], c| self.host.kernels.gemm(ta, tb, m, n, k, alpha, a, b, beta, c))
    }

    fn spmm(
        &self,
        transpose: bool,
        offsets: &Handle,
        columns: &Handle,
        nonzeros: &Handle,
        x: &Handle,
        width: u32,
        y: &Handle,
    ) -> Result<()> {
        with_output([offsets, columns, nonzeros, x], y, |[o, c, v, x], y| {
            self.host.kernels.spmm(transpose, o, c, v, x, width, y)
        })
    }

    fn sddmm(&self, i: &Handle, j: &Handle, x: &Handle, y: &Handle, width: u32, out: &Handle) -> Result<()> {
        with_output([i, j, x, y], out, |[i, j, x, y], out| self.host.kernels.sddmm(i, j, x, y, width, out))
    }

    fn gather(&self, rows: &Handle, x: &Handle, width: u32, out: &Handle) -> Result<()> {
        with_output([rows, x], out, |[rows, x], out| self.host.kernels.gather(rows, x, width, out))
    }

    fn scatter_add(&self, rows: &Handle, x: &Handle, width: u32, y: &Handle) -> Result<()> {
        with_output([rows, x], y, |[rows, x], y| self.host.kernels.scatter_add(rows, x, width, y))
    }

    fn softmax_rows(&self, x: &Handle, width: u32) -> Result<()> {
        with_output([], x, |[], x| self.host.kernels.softmax_rows(x, width))
    }

    fn soft_threshold(&self, x: &Handle, t: f64) -> Result<()> {
        with_output([], x, |[], x| self.host.kernels.soft_threshold(x, t))
    }

    fn map(&self, op: &str, x: &Handle) -> Result<()> {
        with_output([], x, |[], x| self.host.kernels.map(op, x))
    }

    fn reduce(&self, op: &str, x: &Handle) -> Result<f64> {
        let guard = buffer(x)?.lock();
        self.host.kernels.reduce(op, guard.values()).map_err(error)
    }
}
