//! Typed arrays in host memory, and the ones that outlive an instance.

use crate::element::Element;
use crate::error::{Error, Result};
use crate::sys;
use std::marker::PhantomData;

/// A typed array in host memory, held by a handle. Reading and writing copy; a slice shares its array.
pub struct Buffer<T: Element> {
    pub(crate) raw: sys::Buffer,
    kind: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Result<Self> {
        Self::checked(sys::Buffer::alloc(T::DTYPE, len as u64)?)
    }

    /// With these values.
    pub fn from_slice(values: &[T]) -> Result<Self> {
        let buffer = Self::zeros(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }

    pub(crate) fn checked(raw: sys::Buffer) -> Result<Self> {
        let dtype = raw.dtype();
        if dtype != T::DTYPE {
            return Err(Error::Invalid(format!("a buffer of {dtype} was asked for as {}", T::DTYPE)));
        }
        Ok(Self { raw, kind: PhantomData })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.raw.len() as usize
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `n` values from `at`, in place of what `out` held.
    pub fn read(&self, at: usize, n: usize, out: &mut Vec<T>) -> Result<()> {
        self.raw.read(at as u64, window(n)?, out)
    }

    /// All values.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out = Vec::new();
        self.read(0, self.len(), &mut out)?;
        Ok(out)
    }

    /// Overwrites from `at`.
    pub fn write(&self, at: usize, values: &[T]) -> Result<()> {
        self.raw.write(at as u64, values)
    }

    /// Sets every value.
    pub fn fill(&self, value: T) -> Result<()> {
        self.raw.fill(value.to_f64())
    }

    /// The window `at..at + n`, sharing the array.
    pub fn slice(&self, at: usize, n: usize) -> Result<Self> {
        Ok(Self { raw: self.raw.slice(at as u64, n as u64)?, kind: PhantomData })
    }

    /// Copies another buffer of the same length.
    pub fn copy_from(&self, source: &Buffer<T>) -> Result<()> {
        self.raw.copy_from(&source.raw)
    }
}

fn window(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::Invalid(format!("a window of {n} values is beyond 2^32")))
}

/// Partition-local state: named buffers that belong to the worker, outlive the instance and are in every cut.
pub struct LocalState;

impl LocalState {
    /// Opens the buffer `name`, or makes it with zeros. The same name keeps its type; a larger `len` grows it with zeros,
    /// a smaller one does nothing.
    pub fn open<T: Element>(name: &str, len: usize) -> Result<Buffer<T>> {
        Buffer::checked(sys::local_open(name, T::DTYPE, len as u64)?)
    }
}
