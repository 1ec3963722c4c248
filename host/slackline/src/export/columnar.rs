//! Parquet and Arrow IPC. A column of width 1 is plain, a wider one a fixed-size list; sparse rows are two lists,
//! `column` and `value`.

use super::{Cells, Field, RowsWriter};
use crate::atomic::AtomicFile;
use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use arrow::ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use slackline_core::{DType, Layout, Values};
use std::io;
use std::sync::Arc;

/// A Parquet file in the making.
pub struct Parquet {
    out: ArrowWriter<AtomicFile>,
    columns: Columns,
}

impl Parquet {
    pub(super) fn begin(out: AtomicFile, fields: &[Field], numbered: bool) -> io::Result<Self> {
        let columns = Columns::new(fields, numbered)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let out = ArrowWriter::try_new(out, columns.schema.clone(), Some(properties)).map_err(io::Error::other)?;
        Ok(Self { out, columns })
    }
}

impl RowsWriter for Parquet {
    fn write(&mut self, first: u64, rows: usize, cells: &[Cells]) -> io::Result<()> {
        let batch = self.columns.batch(first, rows, cells)?;
        self.out.write(&batch).map_err(io::Error::other)
    }

    fn finish(self: Box<Self>, _rows: u64) -> io::Result<AtomicFile> {
        self.out.into_inner().map_err(io::Error::other)
    }
}

/// An Arrow IPC file in the making.
pub struct Arrow {
    out: FileWriter<AtomicFile>,
    columns: Columns,
}

impl Arrow {
    pub(super) fn begin(out: AtomicFile, fields: &[Field], numbered: bool) -> io::Result<Self> {
        let columns = Columns::new(fields, numbered)?;
        let out = FileWriter::try_new(out, &columns.schema).map_err(io::Error::other)?;
        Ok(Self { out, columns })
    }
}

impl RowsWriter for Arrow {
    fn write(&mut self, first: u64, rows: usize, cells: &[Cells]) -> io::Result<()> {
        let batch = self.columns.batch(first, rows, cells)?;
        self.out.write(&batch).map_err(io::Error::other)
    }

    fn finish(mut self: Box<Self>, _rows: u64) -> io::Result<AtomicFile> {
        self.out.finish().map_err(io::Error::other)?;
        self.out.into_inner().map_err(io::Error::other)
    }
}

/// How rows become Arrow columns.
struct Columns {
    schema: SchemaRef,
    fields: Vec<Field>,
    numbered: bool,
}

impl Columns {
    fn new(fields: &[Field], numbered: bool) -> io::Result<Self> {
        let mut out = Vec::new();
        if numbered {
            out.push(ArrowField::new("row", DataType::UInt64, false));
        }
        for field in fields {
            let item = |dtype| Arc::new(ArrowField::new("item", dtype, false));
            let dtype = arrow_type(field.dtype);
            match field.layout {
                Layout::Sparse => {
                    out.push(ArrowField::new("column", DataType::List(item(DataType::UInt32)), false));
                    out.push(ArrowField::new("value", DataType::List(item(dtype)), false));
                }
                Layout::Dense if field.width == 1 => out.push(ArrowField::new(&field.name, dtype, false)),
                Layout::Dense => {
                    let width = i32::try_from(field.width).map_err(io::Error::other)?;
                    out.push(ArrowField::new(&field.name, DataType::FixedSizeList(item(dtype), width), false));
                }
            }
        }
        Ok(Self { schema: Arc::new(Schema::new(out)), fields: fields.to_vec(), numbered })
    }

    fn batch(&self, first: u64, rows: usize, cells: &[Cells]) -> io::Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        if self.numbered {
            columns.push(Arc::new(UInt64Array::from_iter_values(first..first + rows as u64)));
        }
        for (field, cells) in self.fields.iter().zip(cells) {
            match cells {
                Cells::Dense(values) if field.width == 1 => columns.push(array(values)),
                Cells::Dense(values) => {
                    let item = Arc::new(ArrowField::new("item", arrow_type(field.dtype), false));
                    let width = i32::try_from(field.width).map_err(io::Error::other)?;
                    let list = FixedSizeListArray::try_new(item, width, array(values), None);
                    columns.push(Arc::new(list.map_err(io::Error::other)?));
                }
                Cells::Sparse(sparse) => {
                    let lengths = sparse.offsets.windows(2).map(|w| (w[1] - w[0]) as usize);
                    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
                    let keys: ArrayRef = Arc::new(UInt32Array::from(sparse.columns.clone()));
                    for values in [keys, array(&sparse.values)] {
                        let item = Arc::new(ArrowField::new("item", values.data_type().clone(), false));
                        let list = ListArray::try_new(item, offsets.clone(), values, None);
                        columns.push(Arc::new(list.map_err(io::Error::other)?));
                    }
                }
            }
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)
    }
}

fn arrow_type(dtype: DType) -> DataType {
    match dtype {
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::U8 => DataType::UInt8,
    }
}

fn array(values: &Values) -> ArrayRef {
    match values {
        Values::F32(v) => Arc::new(Float32Array::from(v.clone())),
        Values::F64(v) => Arc::new(Float64Array::from(v.clone())),
        Values::I32(v) => Arc::new(Int32Array::from(v.clone())),
        Values::I64(v) => Arc::new(Int64Array::from(v.clone())),
        Values::U32(v) => Arc::new(UInt32Array::from(v.clone())),
        Values::U64(v) => Arc::new(UInt64Array::from(v.clone())),
        Values::U8(v) => Arc::new(UInt8Array::from(v.clone())),
    }
}
