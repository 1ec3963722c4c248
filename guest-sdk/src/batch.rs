//! The batch at hand: some rows of this worker's partition of a dataset.

use crate::buffer::Buffer;
use crate::element::Element;
use crate::error::Result;
use crate::sys;

/// Some rows, by named columns.
#[repr(transparent)]
pub struct Batch {
    raw: sys::Batch,
}

impl Batch {
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn from_raw(raw: &sys::RawBatch) -> &Self {
        // SAFETY: Batch is a transparent wrapper of sys::Batch, which is one of sys::RawBatch, so all three share layout
        // and validity, and the lifetime is that of the argument.
        unsafe { &*std::ptr::from_ref(raw).cast() }
    }

    /// A batch that an installed [`Backend`](crate::native::Backend) understands.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn from_handle(handle: crate::native::Handle) -> Self {
        Self { raw: sys::Batch(handle) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.raw.rows() as usize
    }

    /// `train`, `test`, or the name that the job file gives.
    pub fn dataset(&self) -> String {
        self.raw.dataset()
    }

    /// Each row's place in its partition: the key of partition-local state.
    pub fn ids(&self) -> Vec<u64> {
        self.raw.ids()
    }

    /// Whether the dataset has the column.
    pub fn has(&self, column: &str) -> bool {
        self.raw.has(column)
    }

    /// A column's values; for a list column, all lists one after the other.
    pub fn column<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        self.column_buffer::<T>(name)?.to_vec()
    }

    /// The same, in place of what `out` held.
    pub fn read_column<T: Element>(&self, name: &str, out: &mut Vec<T>) -> Result<()> {
        let buffer = self.column_buffer::<T>(name)?;
        buffer.read(0, buffer.len(), out)
    }

    /// A column's values where they are, read-only.
    pub fn column_buffer<T: Element>(&self, name: &str) -> Result<Buffer<T>> {
        Buffer::checked(self.raw.column(name)?)
    }

    /// For a list column: rows + 1 places in its values.
    pub fn offsets(&self, name: &str) -> Result<Vec<u32>> {
        self.offsets_buffer(name)?.to_vec()
    }

    /// The same, where they are.
    pub fn offsets_buffer(&self, name: &str) -> Result<Buffer<u32>> {
        Buffer::checked(self.raw.offsets(name)?)
    }

    /// A list column: row `i` owns `values[offsets[i]..offsets[i + 1]]`.
    pub fn list<T: Element>(&self, name: &str) -> Result<(Vec<u32>, Vec<T>)> {
        Ok((self.offsets(name)?, self.column(name)?))
    }
}

/// Rows of this worker's partition of a dataset; 0 when there is no such dataset.
pub fn partition_rows(dataset: &str) -> u64 {
    sys::partition_rows(dataset)
}
