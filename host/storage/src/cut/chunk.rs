//! The pieces that parts are stored in: their keys, their sizes, and the bytes of sparse rows.
//!
//! A chunk's value is bare: dense rows and local state as little-endian values, sparse rows as offsets (rows + 1 u32),
//! columns (u32) and values one after the other. What it should hold, how long it is and its BLAKE3 stand in the cut's
//! record.

use serde::{Deserialize, Serialize};
use slackline_core::ports::SparseRows;
use slackline_core::{DType, TableId, TableSpec, Values, ValuesRef, each_dtype};

/// What a chunk is filled to, unless one row alone is larger.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// The most that one chunk, and therefore one row, may take.
pub const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// Length and checksum of a stored chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
}

impl Sum {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }

    /// What is wrong with `bytes`, if anything.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.bytes {
            return Err(format!("it has {} bytes instead of {}", bytes.len(), self.bytes));
        }
        if blake3::hash(bytes).to_hex().as_str() != self.blake3 {
            return Err("its checksum differs".to_owned());
        }
        Ok(())
    }
}

pub(crate) fn rows_key(table: TableId, first: u64) -> Vec<u8> {
    [&[0u8][..], &table.0.to_be_bytes(), &first.to_be_bytes()].concat()
}

/// Part 0 is what the instance saved, part `i + 1` the `i`-th local buffer by name.
pub(crate) fn worker_key(worker: u32, part: u32, chunk: u32) -> Vec<u8> {
    [&[1u8][..], &worker.to_be_bytes(), &part.to_be_bytes(), &chunk.to_be_bytes()].concat()
}

/// The values' bytes, without a copy.
pub(crate) fn bytes_of(values: ValuesRef<'_>) -> &[u8] {
    each_dtype!(ValuesRef, values, v => bytemuck::cast_slice(v))
}

/// Bytes of a dense chunk; `None` on overflow.
pub(crate) fn dense_bytes(spec: &TableSpec, rows: u64) -> Option<u64> {
    rows.checked_mul(u64::from(spec.width))?.checked_mul(spec.dtype.size() as u64)
}

/// Bytes of a sparse chunk; `None` on overflow.
pub(crate) fn sparse_bytes(spec: &TableSpec, rows: u64, cells: u64) -> Option<u64> {
    let offsets = rows.checked_add(1)?.checked_mul(4)?;
    offsets.checked_add(cells.checked_mul(4 + spec.dtype.size() as u64)?)
}

/// What is wrong with sparse rows for a table like `spec`, if anything.
pub(crate) fn check_sparse(spec: &TableSpec, rows: &SparseRows) -> Result<(), String> {
    let cells = rows.columns.len();
    if rows.values.dtype() != spec.dtype {
        return Err(format!("its values are {}, the table's are {}", rows.values.dtype(), spec.dtype));
    }
    if rows.values.len() != cells {
        return Err(format!("it has {cells} columns and {} values", rows.values.len()));
    }
    if rows.offsets.first() != Some(&0) || rows.offsets.last().map(|end| *end as usize) != Some(cells) {
        return Err(format!("its offsets do not go from 0 to {cells}"));
    }
    for bounds in rows.offsets.windows(2) {
        let Some(columns) = rows.columns.get(bounds[0] as usize..bounds[1] as usize) else {
            return Err("its offsets do not ascend".to_owned());
        };
        if columns.last().is_some_and(|last| *last >= spec.width) || columns.windows(2).any(|c| c[0] >= c[1]) {
            return Err(format!("a row's columns do not ascend below {}", spec.width));
        }
    }
    Ok(())
}

/// Rows `from..to` of sound sparse rows, as bytes.
pub(crate) fn encode_sparse(rows: &SparseRows, from: usize, to: usize, out: &mut Vec<u8>) {
    out.clear();
    let (start, end) = (rows.offsets[from], rows.offsets[to]);
    for offset in &rows.offsets[from..=to] {
        out.extend_from_slice(&(offset - start).to_le_bytes());
    }
    let cells = start as usize..end as usize;
    out.extend_from_slice(bytemuck::cast_slice(&rows.columns[cells.clone()]));
    let size = rows.values.dtype().size();
    out.extend_from_slice(&rows.values.bytes()[cells.start * size..cells.end * size]);
}

/// The end of the chunk that begins at row `from`: at least one row, else as many as fit.
pub(crate) fn sparse_chunk_end(rows: &SparseRows, from: usize) -> usize {
    let cell = 4 + rows.values.dtype().size();
    let size = |to: usize| 4 * (to - from + 1) + cell * (rows.offsets[to] - rows.offsets[from]) as usize;
    let mut to = from + 1;
    while to + 1 < rows.offsets.len() && size(to + 1) <= CHUNK_BYTES {
        to += 1;
    }
    to
}

/// Sparse rows from the bytes of a chunk with that many rows and cells; not yet checked.
pub(crate) fn decode_sparse(dtype: DType, rows: u64, cells: u64, bytes: &[u8]) -> Option<SparseRows> {
    let (rows, cells) = (usize::try_from(rows).ok()?, usize::try_from(cells).ok()?);
    let (offsets, rest) = bytes.split_at_checked(rows.checked_add(1)?.checked_mul(4)?)?;
    let (columns, values) = rest.split_at_checked(cells.checked_mul(4)?)?;
    let words = |b: &[u8]| match Values::from_bytes(DType::U32, b) {
        Some(Values::U32(v)) => Some(v),
        _ => None,
    };
    Some(SparseRows { offsets: words(offsets)?, columns: words(columns)?, values: Values::from_bytes(dtype, values)? })
}
