//! The test host as a [`Backend`].

use super::array::{Array, Window};
use super::dataset::TestBatch;
use super::store::{self, Store, mix};
use super::{State, kernels};
use crate::element::{DType, ValuesMut, ValuesRef};
use crate::error::{Error, Limit, Result};
use crate::manifest::TableSpec;
use crate::native::{Backend, Handle, SparseIn, SparseOut};
use crate::table::TableInfo;
use crate::telemetry::Level;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values that one buffer may hold; a real host's bound follows from the instance's memory.
const BUFFER_LIMIT: u64 = 1 << 28;

#[derive(Default)]
pub(super) struct Inner {
    /// Plugins in a test run on one thread; the lock is what makes the backend shareable.
    state: Mutex<State>,
}

/// What a table's handle holds: its place among the stores.
struct TableHandle(usize);

impl Inner {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes tables; one that exists is kept when nothing of it changed.
    pub fn make_tables(&self, specs: &[TableSpec]) -> Result<()> {
        let mut state = self.state();
        for (i, spec) in specs.iter().enumerate() {
            if specs[..i].iter().any(|s| s.name == spec.name) {
                return Err(Error::Invalid(format!("two tables are called {:?}", spec.name)));
            }
            match state.store(&spec.name) {
                Ok(store) if store.spec() == spec => {}
                Ok(_) => return Err(Error::Invalid(format!("table {:?} exists with another shape", spec.name))),
                Err(_) => {
                    let store = store::store(spec, state.workers, state.seed)?;
                    state.stores.push(store);
                }
            }
        }
        Ok(())
    }

    fn write_table(&self, table: &Handle, f: impl FnOnce(&mut dyn Store, usize) -> Result<()>) -> Result<()> {
        let at = place(table)?;
        let mut state = self.state();
        if state.read_only {
            return Err(Error::Denied("increments while evaluating or predicting".into()));
        }
        let worker = state.current;
        f(&mut *state.stores[at], worker)
    }
}

impl State {
    pub fn store(&self, name: &str) -> Result<&dyn Store> {
        let found = self.stores.iter().find(|s| s.spec().name == name);
        found.map(|s| &**s).ok_or_else(|| Error::NotFound(format!("table {name:?}")))
    }
}

fn place(table: &Handle) -> Result<usize> {
    table.downcast_ref().map(|t: &TableHandle| t.0).ok_or_else(|| Error::invalid("a handle that is no table"))
}

fn batch(handle: &Handle) -> &TestBatch {
    // Batches are made by this host alone, and reach a plugin only by reference.
    handle.downcast_ref().expect("a batch of the test host")
}

fn bounded(len: u64) -> Result<usize> {
    if len > BUFFER_LIMIT { Err(Error::Limit(Limit::Memory)) } else { Ok(len as usize) }
}

fn keys(rows: &Handle) -> Result<Vec<u64>> {
    let rows = Window::of(rows)?.to_array();
    rows.slice().map(<[u64]>::to_vec).ok_or_else(|| Error::invalid("row ids are u64"))
}

impl Backend for Inner {
    fn table_open(&self, name: &str) -> Result<(Handle, TableInfo)> {
        let state = self.state();
        let at = state.stores.iter().position(|s| s.spec().name == name);
        let at = at.ok_or_else(|| Error::NotFound(format!("table {name:?}")))?;
        let spec = state.stores[at].spec();
        let info = TableInfo { width: spec.width, dtype: spec.dtype, layout: spec.layout, rows: spec.rows };
        Ok((Arc::new(TableHandle(at)), info))
    }

    fn table_get(&self, table: &Handle, rows: &[u64], out: ValuesMut<'_>) -> Result<()> {
        let at = place(table)?;
        let state = self.state();
        state.stores[at].get(state.current, rows, out)
    }

    fn table_inc(&self, table: &Handle, rows: &[u64], deltas: ValuesRef<'_>) -> Result<()> {
        self.write_table(table, |store, worker| store.inc(worker, rows, deltas))
    }

    fn table_get_sparse(&self, table: &Handle, rows: &[u64], out: SparseOut<'_>) -> Result<()> {
        let at = place(table)?;
        let state = self.state();
        state.stores[at].get_sparse(state.current, rows, out)
    }

    fn table_inc_sparse(&self, table: &Handle, rows: &[u64], deltas: SparseIn<'_>) -> Result<()> {
        self.write_table(table, |store, worker| store.inc_sparse(worker, rows, deltas))
    }

    fn table_get_into(&self, table: &Handle, rows: &Handle, into: &Handle) -> Result<()> {
        let into = Window::of(into)?;
        into.writable()?;
        let mut values = Array::zeros(into.dtype(), into.len());
        self.table_get(table, &keys(rows)?, values.as_mut())?;
        into.write(0, values.as_ref())
    }

    fn table_inc_from(&self, table: &Handle, rows: &Handle, deltas: &Handle) -> Result<()> {
        self.table_inc(table, &keys(rows)?, Window::of(deltas)?.to_array().as_ref())
    }

    fn table_prefetch(&self, _: &Handle, _: &[u64]) {}

    fn buffer_alloc(&self, dtype: DType, len: u64) -> Result<Handle> {
        Ok(Window::live(Array::zeros(dtype, bounded(len)?)).handle())
    }

    fn buffer_len(&self, buffer: &Handle) -> u64 {
        Window::of(buffer).map_or(0, |w| w.len() as u64)
    }

    fn buffer_dtype(&self, buffer: &Handle) -> DType {
        Window::of(buffer).map_or(DType::U8, Window::dtype)
    }

    fn buffer_read(&self, buffer: &Handle, at: u64, out: ValuesMut<'_>) -> Result<()> {
        Window::of(buffer)?.read(at, out)
    }

