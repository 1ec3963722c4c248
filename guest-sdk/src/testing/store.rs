//! The test host's tables: what all workers agreed on, and each worker's increments of the clock at hand, as under BSP.

use crate::element::{DType, TableElement, ValuesMut, ValuesRef};
use crate::error::{Error, Result};
use crate::manifest::{Init, Layout, TableSpec};
use crate::native::{SparseIn, SparseOut};
use std::collections::BTreeMap;

/// A table of one element type behind a common face.
pub(super) trait Store: Send {
    fn get(&self, worker: usize, rows: &[u64], out: ValuesMut<'_>) -> Result<()>;
    fn inc(&mut self, worker: usize, rows: &[u64], deltas: ValuesRef<'_>) -> Result<()>;
    fn get_sparse(&self, worker: usize, rows: &[u64], out: SparseOut<'_>) -> Result<()>;
    fn inc_sparse(&mut self, worker: usize, rows: &[u64], deltas: SparseIn<'_>) -> Result<()>;
    /// Ends the clock: increments become everybody's, in worker order.
    fn tick(&mut self);
    fn spec(&self) -> &TableSpec;
}

/// A store for `spec`.
pub(super) fn store(spec: &TableSpec, workers: usize, seed: u64) -> Result<Box<dyn Store>> {
    fn make<T: TableElement>(spec: &TableSpec, workers: usize, seed: u64) -> Result<Box<dyn Store>> {
        Ok(match spec.layout {
            Layout::Dense => {
                let cells = spec.rows.checked_mul(u64::from(spec.width)).filter(|n| *n < 1 << 32);
                let cells = cells.ok_or_else(|| Error::Invalid(format!("table {:?} is too big", spec.name)))?;
                let base = initial::<T>(spec, seed, cells as usize);
                Box::new(Dense { spec: spec.clone(), base, pending: vec![BTreeMap::new(); workers] })
            }
            Layout::Sparse => Box::new(Sparse::<T> {
                spec: spec.clone(),
                base: BTreeMap::new(),
                pending: vec![BTreeMap::new(); workers],
            }),
        })
    }
    match spec.dtype {
        DType::F32 => make::<f32>(spec, workers, seed),
        DType::F64 => make::<f64>(spec, workers, seed),
        DType::I32 => make::<i32>(spec, workers, seed),
        DType::I64 => make::<i64>(spec, workers, seed),
        other => Err(Error::Invalid(format!("table {:?} of {other}: tables hold f32, f64, i32 or i64", spec.name))),
    }
}

struct Dense<T> {
    spec: TableSpec,
    base: Vec<T>,
    pending: Vec<BTreeMap<u64, Vec<T>>>,
}

struct Sparse<T> {
    spec: TableSpec,
    base: BTreeMap<u64, BTreeMap<u32, T>>,
    pending: Vec<BTreeMap<u64, BTreeMap<u32, T>>>,
}

impl<T: TableElement> Store for Dense<T> {
    fn get(&self, worker: usize, rows: &[u64], out: ValuesMut<'_>) -> Result<()> {
        let width = self.spec.width as usize;
        check(&self.spec, rows, Layout::Dense, Some(out.len()))?;
        let out = T::unwrap_mut(out).ok_or_else(|| wrong_type(&self.spec, T::DTYPE))?;
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(width.max(1))) {
            let at = *row as usize * width;
            out.copy_from_slice(&self.base[at..at + width]);
            if let Some(own) = self.pending[worker].get(row) {
                out.iter_mut().zip(own).for_each(|(o, d)| *o = o.plus(*d));
            }
        }
        Ok(())
    }

    fn inc(&mut self, worker: usize, rows: &[u64], deltas: ValuesRef<'_>) -> Result<()> {
        let width = self.spec.width as usize;
        check(&self.spec, rows, Layout::Dense, Some(deltas.len()))?;
        let asked = deltas.dtype();
        let deltas = T::unwrap(deltas).ok_or_else(|| wrong_type(&self.spec, asked))?;
        for (row, deltas) in rows.iter().zip(deltas.chunks_exact(width.max(1))) {
            let own = self.pending[worker].entry(*row).or_insert_with(|| vec![T::default(); width]);
            own.iter_mut().zip(deltas).for_each(|(o, d)| *o = o.plus(*d));
        }
        Ok(())
    }

    fn get_sparse(&self, _: usize, rows: &[u64], _: SparseOut<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Sparse, None)
    }

    fn inc_sparse(&mut self, _: usize, rows: &[u64], _: SparseIn<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Sparse, None)
    }

    fn tick(&mut self) {
        let width = self.spec.width as usize;
        for (row, deltas) in self.pending.iter_mut().flat_map(std::mem::take) {
            let at = row as usize * width;
            self.base[at..at + width].iter_mut().zip(deltas).for_each(|(o, d)| *o = o.plus(d));
        }
    }

    fn spec(&self) -> &TableSpec {
        &self.spec
    }
}

impl<T: TableElement> Store for Sparse<T> {
    fn get(&self, _: usize, rows: &[u64], _: ValuesMut<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Dense, None)
    }

