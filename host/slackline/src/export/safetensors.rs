//! safetensors: a JSON header and one tensor. Written by hand, because the crate of that name wants the whole tensor in
//! memory; it is what reads the file in our tests.

use super::{Cells, Field, RowsWriter, dense};
use crate::atomic::AtomicFile;
use slackline_core::DType;
use std::io::{self, Write};

/// A tensor in the making.
pub struct Safetensors {
    out: AtomicFile,
    width: usize,
}

impl Safetensors {
    pub(super) fn begin(mut out: AtomicFile, field: &Field, rows: u64) -> io::Result<Self> {
        let dtype = match field.dtype {
            DType::F32 => "F32",
            DType::F64 => "F64",
            DType::I32 => "I32",
            DType::I64 => "I64",
            DType::U32 => "U32",
            DType::U64 => "U64",
            DType::U8 => "U8",
        };
        let row_bytes = (field.width * field.dtype.size()) as u64;
        let bytes =
            rows.checked_mul(row_bytes).ok_or_else(|| io::Error::other("the tensor is larger than any file"))?;
        let tensor = serde_json::json!({"dtype": dtype, "shape": [rows, field.width], "data_offsets": [0, bytes]});
        let mut header = serde_json::json!({ field.name.as_str(): tensor }).to_string();
        // The tensor begins on a multiple of 8.
        while !header.len().is_multiple_of(8) {
            header.push(' ');
        }
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        Ok(Self { out, width: field.width })
    }
}

impl RowsWriter for Safetensors {
    fn write(&mut self, _first: u64, rows: usize, cells: &[Cells]) -> io::Result<()> {
        cells.iter().try_for_each(|cells| self.out.write_all(dense(cells, rows, self.width).bytes()))
    }

    fn finish(self: Box<Self>, _rows: u64) -> io::Result<AtomicFile> {
        Ok(self.out)
    }
}