    fn buffer_write(&self, buffer: &Handle, at: u64, values: ValuesRef<'_>) -> Result<()> {
        Window::of(buffer)?.write(at, values)
    }

    fn buffer_fill(&self, buffer: &Handle, value: f64) -> Result<()> {
        let w = Window::of(buffer)?;
        w.set_f64(&vec![value; w.len()])
    }

    fn buffer_slice(&self, buffer: &Handle, at: u64, n: u64) -> Result<Handle> {
        Ok(Window::of(buffer)?.slice(at, n)?.handle())
    }

    fn buffer_copy(&self, buffer: &Handle, source: &Handle) -> Result<()> {
        let (to, from) = (Window::of(buffer)?, Window::of(source)?.to_array());
        if to.len() != from.len() {
            return Err(Error::Invalid(format!("{} values copied into {}", from.len(), to.len())));
        }
        to.write(0, from.as_ref())
    }

    fn batch_rows(&self, handle: &Handle) -> u32 {
        batch(handle).ids.len() as u32
    }

    fn batch_dataset(&self, handle: &Handle) -> String {
        batch(handle).dataset.clone()
    }

    fn batch_ids(&self, handle: &Handle) -> Vec<u64> {
        batch(handle).ids.clone()
    }

    fn batch_has(&self, handle: &Handle, column: &str) -> bool {
        batch(handle).columns.contains_key(column)
    }

    fn batch_column(&self, handle: &Handle, name: &str) -> Result<Handle> {
        let column = batch(handle).columns.get(name);
        column.map(|c| c.0.clone().handle()).ok_or_else(|| Error::NotFound(format!("column {name:?}")))
    }

    fn batch_offsets(&self, handle: &Handle, name: &str) -> Result<Handle> {
        let column = batch(handle).columns.get(name).ok_or_else(|| Error::NotFound(format!("column {name:?}")))?;
        let offsets = column.1.clone();
        offsets.map(Window::handle).ok_or_else(|| Error::Invalid(format!("column {name:?} has no lists")))
    }

    fn partition_rows(&self, dataset: &str) -> u64 {
        let state = self.state();
        state.partitions.get(dataset).map_or(0, |parts| parts[state.current].len() as u64)
    }

    fn local_open(&self, name: &str, dtype: DType, len: u64) -> Result<Handle> {
        let len = bounded(len)?;
        let mut state = self.state();
        let worker = state.current;
        let make = || Window::live(Array::zeros(dtype, len));
        let window = state.local[worker].entry(name.to_owned()).or_insert_with(make).clone();
        if window.dtype() != dtype {
            return Err(Error::Invalid(format!("local state {name:?} holds {}, not {dtype}", window.dtype())));
        }
        window.grow(len);
        Ok(window.handle())
    }

    fn output_put(&self, column: &str, values: &Handle) -> Result<()> {
        let values = Window::of(values)?.to_array();
        self.state().outputs.insert(column.to_owned(), values);
        Ok(())
    }

    fn worker(&self) -> u32 {
        self.state().current as u32
    }

    fn workers(&self) -> u32 {
        self.state().workers as u32
    }

    fn clock(&self) -> u32 {
        self.state().clock
    }

    fn random(&self, out: &mut [u64]) {
        let mut state = self.state();
        let worker = state.current;
        let key = mix(state.seed ^ mix(worker as u64));
        for word in out {
            *word = mix(key ^ mix(state.positions[worker]));
            state.positions[worker] += 1;
        }
    }

    fn cancelled(&self) -> bool {
        self.state().cancelled
    }

    fn log(&self, at: Level, line: &str) {
        self.state().logs.push((at, line.to_owned()));
    }

    fn metric(&self, name: &str, value: f64, weight: f64) {
        let mut state = self.state();
        let sum = state.sums.entry(name.to_owned()).or_default();
        sum.0 += value * weight;
        sum.1 += weight;
    }

    fn axpy(&self, a: f64, x: &Handle, y: &Handle) -> Result<()> {
        kernels::axpy(a, x, y)
    }

    fn scale(&self, a: f64, x: &Handle) -> Result<()> {
        kernels::scale(a, x)
    }

    fn dot(&self, x: &Handle, y: &Handle) -> Result<f64> {
        kernels::dot(x, y)
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
        kernels::gemv(transpose, m, n, alpha, a, x, beta, y)
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
        kernels::gemm(ta, tb, (m, n, k), alpha, a, b, beta, c)
    }

    fn spmm(
        &self,
        transpose: bool,
        offsets: &Handle,
        columns: &Handle,
        values: &Handle,
        x: &Handle,
        width: u32,
        y: &Handle,
    ) -> Result<()> {
        kernels::spmm(transpose, offsets, columns, values, x, width, y)
    }

    fn sddmm(&self, i: &Handle, j: &Handle, x: &Handle, y: &Handle, width: u32, out: &Handle) -> Result<()> {
        kernels::sddmm(i, j, x, y, width, out)
    }

    fn gather(&self, rows: &Handle, x: &Handle, width: u32, out: &Handle) -> Result<()> {
        kernels::gather(rows, x, width, out)
    }

    fn scatter_add(&self, rows: &Handle, x: &Handle, width: u32, y: &Handle) -> Result<()> {
        kernels::scatter_add(rows, x, width, y)
    }

    fn softmax_rows(&self, x: &Handle, width: u32) -> Result<()> {
        kernels::softmax_rows(x, width)
    }

    fn soft_threshold(&self, x: &Handle, t: f64) -> Result<()> {
        kernels::soft_threshold(x, t)
    }

    fn map(&self, op: &str, x: &Handle) -> Result<()> {
        kernels::map(op, x)
    }

    fn reduce(&self, op: &str, x: &Handle) -> Result<f64> {
        kernels::reduce(op, x)
    }
}
