//! Parquet and Arrow IPC: columns by name, lists of every kind as lists.
//!
//! Arrow is decoded as a stream also when it is a file (a file is a stream between two frames): so it may be compressed
//! or larger than memory, and nothing is allocated before its bytes are there. Both decoders are other people's code
//! that may panic on a damaged file; such a panic is caught and told as the file's fault.

use super::input::{Input, Meter};
use super::{Native, Reader, owned};
use crate::builder::Builder;
use crate::error::{DataError, Place, shown};
use crate::intake::{Fault, Intake};
use crate::number::Misfit;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::ipc::reader::StreamDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use slackline_core::values::ValuesRef;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn damaged(path: &Path, what: &str, found: impl std::fmt::Display) -> DataError {
    DataError::malformed(Place::file(path), format!("a sound {what} file"), found.to_string())
}

fn guarded<T>(path: &Path, what: &str, f: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(damaged(path, what, "damage that its decoder fell over")))
}

fn natives(schema: &Schema) -> Vec<Native> {
    let native = |f: &std::sync::Arc<arrow::datatypes::Field>| {
        let (list, of) = match f.data_type() {
            DataType::List(i) | DataType::LargeList(i) | DataType::FixedSizeList(i, _) => (true, i.data_type()),
            other => (false, other),
        };
        let of = if let DataType::Dictionary(_, v) = of { v.as_ref() } else { of };
        let only = match of {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some("text"),
            DataType::Boolean => None,
            numeric if numeric.is_numeric() && !matches!(numeric, DataType::Float16 | DataType::Decimal128(..)) => None,
            _ => Some("a type that is neither number nor text"),
        };
        Native { name: f.name().clone(), list, only }
    };
    schema.fields().iter().map(native).collect()
}

/// Opens a Parquet file.
pub(super) fn parquet(path: &Path, meter: &Meter) -> Result<Box<dyn Reader>, DataError> {
    guarded(path, "parquet", || {
        let file = File::open(path).map_err(DataError::io(path))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(path, "parquet", e))?;
        let natives = natives(builder.schema());
        Ok(Box::new(Parquet { path: owned(path), builder, natives, meter: meter.clone() }) as Box<dyn Reader>)
    })
}

struct Parquet {
    path: PathBuf,
    builder: ParquetRecordBatchReaderBuilder<File>,
    natives: Vec<Native>,
    meter: Meter,
}

impl Reader for Parquet {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let Parquet { path, builder, natives, meter } = *self;
        let mut roots: Vec<usize> = bound.iter().flatten().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        let place = |n: &usize| roots.binary_search(n).unwrap_or(0);
        let projected: Vec<Vec<usize>> = bound.iter().map(|from| from.iter().map(place).collect()).collect();
        let names: Vec<&str> = roots.iter().map(|n| natives[*n].name.as_str()).collect();
        let rows = builder.metadata().file_metadata().num_rows().max(1) as u64;
        let (read, total) = meter.read();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        guarded(&path, "parquet", || {
            let batches = builder.with_batch_size(8192).with_projection(mask).build();
            let mut feed = Feed { path: path.clone(), what: "parquet", row: 0 };
            for batch in batches.map_err(|e| damaged(&path, "parquet", e))? {
                let batch = batch.map_err(|e| damaged(&path, "parquet", e))?;
                feed.batch(&batch, &names, &projected, intake)?;
                let share = total.saturating_sub(read) as f64 * batch.num_rows() as f64 / rows as f64;
                meter.advance(share as u64);
            }
            Ok(())
        })
    }
}

/// Opens an Arrow file or stream.
pub(super) fn arrow(path: &Path, mut input: Input) -> Result<Box<dyn Reader>, DataError> {
    let rest = first_message(path, &mut input)?;
    let mut stream = ArrowStream { path: owned(path), input, decoder: StreamDecoder::new(), rest, ahead: None };
    let schema = guarded(path, "arrow", || {
        loop {
            if let Some(schema) = stream.decoder.schema() {
                return Ok(schema);
            }
            match stream.next()? {
                Some(batch) => stream.ahead = Some(batch),
                None => return stream.decoder.schema().ok_or_else(|| damaged(path, "arrow", "no schema")),
            }
        }
    })?;
    Ok(Box::new(Arrow { natives: natives(&schema), stream }))
}

