//! `tables`: the model, in bulk. Rows are checked against the table, sizes against the call's bound, and then one copy
//! goes each way: from the port straight into the list that the guest is given, from the guest into a list for the port.

use super::buffers::read_only;
use super::{Fault, HeldBuffer, State, lock, shown};
use crate::v0_1::slackline::plugin::tables::{
    Dtype, Host, HostTable, Layout as WitLayout, SparseF32, SparseF64, SparseI32, SparseI64,
};
use crate::v0_1::slackline::plugin::types;
use slackline_core::ports::{SparseRows, Tables};
use slackline_core::{DType, Element, HostError, Layout, TableId, TableSpec, Values};
use std::sync::Arc;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Lower, Resource};

/// A table that the guest opened.
#[derive(Clone)]
pub struct OpenTable {
    id: TableId,
    spec: Arc<TableSpec>,
}

type Handle = Resource<OpenTable>;

impl OpenTable {
    fn expect(&self, layout: Layout, dtype: DType) -> Result<(), HostError> {
        let TableSpec { name, .. } = &*self.spec;
        if self.spec.layout != layout {
            let (is, use_) = match layout {
                Layout::Dense => ("sparse", "get-sparse and inc-sparse"),
                Layout::Sparse => ("dense", "get and inc"),
            };
            return Err(HostError::Invalid(format!("table {name:?} is {is}: use {use_}")));
        }
        if self.spec.dtype != dtype {
            return Err(HostError::Invalid(format!("table {name:?} holds {}, not {dtype}", self.spec.dtype)));
        }
        Ok(())
    }

    fn check_rows(&self, rows: &[u64]) -> Result<(), HostError> {
        let bound = self.spec.rows;
        // One pass without an early exit, so that it vectorises; the place is looked up only for the message.
        let bad = rows.iter().fold(false, |bad, row| bad | (*row >= bound));
        match rows.iter().enumerate().find(|(_, row)| bad && **row >= bound) {
            None => Ok(()),
            Some((at, row)) => Err(HostError::Invalid(format!(
                "row {row} (place {at} of {}) of table {:?}, which has rows 0 to {}",
                rows.len(),
                self.spec.name,
                i128::from(bound) - 1
            ))),
        }
    }

    fn unequal(&self, what: &str, got: usize, want: u64) -> HostError {
        HostError::Invalid(format!(
            "table {:?} was given {got} {what}, where {want} belong to the rows",
            self.spec.name
        ))
    }
}

impl State {
    fn table(&self, handle: &Handle) -> Result<OpenTable, Fault> {
        Ok(self.resources.get(handle)?.clone())
    }

    /// Values of `rows` whole rows, when one call may move them.
    fn dense_values(&self, table: &OpenTable, rows: usize) -> Result<u64, HostError> {
        let values = (rows as u64).checked_mul(u64::from(table.spec.width));
        let values = values.ok_or_else(|| HostError::Invalid(format!("{rows} rows of {} values", table.spec.width)))?;
        self.call_bytes(values, table.spec.dtype)?;
        Ok(values)
    }

    fn may_inc(&self, table: &OpenTable) -> Result<(), HostError> {
        if self.phase.may_change_model() {
            return Ok(());
        }
        Err(HostError::Denied(format!(
            "{} must not change the model, and adds to table {:?}",
            self.phase, table.spec.name
        )))
    }

    /// Calls the port with the stopwatch of the plugin halted: what it waits for there is not its own time.
    fn port<R>(&mut self, call: impl FnOnce(&mut dyn Tables) -> Result<R, HostError>) -> Result<R, HostError> {
        let since = self.clock.wait();
        let result = call(&mut *lock(&self.worker.tables));
        self.stats.nanos += self.clock.resume(since);
        self.stats.calls += 1;
        result
    }

