//! Partition-local state: named buffers that belong to a worker and are part of every cut.

use crate::buffer::Buffer;
use crate::error::HostError;
use crate::values::{DType, Values};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A worker's named buffers. Clones are the same state.
#[derive(Clone, Debug, Default)]
pub struct LocalState {
    buffers: Arc<Mutex<BTreeMap<String, Buffer>>>,
}

impl LocalState {
    /// From a cut.
    pub fn restore(values: BTreeMap<String, Values>) -> Self {
        let buffers = values.into_iter().map(|(k, v)| (k, Buffer::live(v))).collect();
        Self { buffers: Arc::new(Mutex::new(buffers)) }
    }

    /// Opens `name`, or makes it with zeros. An existing buffer must have the type; it grows with zeros when `len` is
    /// larger than it is, and stays as it is when `len` is smaller.
    pub fn open(&self, name: &str, dtype: DType, len: usize) -> Result<Buffer, HostError> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(b) = buffers.get(name) {
            if b.dtype() != dtype {
                return Err(HostError::Invalid(format!("local state {name:?} holds {}, not {dtype}", b.dtype())));
            }
            b.grow(len);
            return Ok(b.clone());
        }
        let b = Buffer::zeros(dtype, len);
        buffers.insert(name.to_owned(), b.clone());
        Ok(b)
    }

    /// Bytes that all buffers hold.
    pub fn bytes(&self) -> u64 {
        let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.values().map(|b| b.len() as u64 * b.dtype().size() as u64).sum()
    }

    /// Bytes that `name` holds now; 0 when it does not exist.
    pub fn bytes_of(&self, name: &str) -> u64 {
        let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.get(name).map_or(0, |b| b.len() as u64 * b.dtype().size() as u64)
    }

    /// A copy of everything, for a cut.
    pub fn snapshot(&self) -> BTreeMap<String, Values> {
        let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.iter().map(|(k, b)| (k.clone(), b.to_values())).collect()
    }
}
