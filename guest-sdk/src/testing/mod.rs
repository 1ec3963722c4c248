//! A host in memory, so that `cargo test` runs a plugin without WebAssembly.
//!
//! [`TestHost::run`] does what a job does: describe, plan, make the tables, then clock by clock every batch of every
//! worker, and at the end the metrics of the model. Workers take turns and see each other's updates when the clock ends
//! (BSP), so a test gives the same numbers each time. It is strict where a real host would fail a job: undeclared or
//! non-finite metrics, increments made in `evaluate`, windows and rows beyond the end.
//!
//! Kernels are plain loops in double precision; speed is measured on the real engine.

mod array;
mod backend;
mod dataset;
mod kernels;
mod store;

pub use dataset::Dataset;

use crate::batch::Batch;
use crate::element::{Element, VecMut};
use crate::error::{Error, Result};
use crate::manifest::{Facts, Manifest, TableSpec};
use crate::native::{self, Scope, SparseOut};
use crate::plugin::{self, Plugin};
use crate::table::SparseRows;
use crate::telemetry::Level;
use array::{Array, Window};
use backend::Inner;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;

/// A job's host in memory. Clones are the same host.
#[derive(Clone)]
pub struct TestHost {
    inner: Arc<Inner>,
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The metrics that each clock's steps reported.
    pub clocks: Vec<BTreeMap<String, f64>>,
    /// The metrics of the final model, over all datasets.
    pub metrics: BTreeMap<String, f64>,
}

impl Report {
    /// A metric of the final model; fails when nothing reported it.
    pub fn metric(&self, name: &str) -> Result<f64> {
        self.metrics.get(name).copied().ok_or_else(|| Error::NotFound(format!("metric {name:?}")))
    }
}

/// What `predict` put, over all batches in order.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    columns: BTreeMap<String, Array>,
}

impl Predictions {
    /// A column's values.
    pub fn column<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        let array = self.columns.get(name).ok_or_else(|| Error::NotFound(format!("predicted column {name:?}")))?;
        let typed = array.slice::<T>();
        typed.map(<[T]>::to_vec).ok_or_else(|| {
            Error::Invalid(format!("predicted column {name:?} holds {}, not {}", array.dtype(), T::DTYPE))
        })
    }
}

