//! NumPy's `.npy`, version 1.0: one array in C order. Its header holds the number of rows, which predictions know only
//! at the end, so room is left and filled in then.

use super::{Cells, Field, RowsWriter, dense};
use crate::atomic::AtomicFile;
use slackline_core::{DType, Values};
use std::io::{self, Seek, SeekFrom, Write};

/// Magic, version, length and dictionary, padded; a multiple of 64 as the format asks.
const HEADER: usize = 128;

/// An array in the making.
pub struct Npy {
    out: AtomicFile,
    dtype: DType,
    widths: Vec<usize>,
}

impl Npy {
    pub(super) fn begin(mut out: AtomicFile, fields: &[Field]) -> io::Result<Self> {
        out.write_all(&[0; HEADER])?;
        let dtype = fields.first().map_or(DType::F32, |f| f.dtype);
        Ok(Self { out, dtype, widths: fields.iter().map(|f| f.width).collect() })
    }
}

impl RowsWriter for Npy {
    fn write(&mut self, _first: u64, rows: usize, cells: &[Cells]) -> io::Result<()> {
        let parts: Vec<_> = cells.iter().zip(&self.widths).map(|(c, width)| dense(c, rows, *width)).collect();
        if let [only] = parts.as_slice() {
            return self.out.write_all(only.bytes());
        }
        for row in 0..rows {
            for (part, width) in parts.iter().zip(&self.widths) {
                let size = width * self.dtype.size();
                self.out.write_all(&Values::bytes(part)[row * size..(row + 1) * size])?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, rows: u64) -> io::Result<AtomicFile> {
        let header = header(self.dtype, rows, self.widths.iter().sum());
        let file = self.out.file()?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        Ok(self.out)
    }
}

fn header(dtype: DType, rows: u64, width: usize) -> [u8; HEADER] {
    let code = match dtype {
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::U8 => "|u1",
    };
    // A single value a row makes a vector, as one would write it in NumPy.
    let shape = if width == 1 { format!("({rows},)") } else { format!("({rows}, {width})") };
    let text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut out = [b' '; HEADER];
    out[..8].copy_from_slice(b"\x93NUMPY\x01\x00");
    out[8..10].copy_from_slice(&(HEADER as u16 - 10).to_le_bytes());
    // Two 20-digit numbers and the fixed text stay below 117 bytes.
    out[10..10 + text.len()].copy_from_slice(text.as_bytes());
    out[HEADER - 1] = b'\n';
    out
}
