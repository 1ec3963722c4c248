//! Small datasets for tests: named columns, partitions, batches, and the facts that a host would tell of them.

use super::array::{Array, Window};
use super::store::mix;
use crate::batch::Batch;
use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::manifest::{ColumnFacts, ColumnWant, DatasetFacts, Encode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A dataset by columns. Give the columns that the plugin wants, in the types that it wants; dictionary columns of any
/// integer or float type are coded by the host.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    pub(super) columns: BTreeMap<String, Column>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub values: Array,
    pub offsets: Option<Vec<u32>>,
    /// Keys of a dictionary.
    pub keys: Option<u64>,
}

/// What a batch's handle holds.
pub(super) struct TestBatch {
    pub dataset: String,
    pub ids: Vec<u64>,
    pub columns: BTreeMap<String, (Window, Option<Window>)>,
}

impl Dataset {
    /// No columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value a row.
    pub fn column<T: Element>(mut self, name: &str, values: &[T]) -> Self {
        let column = Column { values: Array::of(values), offsets: None, keys: None };
        self.columns.insert(name.to_owned(), column);
        self
    }

    /// A list a row.
    pub fn list<T: Element>(mut self, name: &str, rows: &[Vec<T>]) -> Self {
        let mut offsets = vec![0];
        let mut values = Vec::new();
        for row in rows {
            values.extend_from_slice(row);
            offsets.push(values.len() as u32);
        }
        let column = Column { values: Array::of(&values), offsets: Some(offsets), keys: None };
        self.columns.insert(name.to_owned(), column);
        self
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.values().next().map_or(0, Column::rows)
    }

    /// Checks it against what a plugin wants, and leaves only that.
    pub(super) fn wanted(&self, name: &str, wants: &[ColumnWant], for_predict: bool) -> Result<Self> {
        let mut columns = BTreeMap::new();
        for want in wants {
            let Some(column) = self.columns.get(&want.name) else {
                if want.optional || (for_predict && want.target) {
                    continue;
                }
                return Err(Error::NotFound(format!("column {:?} of dataset {name:?}", want.name)));
            };
            if column.rows() != self.rows() {
                return Err(Error::Invalid(format!("column {:?} of dataset {name:?} has another length", want.name)));
            }
            let coded = want.encode == Encode::Dictionary;
            if !coded && (column.values.dtype() != want.dtype || column.offsets.is_some() != want.list) {
                let (held, list) = (column.values.dtype(), column.offsets.is_some());
                return Err(Error::Invalid(format!(
                    "column {:?} of dataset {name:?} is {held} (list: {list}), the plugin wants {} (list: {})",
                    want.name, want.dtype, want.list
                )));
            }
            columns.insert(want.name.clone(), column.clone());
        }
        Ok(Self { columns })
    }

    /// Codes dictionary columns by the values of `train`.
    pub(super) fn coded(mut self, train: &Dataset, wants: &[ColumnWant]) -> Self {
        for want in wants.iter().filter(|w| w.encode == Encode::Dictionary) {
            let (Some(column), Some(reference)) = (self.columns.get_mut(&want.name), train.columns.get(&want.name))
            else {
                continue;
            };
            let mut keys = reference.values.to_f64();
            keys.sort_by(f64::total_cmp);
            keys.dedup();
            let code = |v: &f64| keys.binary_search_by(|k| k.total_cmp(v)).map_or(u32::MAX, |i| i as u32);
            column.values = Array::U32(column.values.to_f64().iter().map(code).collect());
            column.keys = Some(keys.len() as u64);
        }
        self
    }

    pub(super) fn facts(&self) -> DatasetFacts {
        let columns = self.columns.iter().map(|(name, c)| (name.clone(), c.facts())).collect();
        DatasetFacts { rows: self.rows() as u64, columns }
    }

    /// The rows of each worker's partition: contiguous, or by `hash:COLUMN` or `round-robin`.
    pub(super) fn partition(&self, rule: Option<&str>, workers: usize) -> Result<Vec<Vec<usize>>> {
        let rows = self.rows();
        let mut parts = vec![Vec::new(); workers];
        match rule {
            None | Some("rows") => {
                for (w, part) in parts.iter_mut().enumerate() {
                    *part = (w * rows / workers..(w + 1) * rows / workers).collect();
                }
            }
            Some("round-robin") => (0..rows).for_each(|i| parts[i % workers].push(i)),
            Some(other) => {
                let column = other.strip_prefix("hash:").and_then(|c| self.columns.get(c));
                let column = column.ok_or_else(|| Error::Invalid(format!("partition {other:?}")))?;
                for (i, value) in column.values.to_f64().iter().enumerate() {
                    parts[(mix(value.to_bits()) % workers as u64) as usize].push(i);
                }
            }
        }
        Ok(parts)
    }

    /// A batch of some rows; `first_id` is the first one's place in its partition.
    pub(super) fn batch(&self, name: &str, rows: &[usize], first_id: u64) -> Batch {
        let columns = self.columns.iter().map(|(name, c)| (name.clone(), c.pick(rows))).collect();
        let ids = (first_id..first_id + rows.len() as u64).collect();
        Batch::from_handle(Arc::new(TestBatch { dataset: name.to_owned(), ids, columns }))
    }
}

impl Column {
    fn rows(&self) -> usize {
        self.offsets.as_ref().map_or(self.values.len(), |o| o.len() - 1)
    }

    fn pick(&self, rows: &[usize]) -> (Window, Option<Window>) {
        let Some(offsets) = &self.offsets else {
            return (Window::frozen(self.values.pick(rows.iter().copied())), None);
        };
        let list = |r: &usize| offsets[*r] as usize..offsets[*r + 1] as usize;
        let mut picked = vec![0u32];
        let mut end = 0;
        for row in rows {
            end += list(row).len() as u32;
            picked.push(end);
        }
        let values = self.values.pick(rows.iter().flat_map(list));
        (Window::frozen(values), Some(Window::frozen(Array::U32(picked))))
    }

    fn facts(&self) -> ColumnFacts {
        let values = self.values.to_f64();
        let integral = !matches!(self.values.dtype(), DType::F32 | DType::F64);
        let max = values.iter().copied().reduce(f64::max).unwrap_or(0.0);
        let indices = self.offsets.is_some() && integral && !values.is_empty();
        ColumnFacts {
            dtype: self.values.dtype(),
            list: self.offsets.is_some(),
            values: values.len() as u64,
            min: values.iter().copied().reduce(f64::min).unwrap_or(0.0),
            max,
            sum: values.iter().sum(),
            keys: self.keys.or(indices.then_some(max as u64 + 1)),
        }
    }
}