#[derive(Default)]
struct State {
    seed: u64,
    workers: usize,
    current: usize,
    clock: u32,
    cancelled: bool,
    recreate: bool,
    /// Set while `evaluate` and `predict` run, which change nothing.
    read_only: bool,
    stores: Vec<Box<dyn Store>>,
    local: Vec<BTreeMap<String, Window>>,
    /// Words taken from each worker's stream.
    positions: Vec<u64>,
    datasets: BTreeMap<String, Dataset>,
    partitions: BTreeMap<String, Vec<Vec<usize>>>,
    sums: BTreeMap<String, (f64, f64)>,
    logs: Vec<(Level, String)>,
    outputs: BTreeMap<String, Array>,
}

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHost {
    /// One worker, seed 0, no data.
    pub fn new() -> Self {
        let host = Self { inner: Arc::new(Inner::default()) };
        host.workers(1)
    }

    /// The seed of tables and random streams.
    pub fn seed(self, seed: u64) -> Self {
        self.inner.state().seed = seed;
        self
    }

    /// The number of workers; at least one.
    pub fn workers(self, workers: usize) -> Self {
        {
            let mut state = self.inner.state();
            state.workers = workers.max(1);
            state.local = vec![BTreeMap::new(); state.workers];
            state.positions = vec![0; state.workers];
        }
        self
    }

    /// Adds a dataset: `train`, `test`, …
    pub fn dataset(self, name: &str, dataset: Dataset) -> Self {
        self.inner.state().datasets.insert(name.to_owned(), dataset);
        self
    }

    /// Drops and re-makes every instance, through `save` and `restore`, at each clock's end, as swaps and failures do.
    pub fn recreate_each_clock(self) -> Self {
        self.inner.state().recreate = true;
        self
    }

    /// Makes a table outside a run.
    pub fn table(self, spec: TableSpec) -> Result<Self> {
        self.inner.make_tables(std::slice::from_ref(&spec))?;
        Ok(self)
    }

    /// Sends this thread's wrappers to this host while the guard lives, to test a plugin's parts.
    pub fn enter(&self) -> Scope {
        native::install(self.inner.clone())
    }

    /// A batch of rows `first..first + rows` of a dataset as it was given.
    pub fn batch(&self, dataset: &str, first: usize, rows: usize) -> Result<Batch> {
        let state = self.inner.state();
        let data = state.datasets.get(dataset).ok_or_else(|| Error::NotFound(format!("dataset {dataset:?}")))?;
        if first.checked_add(rows).is_none_or(|end| end > data.rows()) {
            return Err(Error::Invalid(format!("rows {first}+{rows} of dataset {dataset:?} with {}", data.rows())));
        }
        Ok(data.batch(dataset, &(first..first + rows).collect::<Vec<_>>(), first as u64))
    }

    /// Acts as another worker from here on.
    pub fn as_worker(&self, worker: usize) {
        let mut state = self.inner.state();
        state.current = worker.min(state.workers - 1);
    }

    /// Ends the clock: increments become everybody's.
    pub fn tick(&self) {
        let mut state = self.inner.state();
        state.stores.iter_mut().for_each(|s| s.tick());
        state.clock += 1;
    }

    /// Sets the cancel flag.
    pub fn cancel(&self) {
        self.inner.state().cancelled = true;
    }

    /// All values of a dense table, row by row, as the current worker sees them.
    pub fn values<T: crate::TableElement>(&self, table: &str) -> Result<Vec<T>> {
        let state = self.inner.state();
        let store = state.store(table)?;
        let spec = store.spec();
        let mut out = vec![T::default(); spec.rows as usize * spec.width as usize];
        let rows: Vec<u64> = (0..spec.rows).collect();
        store.get(state.current, &rows, T::wrap_mut(&mut out))?;
        Ok(out)
    }

    /// All rows of a sparse table, as the current worker sees them.
    pub fn sparse_values<T: crate::TableElement>(&self, table: &str) -> Result<SparseRows<T>> {
        let state = self.inner.state();
        let store = state.store(table)?;
        let rows: Vec<u64> = (0..store.spec().rows).collect();
        let mut out = SparseRows::new();
        let values: VecMut<'_> = T::wrap_vec(&mut out.values);
        store.get_sparse(
            state.current,
            &rows,
            SparseOut { offsets: &mut out.offsets, columns: &mut out.columns, values },
        )?;
        Ok(out)
    }

    /// A buffer of partition-local state of a worker, when it exists and has the type.
    pub fn local<T: Element>(&self, worker: usize, name: &str) -> Option<Vec<T>> {
        let window = self.inner.state().local.get(worker)?.get(name)?.clone();
        window.to_array().slice::<T>().map(<[T]>::to_vec)
    }

    /// The weighted means reported since the last clock, by metric, as they are.
    pub fn reported(&self) -> BTreeMap<String, f64> {
        self.inner.state().sums.iter().map(|(k, (sum, weight))| (k.clone(), sum / weight)).collect()
    }

    /// Lines logged so far.
    pub fn logs(&self) -> Vec<(Level, String)> {
        self.inner.state().logs.clone()
    }

    /// Trains for `clocks` clocks, an epoch each, in batches of `batch_rows`, and evaluates the final model. A second run
    /// goes on from the first one's tables and local state.
    pub fn run<P: Plugin>(&self, params: serde_json::Value, batch_rows: usize, clocks: u32) -> Result<Report> {
        let _scope = self.enter();
        let json = params.to_string();
        let manifest = plugin::describe::<P>();
        let data = self.load::<P>(&manifest, &json)?;
        let fresh = self.inner.state().clock == 0;
        let workers = self.inner.state().workers;
        let mut programs = (0..workers)
            .map(|w| {
                self.as_worker(w);
                P::create(plugin::params::<P>(&json)?)
            })
            .collect::<Result<Vec<_>>>()?;
        if fresh && manifest.prepare {
            self.each_batch(&data, "train", batch_rows, &mut programs, P::prepare)?;
        }
        let mut report = Report::default();
        for _ in 0..clocks {
            self.each_batch(&data, "train", batch_rows, &mut programs, P::step)?;
            let clock = self.inner.state().clock;
            for (w, program) in programs.iter_mut().enumerate() {
                self.as_worker(w);
                program.end_clock(clock)?;
            }
            self.tick();
            report.clocks.push(self.take_metrics(&manifest)?);
            if self.inner.state().recreate {
                for (w, program) in programs.iter_mut().enumerate() {
                    self.as_worker(w);
                    *program = P::restore("test", &program.save()?, plugin::params::<P>(&json)?)?;
                }
            }
        }
        self.inner.state().read_only = true;
        let evaluated =
            data.keys().try_for_each(|name| self.each_batch(&data, name, batch_rows, &mut programs, P::evaluate));
        self.inner.state().read_only = false;
        evaluated?;
        report.metrics = self.take_metrics(&manifest)?;
        Ok(report)
    }

    /// Runs `predict` over a dataset, without the columns that the plugin calls its target, on the model that a
    /// run left.
    pub fn predict<P: Plugin>(
        &self,
        params: serde_json::Value,
        dataset: &str,
        batch_rows: usize,
    ) -> Result<Predictions> {
        let _scope = self.enter();
        let json = params.to_string();
        let mut manifest = plugin::describe::<P>();
        let wants = manifest.columns.clone();
        manifest.columns.retain(|c| !c.target);
        let data = {
            let state = self.inner.state();
            let given = state.datasets.get(dataset);
            let given = given.ok_or_else(|| Error::NotFound(format!("dataset {dataset:?}")))?;
            let data = given.wanted(dataset, &manifest.columns, true)?;
            data.coded(state.datasets.get("train").unwrap_or(given), &wants)
        };
        self.as_worker(0);
        let mut program = P::create(plugin::params::<P>(&json)?)?;
        let mut all = Predictions::default();
        let rows: Vec<usize> = (0..data.rows()).collect();
        let mut first = 0;
        for chunk in rows.chunks(batch_rows.max(1)) {
            let batch = data.batch(dataset, chunk, first);
            first += chunk.len() as u64;
            self.inner.state().read_only = true;
            let predicted = program.predict(&batch);
            let outputs = {
                let mut state = self.inner.state();
                state.read_only = false;
                std::mem::take(&mut state.outputs)
            };
            predicted?;
            for name in &manifest.predicts {
                let column = outputs.get(name);
                let column = column.ok_or_else(|| Error::Other(format!("predict put no column {name:?}")))?;
                if column.len() % chunk.len() != 0 {
                    let (n, rows) = (column.len(), chunk.len());
                    return Err(Error::Invalid(format!("column {name:?} has {n} values for {rows} rows")));
                }
                all.columns.entry(name.clone()).or_insert_with(|| Array::zeros(column.dtype(), 0)).append(column)?;
            }
        }
        Ok(all)
    }

    /// Checks and codes the datasets, plans and makes the tables.
    fn load<P: Plugin>(&self, manifest: &Manifest, params: &str) -> Result<BTreeMap<String, Dataset>> {
        let (data, facts) = {
            let mut state = self.inner.state();
            let train = state.datasets.get("train").ok_or_else(|| Error::not_found("dataset \"train\""))?.clone();
            let mut data = BTreeMap::new();
            for (name, dataset) in &state.datasets {
                let wanted = dataset.wanted(name, &manifest.columns, false)?;
                data.insert(name.clone(), wanted.coded(&train, &manifest.columns));
            }
            for (name, dataset) in &data {
                let parts = dataset.partition(manifest.partition.as_deref(), state.workers)?;
                state.partitions.insert(name.clone(), parts);
            }
            let facts = facts(state.workers, &data);
            (data, facts)
        };
        let plan = plugin::plan::<P>(params, &facts)?;
        self.inner.make_tables(&plan.tables)?;
        Ok(data)
    }

    fn each_batch<P>(
        &self,
        data: &BTreeMap<String, Dataset>,
        name: &str,
        batch_rows: usize,
        programs: &mut [P],
        mut call: impl FnMut(&mut P, &Batch) -> Result<()>,
    ) -> Result<()> {
        let Some(dataset) = data.get(name) else { return Ok(()) };
        for (w, program) in programs.iter_mut().enumerate() {
            self.as_worker(w);
            let rows = self.inner.state().partitions.get(name).map(|p| p[w].clone()).unwrap_or_default();
            let mut first = 0;
            for chunk in rows.chunks(batch_rows.max(1)) {
                call(program, &dataset.batch(name, chunk, first))?;
                first += chunk.len() as u64;
            }
        }
        Ok(())
    }

    /// What was reported since the last time, as people would see it.
    fn take_metrics(&self, manifest: &Manifest) -> Result<BTreeMap<String, f64>> {
        let sums = std::mem::take(&mut self.inner.state().sums);
        let mut metrics = BTreeMap::new();
        for (name, (sum, weight)) in sums {
            let spec = manifest.metrics.iter().find(|m| m.name == name);
            let spec = spec.ok_or_else(|| Error::Invalid(format!("metric {name:?} is not in the manifest")))?;
            let value = spec.then.apply(sum / weight);
            if spec.finite && !value.is_finite() {
                return Err(Error::Invalid(format!("metric {name:?} is {value}")));
            }
            metrics.insert(name, value);
        }
        Ok(metrics)
    }
}

/// What a host tells of the data; indices are counted over all datasets.
fn facts(workers: usize, data: &BTreeMap<String, Dataset>) -> Facts {
    let mut datasets: BTreeMap<_, _> = data.iter().map(|(name, d)| (name.clone(), d.facts())).collect();
    let mut keys = BTreeMap::<String, u64>::new();
    for (name, facts) in datasets.values().flat_map(|d| &d.columns) {
        if let Some(n) = facts.keys {
            keys.entry(name.clone()).and_modify(|k| *k = n.max(*k)).or_insert(n);
        }
    }
    for (name, facts) in datasets.values_mut().flat_map(|d| &mut d.columns) {
        facts.keys = keys.get(name).copied();
    }
    Facts { workers: workers as u32, datasets }
}
