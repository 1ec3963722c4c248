//! What the tests of this crate share: small files, wants, and a look at what comes out.
#![allow(dead_code)] // Every test file uses some of it.

use slackline_core::manifest::{ColumnWant, Encode};
use slackline_core::values::{DType, Values};
use slackline_core::{Batch, Column};
use slackline_data::{Data, DataError, DataSpec, Source, load};
use std::path::{Path, PathBuf};

pub fn want(name: &str, dtype: DType) -> ColumnWant {
    ColumnWant { name: name.into(), dtype, list: false, encode: Encode::None, optional: false, target: false }
}

pub fn want_list(name: &str, dtype: DType) -> ColumnWant {
    ColumnWant { list: true, ..want(name, dtype) }
}

pub fn want_coded(name: &str) -> ColumnWant {
    ColumnWant { encode: Encode::Dictionary, ..want(name, DType::U32) }
}

pub fn libsvm_wants() -> Vec<ColumnWant> {
    vec![want("label", DType::F32), want_list("index", DType::U32), want_list("value", DType::F32)]
}

pub fn bow_wants() -> Vec<ColumnWant> {
    vec![want_list("word", DType::U32), want_list("count", DType::U32)]
}

pub fn spec(path: &Path) -> DataSpec {
    let source = Source::new(path);
    DataSpec { datasets: [("train".to_owned(), source)].into(), shuffle: false, ..DataSpec::default() }
}

pub fn read(spec: &DataSpec, wants: &[ColumnWant]) -> Result<Data, DataError> {
    load(spec, wants, None, None, &mut |_| {})
}

pub fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// All rows of a dataset in one batch.
pub fn whole(data: &Data, dataset: &str) -> Batch {
    let mut ids = 0;
    let mut columns = std::collections::BTreeMap::<String, Vec<Column>>::new();
    for batch in data.partition(dataset, 0, 1).unwrap().in_order() {
        ids += batch.rows();
        for (name, c) in batch.columns {
            columns.entry(name).or_default().push(c);
        }
    }
    let joined = columns.into_iter().map(|(n, c)| (n, join(&c))).collect();
    Batch::new(dataset, (0..ids as u64).collect(), joined)
}

fn join(columns: &[Column]) -> Column {
    let mut bytes = Vec::new();
    let mut offsets = vec![0];
    for c in columns {
        bytes.extend_from_slice(c.values.bytes());
        let base = *offsets.last().unwrap();
        if let Some(Values::U32(o)) = c.offsets.as_deref() {
            offsets.extend(o[1..].iter().map(|x| x + base));
        }
    }
    let values = Values::from_bytes(columns[0].values.dtype(), &bytes).unwrap();
    if columns[0].offsets.is_some() { Column::list(values, offsets) } else { Column::flat(values) }
}

pub fn values(batch: &Batch, column: &str) -> Values {
    (*batch.columns[column].values).clone()
}

pub fn offsets(batch: &Batch, column: &str) -> Vec<u32> {
    match batch.columns[column].offsets.as_deref() {
        Some(Values::U32(o)) => o.clone(),
        other => panic!("{column}: {other:?}"),
    }
}

/// A file of the shared sets, or `None` with a word about it where the folder is absent.
pub fn shared(path: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("SLACKLINE_SHARED").map_or(default, PathBuf::from);
    let path = folder.join("data/sets").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}