/// The first bytes behind a file's magic word and its zeros, of which writers put up to 58; a stream has neither.
fn first_message(path: &Path, input: &mut Input) -> Result<Buffer, DataError> {
    let mut eight = || {
        let mut bytes = Vec::new();
        input.take(8).read_to_end(&mut bytes).map(|_| bytes).map_err(DataError::io(path))
    };
    let mut head = eight()?;
    if head == b"ARROW1\0\0" {
        head = eight()?;
        while head == [0; 8] {
            head = eight()?;
        }
    }
    Ok(Buffer::from(head))
}

struct ArrowStream {
    path: PathBuf,
    input: Input,
    decoder: StreamDecoder,
    rest: Buffer,
    /// A batch that came while the schema was looked for.
    ahead: Option<RecordBatch>,
}

const BLOCK: usize = 1 << 20;

impl ArrowStream {
    fn next(&mut self) -> Result<Option<RecordBatch>, DataError> {
        if let Some(batch) = self.ahead.take() {
            return Ok(Some(batch));
        }
        loop {
            match self.decoder.decode(&mut self.rest) {
                Ok(Some(batch)) => return Ok(Some(batch)),
                Ok(None) => {}
                // The stream has ended in good order; what is left is a file's footer.
                Err(_) if self.decoder.finish().is_ok() => return Ok(None),
                Err(e) => return Err(damaged(&self.path, "arrow", e)),
            }
            let mut block = Vec::new();
            (&mut self.input).take(BLOCK as u64).read_to_end(&mut block).map_err(DataError::io(&self.path))?;
            if block.is_empty() {
                self.decoder.finish().map_err(|e| damaged(&self.path, "arrow", e))?;
                return Ok(None);
            }
            self.rest = Buffer::from(block);
        }
    }
}

struct Arrow {
    natives: Vec<Native>,
    stream: ArrowStream,
}

impl Reader for Arrow {
    fn natives(&self) -> &[Native] {
        &self.natives
    }

    fn read(mut self: Box<Self>, bound: &[Vec<usize>], intake: &mut Intake<'_>) -> Result<(), DataError> {
        let path = self.stream.path.clone();
        let names: Vec<&str> = self.natives.iter().map(|n| n.name.as_str()).collect();
        guarded(&path, "arrow", || {
            let mut feed = Feed { path: path.clone(), what: "arrow", row: 0 };
            while let Some(batch) = self.stream.next()? {
                feed.batch(&batch, &names, bound, intake)?;
            }
            Ok(())
        })
    }
}

/// Feeds record batches, row by row.
struct Feed {
    path: PathBuf,
    what: &'static str,
    row: u64,
}

impl Feed {
    fn batch(
        &mut self,
        batch: &RecordBatch,
        names: &[&str],
        bound: &[Vec<usize>],
        intake: &mut Intake<'_>,
    ) -> Result<(), DataError> {
        let used = |n: usize| bound.iter().any(|from| from.contains(&n));
        let mut cells = Vec::with_capacity(batch.num_columns());
        for (n, column) in batch.columns().iter().enumerate() {
            cells.push(if used(n) {
                Some(Cells::of(column).map_err(|e| damaged(&self.path, self.what, e))?)
            } else {
                None
            });
        }
        for row in 0..batch.num_rows() {
            self.row += 1;
            let mut result = Ok(());
            for (builder, from) in intake.columns().iter_mut().zip(bound) {
                for n in from {
                    let Some(cells) = &cells[*n] else { continue };
                    if let Err((found, why)) = cells.push(row, builder) {
                        let expected = builder.expects(why);
                        result = Err(Fault { column: 0, name: Some(names[*n].to_owned()), expected, found });
                    }
                }
            }
            match result {
                Ok(()) => intake.commit()?,
                Err(fault) => intake.reject(fault.at(Place::row(&self.path, self.row)))?,
            }
        }
        Ok(())
    }
}

/// A column of a record batch.
struct Cells {
    outer: ArrayRef,
    extent: Extent,
    inner: ArrayRef,
    data: Data,
}

/// Which values belong to a row.
enum Extent {
    One,
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
    Fixed(usize),
}