    fn get<T: Reused>(&mut self, handle: &Handle, rows: &[u64]) -> Result<Arc<Vec<T>>, Fault> {
        let table = self.table(handle)?;
        table.expect(Layout::Dense, T::DTYPE)?;
        let values = self.dense_values(&table, rows.len())?;
        table.check_rows(rows)?;
        let mut list = std::mem::take(T::scratch(&mut self.scratch));
        if Arc::get_mut(&mut list).is_none() {
            list = Arc::default();
        }
        if let Some(out) = Arc::get_mut(&mut list) {
            out.resize(values as usize, T::default());
            self.port(|t| t.get(table.id, rows, T::wrap_mut(out)))?;
        }
        self.stats.bytes_read += values * T::DTYPE.size() as u64;
        if list.capacity() * T::DTYPE.size() <= MAX_SCRATCH {
            *T::scratch(&mut self.scratch) = list.clone();
        }
        Ok(list)
    }

    fn inc<T: Element>(&mut self, handle: &Handle, rows: &[u64], deltas: &[T]) -> Result<(), Fault> {
        let table = self.table(handle)?;
        self.may_inc(&table)?;
        table.expect(Layout::Dense, T::DTYPE)?;
        let values = self.dense_values(&table, rows.len())?;
        if deltas.len() as u64 != values {
            return Err(table.unequal("deltas", deltas.len(), values).into());
        }
        table.check_rows(rows)?;
        self.port(|t| t.inc(table.id, rows, T::wrap_ref(deltas)))?;
        self.stats.bytes_added += values * T::DTYPE.size() as u64;
        Ok(())
    }

    fn get_sparse<T: Element>(&mut self, handle: &Handle, rows: &[u64]) -> Result<Flat<T>, Fault> {
        let table = self.table(handle)?;
        table.expect(Layout::Sparse, T::DTYPE)?;
        table.check_rows(rows)?;
        self.call_bytes(rows.len() as u64, DType::U64)?;
        let SparseRows { offsets, columns, values } = self.port(|t| t.get_sparse(table.id, rows))?;
        self.call_bytes(columns.len() as u64, DType::U64)?;
        self.stats.bytes_read += columns.len() as u64 * (4 + T::DTYPE.size() as u64);
        match T::take(values) {
            Some(values) => Ok(Flat { offsets, columns, values }),
            None => Err(wasmtime::Error::msg("the host gave sparse rows of another type than their table's").into()),
        }
    }

    fn inc_sparse<T: Element>(
        &mut self,
        handle: &Handle,
        rows: &[u64],
        offsets: &[u32],
        columns: &[u32],
        values: &[T],
    ) -> Result<(), Fault> {
        let table = self.table(handle)?;
        self.may_inc(&table)?;
        table.expect(Layout::Sparse, T::DTYPE)?;
        table.check_rows(rows)?;
        check_sparse(&table, rows.len(), offsets, columns, values.len())?;
        self.port(|t| t.inc_sparse(table.id, rows, offsets, columns, T::wrap_ref(values)))?;
        self.stats.bytes_added += columns.len() as u64 * (4 + T::DTYPE.size() as u64);
        Ok(())
    }
}

/// Sparse rows with their type known.
struct Flat<T> {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// The owned vector inside, when the type agrees.
trait Take: Element {
    fn take(values: Values) -> Option<Vec<Self>>;
}

impl<T: Element> Take for T {
    fn take(mut values: Values) -> Option<Vec<Self>> {
        T::of_mut(&mut values).map(std::mem::take)
    }
}

fn check_sparse(
    table: &OpenTable,
    rows: usize,
    offsets: &[u32],
    columns: &[u32],
    values: usize,
) -> Result<(), HostError> {
    if offsets.len() != rows + 1 {
        return Err(table.unequal("offsets", offsets.len(), rows as u64 + 1));
    }
    if columns.len() != values {
        return Err(table.unequal("values", values, columns.len() as u64));
    }
    let name = &table.spec.name;
    if offsets.first() != Some(&0) || offsets.last().map(|end| *end as usize) != Some(columns.len()) {
        return Err(HostError::Invalid(format!("offsets for table {name:?} must run from 0 to {}", columns.len())));
    }
    for (at, ends) in offsets.windows(2).enumerate() {
        let row = columns.get(ends[0] as usize..ends[1] as usize);
        let row = row.ok_or_else(|| HostError::Invalid(format!("offsets for table {name:?} fall at place {at}")))?;
        if row.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(HostError::Invalid(format!(
                "columns for table {name:?} do not ascend in row {at} of the call"
            )));
        }
        if let Some(last) = row.last().filter(|last| **last >= table.spec.width) {
            return Err(HostError::Invalid(format!(
                "column {last} of table {name:?}, whose width is {}",
                table.spec.width
            )));
        }
    }
    Ok(())
}

