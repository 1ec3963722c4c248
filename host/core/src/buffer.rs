//! Typed arrays in host memory that a guest holds by handle: allocated by it, columns of a batch, or local state.

use crate::error::HostError;
use crate::values::{DType, Values, ValuesMut, ValuesRef};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A window of a typed array. Clones and slices share the array.
#[derive(Clone, Debug)]
pub struct Buffer {
    storage: Storage,
    at: usize,
    /// `None`: to the end of the array, wherever that is (local state grows).
    len: Option<usize>,
}

#[derive(Clone, Debug)]
enum Storage {
    /// Columns of a batch: shared and never written.
    Frozen(Arc<Values>),
    /// Everything else. One worker's thread uses it; the lock serves the cut, which copies it at a tick.
    Live(Arc<Mutex<Values>>),
}

/// Read access to a buffer's window.
pub enum BufferGuard<'a> {
    /// Of a batch's column.
    Frozen(&'a Values, usize, usize),
    /// Of a live array.
    Live(MutexGuard<'a, Values>, usize, usize),
}

impl BufferGuard<'_> {
    /// The window's values.
    pub fn values(&self) -> ValuesRef<'_> {
        let (all, at, len) = match self {
            BufferGuard::Frozen(v, at, len) => (v.as_ref(), *at, *len),
            BufferGuard::Live(v, at, len) => (v.as_ref_values(), *at, *len),
        };
        window_or_empty(all, at, len)
    }

    /// The window's values for writing; `None` for a column of a batch.
    pub fn values_mut(&mut self) -> Option<ValuesMut<'_>> {
        match self {
            BufferGuard::Frozen(..) => None,
            BufferGuard::Live(v, at, len) => v.as_mut().window(*at, *len),
        }
    }
}

trait AsRefValues {
    fn as_ref_values(&self) -> ValuesRef<'_>;
}

impl AsRefValues for Values {
    fn as_ref_values(&self) -> ValuesRef<'_> {
        Values::as_ref(self)
    }
}

fn window_or_empty(all: ValuesRef<'_>, at: usize, len: usize) -> ValuesRef<'_> {
    // Live arrays only grow, so a window once checked stays inside; the fallback keeps this total.
    all.window(at, len).or_else(|| all.window(0, 0)).unwrap_or(all)
}

impl Buffer {
    /// `len` zeros. The caller has checked `len` against the instance's limit.
    pub fn zeros(dtype: DType, len: usize) -> Self {
        Self::live(Values::zeros(dtype, len))
    }

    /// A writable buffer over `values`.
    pub fn live(values: Values) -> Self {
        Self { storage: Storage::Live(Arc::new(Mutex::new(values))), at: 0, len: None }
    }

    /// A read-only buffer over a batch's column.
    pub fn frozen(values: Arc<Values>) -> Self {
        Self { storage: Storage::Frozen(values), at: 0, len: None }
    }

    /// Number of values in the window.
    pub fn len(&self) -> usize {
        self.len.unwrap_or_else(|| self.storage_len().saturating_sub(self.at))
    }

    /// Whether the window is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds.
    pub fn dtype(&self) -> DType {
        match &self.storage {
            Storage::Frozen(v) => v.dtype(),
            Storage::Live(v) => lock(v).dtype(),
        }
    }

    /// Whether both are windows of one array, so that locking one locks the other.
    pub fn shares_storage(&self, other: &Buffer) -> bool {
        match (&self.storage, &other.storage) {
            (Storage::Live(a), Storage::Live(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Locks the window. Lock two buffers only after [`Buffer::shares_storage`] said no.
    pub fn lock(&self) -> BufferGuard<'_> {
        match &self.storage {
            Storage::Frozen(v) => BufferGuard::Frozen(v, self.at, self.len()),
            Storage::Live(v) => {
                let guard = lock(v);
                let len = self.len.unwrap_or_else(|| guard.len().saturating_sub(self.at));
                BufferGuard::Live(guard, self.at, len)
            }
        }
    }

    /// The window `at..at + n` of this window, sharing the array.
    pub fn slice(&self, at: usize, n: usize) -> Result<Buffer, HostError> {
        let end = at.checked_add(n).filter(|end| *end <= self.len());
        if end.is_none() {
            return Err(HostError::Invalid(format!("slice {at}+{n} of a buffer of {} values", self.len())));
        }
        Ok(Buffer { storage: self.storage.clone(), at: self.at + at, len: Some(n) })
    }

    /// A copy of the window.
    pub fn to_values(&self) -> Values {
        self.lock().values().to_values()
    }

    /// Grows the whole array with zeros to at least `len` values; only meant for unsliced live buffers.
    pub fn grow(&self, len: usize) {
        if let Storage::Live(v) = &self.storage {
            let mut v = lock(v);
            if v.len() < len {
                v.resize(len);
            }
        }
    }

    fn storage_len(&self) -> usize {
        match &self.storage {
            Storage::Frozen(v) => v.len(),
            Storage::Live(v) => lock(v).len(),
        }
    }
}

/// A poisoned lock means that a thread died between two whole writes of plain numbers: the array is still an array.
fn lock(v: &Mutex<Values>) -> MutexGuard<'_, Values> {
    v.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_and_are_bounded() {
        let b = Buffer::zeros(DType::F32, 10);
        let s = b.slice(4, 3).unwrap();
        if let Some(ValuesMut::F32(v)) = s.lock().values_mut() {
            v.fill(2.0);
        }
        let Values::F32(all) = b.to_values() else { panic!() };
        assert_eq!(all, [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0]);
        assert!(s.slice(2, 2).is_err());
        assert!(s.slice(usize::MAX, 2).is_err());
        assert!(b.shares_storage(&s));
    }

    #[test]
    fn columns_of_a_batch_cannot_be_written() {
        let b = Buffer::frozen(Arc::new(Values::U32(vec![1, 2, 3])));
        assert!(b.lock().values_mut().is_none());
        assert_eq!(b.slice(1, 2).unwrap().to_values(), Values::U32(vec![2, 3]));
    }
}
