//! Where accepted rows rest: chunks of columns in memory or, when a dataset outgrows its share, in an Arrow file that
//! is mapped. Either way a chunk is an Arrow record batch, and readers of batches see typed slices.

use crate::builder::Taken;
use crate::error::DataError;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, PrimitiveArray, RecordBatch};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int32Type, Int64Type, Schema, SchemaRef, UInt8Type, UInt32Type,
    UInt64Type,
};
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::root_as_footer;
use arrow::ipc::writer::FileWriter;
use memmap2::Mmap;
use slackline_core::values::{DType, Values, ValuesRef};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// One column of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkColumn {
    values: ArrayRef,
    offsets: Option<OffsetBuffer<i32>>,
}

impl ChunkColumn {
    /// All values of the chunk.
    pub(crate) fn values(&self) -> ValuesRef<'_> {
        let a = &self.values;
        match a.data_type() {
            DataType::Float32 => ValuesRef::F32(a.as_primitive::<Float32Type>().values()),
            DataType::Float64 => ValuesRef::F64(a.as_primitive::<Float64Type>().values()),
            DataType::Int32 => ValuesRef::I32(a.as_primitive::<Int32Type>().values()),
            DataType::Int64 => ValuesRef::I64(a.as_primitive::<Int64Type>().values()),
            DataType::UInt32 => ValuesRef::U32(a.as_primitive::<UInt32Type>().values()),
            DataType::UInt64 => ValuesRef::U64(a.as_primitive::<UInt64Type>().values()),
            DataType::UInt8 => ValuesRef::U8(a.as_primitive::<UInt8Type>().values()),
            // Chunks are made by `pack` alone, from the seven types above.
            _ => ValuesRef::U8(&[]),
        }
    }

    /// For a list column, where each row's values begin, and where the last one's end.
    pub(crate) fn offsets(&self) -> Option<&[i32]> {
        self.offsets.as_deref()
    }
}

/// Some rows of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<ChunkColumn>,
}

impl Chunk {
    fn of(batch: &RecordBatch) -> Self {
        let columns = batch.columns().iter().map(|c| match c.as_list_opt::<i32>() {
            Some(list) => ChunkColumn { values: list.values().clone(), offsets: Some(list.offsets().clone()) },
            None => ChunkColumn { values: c.clone(), offsets: None },
        });
        Chunk { rows: batch.num_rows(), columns: columns.collect() }
    }
}

/// The Arrow type of values.
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

fn item(dtype: DType) -> Field {
    Field::new("item", arrow_type(dtype), false)
}

/// The schema of chunks with these columns (name, type, list).
pub(crate) fn schema<'a>(columns: impl Iterator<Item = (&'a str, DType, bool)>) -> SchemaRef {
    let field = |(name, dtype, list): (&str, DType, bool)| {
        let of = if list { DataType::List(Arc::new(item(dtype))) } else { arrow_type(dtype) };
        Field::new(name, of, false)
    };
    Arc::new(Schema::new(columns.map(field).collect::<Vec<_>>()))
}

fn pack(taken: Taken) -> ArrayRef {
    let dtype = taken.values.dtype();
    let values: ArrayRef = match taken.values {
        Values::F32(v) => Arc::new(PrimitiveArray::<Float32Type>::from(v)),
        Values::F64(v) => Arc::new(PrimitiveArray::<Float64Type>::from(v)),
        Values::I32(v) => Arc::new(PrimitiveArray::<Int32Type>::from(v)),
        Values::I64(v) => Arc::new(PrimitiveArray::<Int64Type>::from(v)),
        Values::U32(v) => Arc::new(PrimitiveArray::<UInt32Type>::from(v)),
        Values::U64(v) => Arc::new(PrimitiveArray::<UInt64Type>::from(v)),
        Values::U8(v) => Arc::new(PrimitiveArray::<UInt8Type>::from(v)),
    };
    match taken.offsets {
        // The builder appends ascending ends after a first 0, so this cannot panic.
        Some(o) => {
            Arc::new(ListArray::new(Arc::new(item(dtype)), OffsetBuffer::new(ScalarBuffer::from(o)), values, None))
        }
        None => values,
    }
}

/// Collects chunks, in memory until they are too many, then on disk.
pub(crate) struct ChunkStore {
    dataset: String,
    schema: SchemaRef,
    held: Vec<RecordBatch>,
    bytes: u64,
    limit: u64,
    folder: Option<PathBuf>,
    spill: Option<(PathBuf, FileWriter<BufWriter<File>>)>,
}