impl Host for State {
    fn open(&mut self, name: String) -> Result<Handle, Fault> {
        let opened = lock(&self.worker.tables).open(&name);
        let (id, spec) = opened.map_err(|e| match e {
            HostError::NotFound(_) if name.len() > 64 => HostError::NotFound(format!("table {}", shown(&name))),
            e => e,
        })?;
        Ok(self.resources.push(OpenTable { id, spec: Arc::new(spec) })?)
    }
}

macro_rules! typed {
    ($($get:ident $inc:ident $get_sparse:ident $inc_sparse:ident $ty:ty, $sparse:ident;)*) => {$(
        fn $get(&mut self, handle: Handle, rows: Vec<u64>) -> Result<Vec<$ty>, Fault> {
            Ok(Arc::unwrap_or_clone(self.get(&handle, &rows)?))
        }

        fn $inc(&mut self, handle: Handle, rows: Vec<u64>, deltas: Vec<$ty>) -> Result<(), Fault> {
            self.inc(&handle, &rows, &deltas)
        }

        fn $get_sparse(&mut self, handle: Handle, rows: Vec<u64>) -> Result<$sparse, Fault> {
            let Flat { offsets, columns, values } = self.get_sparse(&handle, &rows)?;
            Ok($sparse { offsets, columns, values })
        }

        fn $inc_sparse(&mut self, handle: Handle, rows: Vec<u64>, deltas: $sparse) -> Result<(), Fault> {
            self.inc_sparse(&handle, &rows, &deltas.offsets, &deltas.columns, &deltas.values)
        }
    )*};
}

impl HostTable for State {
    typed! {
        get_f32 inc_f32 get_sparse_f32 inc_sparse_f32 f32, SparseF32;
        get_f64 inc_f64 get_sparse_f64 inc_sparse_f64 f64, SparseF64;
        get_i32 inc_i32 get_sparse_i32 inc_sparse_i32 i32, SparseI32;
        get_i64 inc_i64 get_sparse_i64 inc_sparse_i64 i64, SparseI64;
    }

    fn width(&mut self, handle: Handle) -> wasmtime::Result<u32> {
        Ok(self.resources.get(&handle)?.spec.width)
    }

    fn dtype(&mut self, handle: Handle) -> wasmtime::Result<Dtype> {
        Ok(self.resources.get(&handle)?.spec.dtype.into())
    }

    fn layout(&mut self, handle: Handle) -> wasmtime::Result<WitLayout> {
        Ok(match self.resources.get(&handle)?.spec.layout {
            Layout::Dense => WitLayout::Dense,
            Layout::Sparse => WitLayout::Sparse,
        })
    }

    fn rows(&mut self, handle: Handle) -> wasmtime::Result<u64> {
        Ok(self.resources.get(&handle)?.spec.rows)
    }

    fn get_into(
        &mut self,
        handle: Handle,
        rows: Resource<HeldBuffer>,
        into: Resource<HeldBuffer>,
    ) -> Result<(), Fault> {
        let table = self.table(&handle)?;
        let (rows, into) = (self.buffer(&rows)?.buffer.clone(), self.buffer(&into)?.buffer.clone());
        table.expect(Layout::Dense, into.dtype())?;
        apart(&rows, &into)?;
        let rows = rows.lock();
        let rows = keys(&rows)?;
        table.check_rows(rows)?;
        let values = self.dense_values(&table, rows.len())?;
        if into.len() as u64 != values {
            return Err(table.unequal("places", into.len(), values).into());
        }
        let mut into = into.lock();
        let out = into.values_mut().ok_or_else(read_only)?;
        self.port(|t| t.get(table.id, rows, out))?;
        self.stats.bytes_read += values * table.spec.dtype.size() as u64;
        Ok(())
    }