/// The values, widened to types of ours.
enum Data {
    F32(ScalarBuffer<f32>),
    F64(ScalarBuffer<f64>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
    U8(ScalarBuffer<u8>),
    Text,
}

impl Cells {
    fn of(column: &ArrayRef) -> Result<Self, arrow::error::ArrowError> {
        let (extent, inner) = match column.data_type() {
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                (Extent::Small(list.offsets().clone()), list.values().clone())
            }
            DataType::LargeList(_) => {
                let list = column.as_list::<i64>();
                (Extent::Large(list.offsets().clone()), list.values().clone())
            }
            DataType::FixedSizeList(_, n) => {
                let list = column.as_fixed_size_list();
                (Extent::Fixed(*n as usize), list.values().clone())
            }
            _ => (Extent::One, column.clone()),
        };
        let inner = match inner.data_type() {
            DataType::Dictionary(_, of) => arrow::compute::cast(&inner, of)?,
            DataType::Utf8View | DataType::LargeUtf8 => arrow::compute::cast(&inner, &DataType::Utf8)?,
            DataType::Boolean => arrow::compute::cast(&inner, &DataType::UInt8)?,
            _ => inner,
        };
        let data = match inner.data_type() {
            DataType::Float32 => Data::F32(inner.as_primitive::<Float32Type>().values().clone()),
            DataType::Float64 => Data::F64(inner.as_primitive::<Float64Type>().values().clone()),
            DataType::Int8 => {
                Data::I32(inner.as_primitive::<Int8Type>().values().iter().map(|v| i32::from(*v)).collect())
            }
            DataType::Int16 => {
                Data::I32(inner.as_primitive::<Int16Type>().values().iter().map(|v| i32::from(*v)).collect())
            }
            DataType::Int32 => Data::I32(inner.as_primitive::<Int32Type>().values().clone()),
            DataType::Int64 => Data::I64(inner.as_primitive::<Int64Type>().values().clone()),
            DataType::UInt8 => Data::U8(inner.as_primitive::<UInt8Type>().values().clone()),
            DataType::UInt16 => {
                Data::U32(inner.as_primitive::<UInt16Type>().values().iter().map(|v| u32::from(*v)).collect())
            }
            DataType::UInt32 => Data::U32(inner.as_primitive::<UInt32Type>().values().clone()),
            DataType::UInt64 => Data::U64(inner.as_primitive::<UInt64Type>().values().clone()),
            DataType::Utf8 => Data::Text,
            other => return Err(arrow::error::ArrowError::CastError(format!("values of type {other}"))),
        };
        Ok(Self { outer: column.clone(), extent, inner, data })
    }

    fn range(&self, row: usize) -> Range<usize> {
        match &self.extent {
            Extent::One => row..row + 1,
            Extent::Small(o) => o[row] as usize..o[row + 1] as usize,
            Extent::Large(o) => o[row] as usize..o[row + 1] as usize,
            Extent::Fixed(n) => row * n..(row + 1) * n,
        }
    }

    /// Adds a row's values to a builder; on a misfit says what was found.
    fn push(&self, row: usize, builder: &mut Builder) -> Result<(), (String, Misfit)> {
        let range = self.range(row);
        let missing =
            self.outer.is_null(row) || (self.inner.null_count() > 0 && range.clone().any(|i| self.inner.is_null(i)));
        if missing {
            return Err(("null".into(), Misfit::Missing));
        }
        let values = match &self.data {
            Data::F32(v) => ValuesRef::F32(&v[range]),
            Data::F64(v) => ValuesRef::F64(&v[range]),
            Data::I32(v) => ValuesRef::I32(&v[range]),
            Data::I64(v) => ValuesRef::I64(&v[range]),
            Data::U32(v) => ValuesRef::U32(&v[range]),
            Data::U64(v) => ValuesRef::U64(&v[range]),
            Data::U8(v) => ValuesRef::U8(&v[range]),
            Data::Text => {
                let texts = self.inner.as_string::<i32>();
                for i in range {
                    let text = texts.value(i).as_bytes();
                    builder.push_text(text).map_err(|why| (shown(text), why))?;
                }
                return Ok(());
            }
        };
        builder.push_values(values).map_err(|(at, why)| (super::npy::value(values, at), why))
    }
}