impl ChunkStore {
    /// For dataset `dataset`: `limit` bytes in memory, then a file in `folder`.
    pub(crate) fn new(dataset: &str, schema: SchemaRef, limit: u64, folder: Option<&Path>) -> Self {
        Self {
            dataset: dataset.into(),
            schema,
            held: Vec::new(),
            bytes: 0,
            limit,
            folder: folder.map(Path::to_owned),
            spill: None,
        }
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, columns: Vec<Taken>) -> Result<(), DataError> {
        let columns: Vec<ArrayRef> = columns.into_iter().map(pack).collect();
        let bytes: usize = columns.iter().map(|c| c.get_array_memory_size()).sum();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|e| DataError::Invalid(format!("dataset {:?}: {e}", self.dataset)))?;
        self.bytes += bytes as u64;
        if self.spill.is_none() && self.bytes > self.limit {
            self.open()?;
        }
        match &mut self.spill {
            Some((path, writer)) => writer.write(&batch).map_err(|e| spill_error(path, e))?,
            None => self.held.push(batch),
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), DataError> {
        let Some(folder) = &self.folder else {
            return Err(DataError::Memory {
                dataset: self.dataset.clone(),
                limit: self.limit,
                advice: "raise the limit, or give a folder to spill to".into(),
            });
        };
        std::fs::create_dir_all(folder).map_err(DataError::io(folder))?;
        let safe: String = self.dataset.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let path = folder.join(format!("{safe}.{}.spill", std::process::id()));
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(DataError::Io { path, source: e }),
            _ => {}
        }
        let open = File::options().read(true).write(true).create_new(true).open(&path);
        let file = open.map_err(DataError::io(&path))?;
        // Without a name, the file is gone when this process is, however it ends.
        std::fs::remove_file(&path).map_err(DataError::io(&path))?;
        let mut writer = FileWriter::try_new_buffered(file, &self.schema).map_err(|e| spill_error(&path, e))?;
        for batch in self.held.drain(..) {
            writer.write(&batch).map_err(|e| spill_error(&path, e))?;
        }
        self.spill = Some((path, writer));
        Ok(())
    }

    /// Whether the chunks are on disk.
    pub(crate) fn spilled(&self) -> bool {
        self.spill.is_some()
    }

    /// All chunks.
    pub(crate) fn finish(mut self) -> Result<Vec<Chunk>, DataError> {
        let Some((path, mut writer)) = self.spill.take() else {
            return Ok(self.held.iter().map(Chunk::of).collect());
        };
        writer.finish().map_err(|e| spill_error(&path, e))?;
        let file = writer.into_inner().map_err(|e| spill_error(&path, e))?;
        let file = file.into_inner().map_err(|e| DataError::Io { path: path.clone(), source: e.into_error() })?;
        // SAFETY: the mapping must not change below us. `open` made this file anew and took its name away before the first
        // byte was written, so no other process can open it to write or truncate, and we write no more.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::io(&path))?;
        mapped(map).map_err(|e| spill_error(&path, e))
    }
}

fn spill_error(path: &Path, e: arrow::error::ArrowError) -> DataError {
    let source = match e {
        arrow::error::ArrowError::IoError(_, e) => e,
        other => std::io::Error::other(other),
    };
    DataError::Io { path: path.to_owned(), source }
}

/// The chunks of a file that [`ChunkStore`] wrote, without copying them.
fn mapped(map: Mmap) -> Result<Vec<Chunk>, arrow::error::ArrowError> {
    let bad = |e: &str| arrow::error::ArrowError::IpcError(e.to_owned());
    let map = Arc::new(map);
    let start = NonNull::new(map.as_ptr().cast_mut()).ok_or_else(|| bad("null mapping"))?;
    // SAFETY: start and length are those of the mapping, which the buffer keeps alive through its own `Arc` and which
    // is only read.
    let buffer = unsafe { Buffer::from_custom_allocation(start, map.len(), map.clone()) };
    let trailer = buffer.len().checked_sub(10).ok_or_else(|| bad("file is too short"))?;
    let tail: [u8; 10] = buffer[trailer..].try_into().map_err(|_| bad("file is too short"))?;
    let footer_start = trailer.checked_sub(read_footer_length(tail)?).ok_or_else(|| bad("footer is too long"))?;
    let footer = root_as_footer(&buffer[footer_start..trailer]).map_err(|e| bad(&e.to_string()))?;
    let schema = try_fb_to_schema(footer.schema().ok_or_else(|| bad("no schema"))?)?;
    // Unaligned data would be copied into memory, which is what spilling is there to avoid.
    let decoder = FileDecoder::new(Arc::new(schema), footer.version()).with_require_alignment(true);
    let mut chunks = Vec::new();
    for block in footer.recordBatches().iter().flatten() {
        let (at, len) = (block.offset() as usize, block.metaDataLength() as usize + block.bodyLength() as usize);
        if let Some(batch) = decoder.read_record_batch(block, &buffer.slice_with_length(at, len))? {
            chunks.push(Chunk::of(&batch));
        }
    }
    Ok(chunks)
}