    fn inc_from(
        &mut self,
        handle: Handle,
        rows: Resource<HeldBuffer>,
        deltas: Resource<HeldBuffer>,
    ) -> Result<(), Fault> {
        let table = self.table(&handle)?;
        self.may_inc(&table)?;
        let (rows, deltas) = (self.buffer(&rows)?.buffer.clone(), self.buffer(&deltas)?.buffer.clone());
        table.expect(Layout::Dense, deltas.dtype())?;
        apart(&rows, &deltas)?;
        let rows = rows.lock();
        let rows = keys(&rows)?;
        table.check_rows(rows)?;
        let values = self.dense_values(&table, rows.len())?;
        if deltas.len() as u64 != values {
            return Err(table.unequal("deltas", deltas.len(), values).into());
        }
        let deltas = deltas.lock();
        self.port(|t| t.inc(table.id, rows, deltas.values()))?;
        self.stats.bytes_added += values * table.spec.dtype.size() as u64;
        Ok(())
    }

    fn prefetch(&mut self, handle: Handle, rows: Vec<u64>) -> wasmtime::Result<()> {
        let table = self.resources.get(&handle)?.clone();
        // A hint: rows that do not exist are no error until they are read.
        if table.check_rows(&rows).is_ok() {
            lock(&self.worker.tables).prefetch(table.id, &rows);
        }
        Ok(())
    }

    fn drop(&mut self, handle: Handle) -> wasmtime::Result<()> {
        self.resources.delete(handle)?;
        Ok(())
    }
}

/// Row keys and values cannot be one array: their types differ. It is checked because a lock is not taken twice.
fn apart(rows: &slackline_core::Buffer, values: &slackline_core::Buffer) -> Result<(), HostError> {
    if rows.shares_storage(values) {
        return Err(HostError::Invalid("rows and values are windows of one array".into()));
    }
    Ok(())
}

fn keys<'a>(rows: &'a slackline_core::buffer::BufferGuard<'_>) -> Result<&'a [u64], HostError> {
    let values = rows.values();
    u64::slice(values)
        .ok_or_else(|| HostError::Invalid(format!("row keys are u64, and the buffer holds {}", values.dtype())))
}

/// Bytes of a list that is kept for the next call.
const MAX_SCRATCH: usize = 4 << 20;

/// Lists that dense reads fill, kept from call to call, so that steady reading neither allocates nor clears memory.
#[derive(Default)]
pub(crate) struct Scratch {
    f32: Arc<Vec<f32>>,
    f64: Arc<Vec<f64>>,
    i32: Arc<Vec<i32>>,
    i64: Arc<Vec<i64>>,
}

/// A type that dense reads have a list for.
trait Reused: Element {
    fn scratch(all: &mut Scratch) -> &mut Arc<Vec<Self>>;
}

/// Puts the reads that reuse their list in place of those that `bindgen!` knows, whose lists are owned.
pub(crate) fn link_dense_reads(linker: &mut Linker<State>, interface: &str) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut tables = linker.instance(interface)?;
    link_read::<f32>(&mut tables, "[method]table.get-f32")?;
    link_read::<f64>(&mut tables, "[method]table.get-f64")?;
    link_read::<i32>(&mut tables, "[method]table.get-i32")?;
    link_read::<i64>(&mut tables, "[method]table.get-i64")?;
    linker.allow_shadowing(false);
    Ok(())
}

fn link_read<T: Reused + Lower>(tables: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<()> {
    tables.func_wrap(name, |mut store: StoreContextMut<'_, State>, (handle, rows): (Handle, Vec<u64>)| {
        let state = store.data_mut();
        match state.get::<T>(&handle, &rows) {
            Ok(list) => Ok((Ok(list),)),
            Err(fault) => Ok((Err(types::Host::convert_error(state, fault)?),)),
        }
    })
}

macro_rules! reused {
    ($($ty:ident)*) => {$(
        impl Reused for $ty {
            fn scratch(all: &mut Scratch) -> &mut Arc<Vec<Self>> {
                &mut all.$ty
            }
        }
    )*};
}

reused!(f32 f64 i32 i64);