    fn inc(&mut self, _: usize, rows: &[u64], _: ValuesRef<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Dense, None)
    }

    fn get_sparse(&self, worker: usize, rows: &[u64], out: SparseOut<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Sparse, None)?;
        let asked = out.values.dtype();
        let values = T::unwrap_vec(out.values).ok_or_else(|| wrong_type(&self.spec, asked))?;
        out.offsets.clear();
        out.offsets.push(0);
        out.columns.clear();
        values.clear();
        for row in rows {
            let mut merged = self.base.get(row).cloned().unwrap_or_default();
            if let Some(own) = self.pending[worker].get(row) {
                add(&mut merged, own);
            }
            for (column, value) in merged {
                out.columns.push(column);
                values.push(value);
            }
            out.offsets.push(out.columns.len() as u32);
        }
        Ok(())
    }

    fn inc_sparse(&mut self, worker: usize, rows: &[u64], deltas: SparseIn<'_>) -> Result<()> {
        check(&self.spec, rows, Layout::Sparse, None)?;
        let asked = deltas.values.dtype();
        let values = T::unwrap(deltas.values).ok_or_else(|| wrong_type(&self.spec, asked))?;
        let sound = deltas.offsets.len() == rows.len() + 1
            && deltas.offsets.first() == Some(&0)
            && deltas.offsets.is_sorted()
            && deltas.offsets.last().map(|n| *n as usize) == Some(values.len())
            && deltas.columns.len() == values.len();
        if !sound {
            return Err(Error::Invalid(format!("table {:?}: offsets, columns and values disagree", self.spec.name)));
        }
        if let Some(column) = deltas.columns.iter().find(|c| **c >= self.spec.width) {
            let (name, width) = (&self.spec.name, self.spec.width);
            return Err(Error::Invalid(format!("column {column} of table {name:?} with {width} columns")));
        }
        for (i, row) in rows.iter().enumerate() {
            let own = self.pending[worker].entry(*row).or_default();
            let range = deltas.offsets[i] as usize..deltas.offsets[i + 1] as usize;
            for (column, delta) in deltas.columns[range.clone()].iter().zip(&values[range]) {
                let value = own.entry(*column).or_default();
                *value = value.plus(*delta);
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        for (row, deltas) in self.pending.iter_mut().flat_map(std::mem::take) {
            add(self.base.entry(row).or_default(), &deltas);
        }
    }

    fn spec(&self) -> &TableSpec {
        &self.spec
    }
}

/// Adds `own` to `row`; a column that becomes exactly zero disappears.
fn add<T: TableElement>(row: &mut BTreeMap<u32, T>, own: &BTreeMap<u32, T>) {
    for (column, delta) in own {
        let value = row.entry(*column).or_default();
        *value = value.plus(*delta);
        if *value == T::default() {
            row.remove(column);
        }
    }
}

fn check(spec: &TableSpec, rows: &[u64], layout: Layout, values: Option<usize>) -> Result<()> {
    let name = &spec.name;
    if spec.layout != layout {
        return Err(Error::Invalid(format!("table {name:?} is {:?}, not {layout:?}", spec.layout).to_lowercase()));
    }
    if let Some(row) = rows.iter().find(|r| **r >= spec.rows) {
        return Err(Error::Invalid(format!("row {row} of table {name:?} with {} rows", spec.rows)));
    }
    match values {
        Some(n) if n != rows.len() * spec.width as usize => {
            Err(Error::Invalid(format!("table {name:?}: {n} values for {} rows of width {}", rows.len(), spec.width)))
        }
        _ => Ok(()),
    }
}

fn wrong_type(spec: &TableSpec, asked: DType) -> Error {
    Error::Invalid(format!("table {:?} holds {}, not {asked}", spec.name, spec.dtype))
}

/// First values as the engine makes them: from (seed, table, cell) alone.
fn initial<T: TableElement>(spec: &TableSpec, seed: u64, cells: usize) -> Vec<T> {
    let name = spec
        .name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let key = mix(seed ^ name);
    let draw = |i: usize, salt: u64| unit(mix(key ^ mix(i as u64).wrapping_add(salt)));
    let cell = |i: usize| match spec.init {
        Init::Zero => 0.0,
        Init::Constant { value } => value,
        Init::Uniform { low, high } => low + (high - low) * draw(i, 1),
        Init::Normal { mean, sd } => {
            let radius = (-2.0 * (1.0 - draw(i, 1)).ln()).sqrt();
            mean + sd * radius * (std::f64::consts::TAU * draw(i, 2)).cos()
        }
    };
    (0..cells).map(|i| T::from_f64(cell(i))).collect()
}

/// The finaliser of SplitMix64.
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn unit(x: u64) -> f64 {
    (x >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}
