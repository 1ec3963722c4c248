//! What a plugin sees of a dataset: named columns, a batch of rows at a time.

use crate::values::Values;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One column of a batch: a value a row, or a list a row.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values; for a list column, all lists one after the other.
    pub values: Arc<Values>,
    /// For a list column, rows + 1 places in `values`: row `i` owns `offsets[i]..offsets[i + 1]`.
    pub offsets: Option<Arc<Values>>,
}

impl Column {
    /// A value a row.
    pub fn flat(values: Values) -> Self {
        Self { values: Arc::new(values), offsets: None }
    }

    /// A list a row; offsets start at 0 and are relative to `values`.
    pub fn list(values: Values, offsets: Vec<u32>) -> Self {
        Self { values: Arc::new(values), offsets: Some(Arc::new(Values::U32(offsets))) }
    }
}

/// Some rows of one worker's partition of one dataset.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Which dataset: `train`, `test`, or the name in the job file.
    pub dataset: Arc<str>,
    /// Each row's place in the worker's partition: the key of partition-local state. Its length is the row count.
    pub ids: Arc<Values>,
    /// Columns by the names that the plugin asked for.
    pub columns: BTreeMap<String, Column>,
}

impl Batch {
    /// A batch of `ids.len()` rows.
    pub fn new(dataset: &str, ids: Vec<u64>, columns: BTreeMap<String, Column>) -> Self {
        Self { dataset: dataset.into(), ids: Arc::new(Values::U64(ids)), columns }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }
}
