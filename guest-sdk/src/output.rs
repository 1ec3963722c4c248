//! Where `predict` puts its columns.

use crate::buffer::Buffer;
use crate::element::Element;
use crate::error::Result;
use crate::sys;

/// Puts a column of predictions: a value a row of the batch, or the same number of values a row.
pub fn put<T: Element>(column: &str, values: &[T]) -> Result<()> {
    put_buffer(column, &Buffer::from_slice(values)?)
}

/// The same from a buffer; the values are copied.
pub fn put_buffer<T: Element>(column: &str, values: &Buffer<T>) -> Result<()> {
    sys::put(column, &values.raw)
}
