//! CSV: a column a value; sparse rows as (row, column, value) triples.

use super::{Cells, Field, RowsWriter};
use crate::atomic::AtomicFile;
use slackline_core::{Layout, ValuesRef, each_dtype};
use std::io;

/// A CSV file in the making.
pub struct Csv {
    out: csv::Writer<AtomicFile>,
    widths: Vec<usize>,
    numbered: bool,
}

impl Csv {
    pub(super) fn begin(out: AtomicFile, fields: &[Field], numbered: bool) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        let mut header = Vec::new();
        if numbered {
            header.push("row".to_owned());
        }
        for field in fields {
            match (field.layout, field.width) {
                (Layout::Sparse, _) => header.extend(["column".to_owned(), "value".to_owned()]),
                (Layout::Dense, 1) => header.push(field.name.clone()),
                (Layout::Dense, width) => header.extend((0..width).map(|i| format!("{}_{i}", field.name))),
            }
        }
        out.write_record(&header)?;
        Ok(Self { out, widths: fields.iter().map(|f| f.width).collect(), numbered })
    }

    fn cell(&mut self, values: ValuesRef<'_>, at: usize) -> csv::Result<()> {
        // Rust's shortest form reads back to the same bits.
        each_dtype!(ValuesRef, values, v => self.out.write_field(v[at].to_string()))
    }
}

impl RowsWriter for Csv {
    fn write(&mut self, first: u64, rows: usize, cells: &[Cells]) -> io::Result<()> {
        for row in 0..rows {
            let id = first + row as u64;
            // A sparse table is alone in its file, so its rows may take several lines.
            if let [Cells::Sparse(sparse)] = cells {
                for at in sparse.offsets[row] as usize..sparse.offsets[row + 1] as usize {
                    self.out.write_field(id.to_string())?;
                    self.out.write_field(sparse.columns[at].to_string())?;
                    self.cell(sparse.values.as_ref(), at)?;
                    self.out.write_record(None::<&[u8]>)?;
                }
                continue;
            }
            if self.numbered {
                self.out.write_field(id.to_string())?;
            }
            for (i, cells) in cells.iter().enumerate() {
                if let Cells::Dense(values) = cells {
                    let width = self.widths[i];
                    for at in row * width..(row + 1) * width {
                        self.cell(values.as_ref(), at)?;
                    }
                }
            }
            self.out.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _rows: u64) -> io::Result<AtomicFile> {
        self.out.into_inner().map_err(|e| io::Error::other(e.to_string()))
    }
}
