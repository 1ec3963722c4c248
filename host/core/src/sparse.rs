//! One sparse row: columns in ascending order and their values. Shards, oplogs and caches all keep rows like this.

use crate::values::Element;

/// Columns in ascending order, one value each, none of them zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseRow<T> {
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Element> SparseRow<T> {
    /// Ascending columns.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Values at the same places.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.values.clear();
    }

    /// Adds to columns, which may come in any order and repeat; a value that becomes zero disappears.
    pub fn add(&mut self, columns: &[u32], values: &[T]) {
        for (&column, &value) in columns.iter().zip(values) {
            if self.columns.last().is_none_or(|last| *last < column) {
                // The common case by far: ascending columns to an empty row.
                if value != T::default() {
                    self.columns.push(column);
                    self.values.push(value);
                }
                continue;
            }
            match self.columns.binary_search(&column) {
                Ok(at) => {
                    let sum = self.values[at].plus(value);
                    if sum == T::default() {
                        self.columns.remove(at);
                        self.values.remove(at);
                    } else {
                        self.values[at] = sum;
                    }
                }
                Err(_) if value == T::default() => {}
                Err(at) => {
                    self.columns.insert(at, column);
                    self.values.insert(at, value);
                }
            }
        }
    }
}
