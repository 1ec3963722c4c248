//! Datasets from files, as a plugin wants them: `train` first, because dictionaries come from it, then the others.

use crate::builder::Builder;
use crate::chunk::{ChunkStore, schema};
use crate::dataset::{Dataset, Meta};
use crate::dictionary::{Dictionaries, UNSEEN};
use crate::error::DataError;
use crate::intake::{Intake, Part, Settled, Skipped, Stats};
use crate::partition::{Partition, Share};
use crate::read::input::Meter;
use crate::read::{self, Bound};
use crate::spec::{DataSpec, Partitioning, Source};
use slackline_core::manifest::{ColumnFacts, ColumnWant, DatasetFacts, Encode, Facts};
use slackline_core::values::DType;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How far the reading has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which dataset.
    pub dataset: String,
    /// Rows accepted.
    pub rows: u64,
    /// Bytes of the file read.
    pub bytes: u64,
    /// Bytes of the file.
    pub total: u64,
}

/// A job's datasets, ready to be shared out.
#[derive(Debug)]
pub struct Data {
    datasets: BTreeMap<String, Arc<Dataset>>,
    dictionaries: Dictionaries,
    /// Words by the column that counts them.
    vocabularies: BTreeMap<String, Arc<[String]>>,
    skipped: BTreeMap<String, Skipped>,
    batch: usize,
    partition: Partitioning,
    shuffle: bool,
}

/// The dataset that dictionaries come from.
const TRAIN: &str = "train";
/// What a split holds back.
const TEST: &str = "test";

/// Reads all datasets for training. With `dictionaries` (of an earlier run of the job), values are coded as then.
pub fn load(
    spec: &DataSpec,
    wants: &[ColumnWant],
    spill: Option<&Path>,
    dictionaries: Option<Dictionaries>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Data, DataError> {
    Loading { spec, wants, spill, predict: false }.run(dictionaries, progress)
}

/// Reads datasets for `predict`: targets may be absent, and values are coded as in training.
pub fn load_for_predict(
    spec: &DataSpec,
    wants: &[ColumnWant],
    spill: Option<&Path>,
    dictionaries: Dictionaries,
    progress: &mut dyn FnMut(Progress),
) -> Result<Data, DataError> {
    Loading { spec, wants, spill, predict: true }.run(Some(dictionaries), progress)
}

struct Loading<'a> {
    spec: &'a DataSpec,
    wants: &'a [ColumnWant],
    spill: Option<&'a Path>,
    predict: bool,
}

impl Loading<'_> {
    fn run(&self, given: Option<Dictionaries>, progress: &mut dyn FnMut(Progress)) -> Result<Data, DataError> {
        self.check()?;
        let mut data = Data {
            datasets: BTreeMap::new(),
            dictionaries: given.unwrap_or_default(),
            vocabularies: BTreeMap::new(),
            skipped: BTreeMap::new(),
            batch: self.spec.batch,
            partition: self.spec.partition.clone(),
            shuffle: self.spec.shuffle,
        };
        let mut names: Vec<&String> = self.spec.datasets.keys().collect();
        names.sort_by_key(|n| *n != TRAIN);
        for name in names {
            self.dataset(name, &self.spec.datasets[name], &mut data, progress)?;
        }
        data.count_keys()?;
        Ok(data)
    }

    fn check(&self) -> Result<(), DataError> {
        let invalid = |s: &str| Err(DataError::Invalid(s.to_owned()));
        if self.spec.datasets.is_empty() {
            return invalid("no dataset is named");
        }
        if self.spec.batch == 0 {
            return invalid("batch is 0; it is the number of rows in a batch");
        }
        if self.spec.split.is_some() && self.spec.datasets.contains_key(TEST) {
            return invalid("both a test dataset and a split are given; drop one");
        }
        if self.spec.split.is_some() && !self.spec.datasets.contains_key(TRAIN) {
            return invalid("a split divides the dataset \"train\", which is not given");
        }
        Ok(())
    }

    fn dataset(
        &self,
        name: &str,
        source: &Source,
        data: &mut Data,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), DataError> {
        let meter = Meter::default();
        let (reader, ..) = read::open(source, &meter)?;
        let shared_by = match &self.spec.partition {
            Partitioning::Hash(column) => Some(column.as_str()),
            _ => None,
        };
        let bound = read::bind(source, reader.natives(), self.wants, shared_by, self.predict)?;
        let mut feeds: Vec<Vec<usize>> = bound.iter().map(|b| b.from.clone()).collect();
        let hashed = match shared_by {
            Some(column) => {
                let from = read::find(source, reader.natives(), column)?;
                if from.len() != 1 || reader.natives()[from[0]].list {
                    return Err(DataError::Invalid(format!(
                        "partition hash:{column} needs a column of single values; in {} it holds lists",
                        source.path.display()
                    )));
                }
                feeds.push(from);
                true
            }
            None => false,
        };
        let split = self.spec.split.filter(|_| name == TRAIN);
        let mut parts = vec![self.part(name, &bound, hashed)];
        parts.extend(split.map(|_| self.part(TEST, &bound, hashed)));
        if let Some(words) = reader.vocabulary() {
            self.take_vocabulary(&bound, &feeds, reader.natives(), words, source, data)?;
        }
        let skip = self.spec.skip_bad_rows;
        let mut intake = Intake::new(&source.path, parts, split, skip, self.spec.memory_bytes, meter, progress);
        reader.read(&feeds, &mut intake)?;
        let (parts, skipped) = intake.finish()?;
        for part in parts {
            if part.rows == 0 {
                return Err(DataError::Empty { dataset: part.dataset, path: source.path.clone() });
            }
            self.settle(part, &bound, hashed, data)?;
        }
        data.skipped.insert(name.to_owned(), skipped);
        Ok(())
    }

    fn take_vocabulary(
        &self,
        bound: &[Bound],
        feeds: &[Vec<usize>],
        natives: &[read::Native],
        words: Arc<[String]>,
        source: &Source,
        data: &mut Data,
    ) -> Result<(), DataError> {
        for (b, from) in bound.iter().zip(feeds) {
            if !from.iter().any(|n| natives[*n].name == "word") {
                continue;
            }
            let column = &self.wants[b.want].name;
            match data.vocabularies.get(column) {
                Some(other) if **other != *words => {
                    return Err(DataError::Invalid(format!(
                        "{}: its vocabulary differs from that of another dataset",
                        source.path.display()
                    )));
                }
                _ => data.vocabularies.insert(column.clone(), words.clone()),
            };
        }
        Ok(())
    }

    fn part(&self, name: &str, bound: &[Bound], hashed: bool) -> Part {
        let wants = || bound.iter().map(|b| &self.wants[b.want]);
        let mut columns: Vec<Builder> = wants()
            .map(|w| match w.encode {
                Encode::None => Builder::plain(w.dtype, w.list),
                Encode::Dictionary => Builder::coded(w.list),
            })
            .collect();
        let mut fields: Vec<(&str, DType, bool)> = wants()
            .map(|w| (w.name.as_str(), if w.encode == Encode::None { w.dtype } else { DType::U32 }, w.list))
            .collect();
        if hashed {
            columns.push(Builder::hashed());
            fields.push(("", DType::U32, false));
        }
        let memory = self.spec.memory_bytes;
        let store = ChunkStore::new(name, schema(fields.into_iter()), memory, self.spill);
        Part::new(name, columns, store, memory)
    }

    fn settle(&self, part: Part, bound: &[Bound], hashed: bool, data: &mut Data) -> Result<(), DataError> {
        let (name, rows) = (part.dataset.clone(), part.rows);
        let Settled { columns: builders, stats, chunks, spilled } = part.finish()?;
        let mut columns = Vec::new();
        for ((b, builder), stats) in bound.iter().zip(builders).zip(stats) {
            let want = &self.wants[b.want];
            let (recode, stats, keys) = match builder.into_coder() {
                None => (None, stats, None),
                Some(coder) => {
                    if !data.dictionaries.contains_key(&want.name) {
                        if name != TRAIN {
                            return Err(DataError::Invalid(format!(
                                "dataset {name:?}: column {:?} is coded by the values in \"train\", which is not given",
                                want.name
                            )));
                        }
                        data.dictionaries.insert(want.name.clone(), coder.dictionary());
                    }
                    let dictionary = &data.dictionaries[&want.name];
                    let (recode, counts) = coder.finish(dictionary);
                    let stats = stats_of_codes(&recode, &counts);
                    (Some(recode), stats, Some(dictionary.len() as u64))
                }
            };
            let dtype = if recode.is_some() { DType::U32 } else { want.dtype };
            columns.push(Meta { name: want.name.clone(), dtype, list: want.list, recode, stats, keys });
        }
        let starts = chunks
            .iter()
            .scan(0, |at, c| {
                *at += c.rows as u64;
                Some(*at - c.rows as u64)
            })
            .collect();
        let hash = hashed.then_some(columns.len());
        let dataset = Dataset { name: name.as_str().into(), rows, columns, hash, chunks, starts, spilled };
        data.datasets.insert(name, Arc::new(dataset));
        Ok(())
    }
}

/// Of the final codes; values that training lacks count, but have no code to be least or largest.
fn stats_of_codes(recode: &[u32], counts: &[u64]) -> Stats {
    let mut stats = Stats::default();
    let mut unseen = 0;
    for (code, n) in recode.iter().zip(counts) {
        match *code {
            UNSEEN => unseen += n,
            code => stats.add(*n, code.into(), code.into(), f64::from(code) * *n as f64),
        }
    }
    stats.values += unseen;
    stats
}

impl Data {
    /// Gives every list of indices its number of keys: that of the vocabulary, or one more than the largest index of
    /// any dataset.
    fn count_keys(&mut self) -> Result<(), DataError> {
        let mut keys: BTreeMap<String, u64> = BTreeMap::new();
        for column in self.datasets.values().flat_map(|d| &d.columns) {
            if column.list && column.keys.is_none() && matches!(column.dtype, DType::U32 | DType::U64) {
                let one_more = if column.stats.values == 0 { 0 } else { column.stats.max as u64 + 1 };
                let most = keys.entry(column.name.clone()).or_default();
                *most = one_more.max(*most);
            }
        }
        for (column, words) in &self.vocabularies {
            let most = keys.entry(column.clone()).or_default();
            if *most > words.len() as u64 {
                return Err(DataError::Invalid(format!(
                    "column {column:?} has the index {}, but its vocabulary only {} words",
                    *most - 1,
                    words.len()
                )));
            }
            *most = words.len() as u64;
        }
        for dataset in self.datasets.values_mut() {
            // Nobody else holds a dataset yet.
            let Some(dataset) = Arc::get_mut(dataset) else { continue };
            for column in dataset.columns.iter_mut().filter(|c| c.keys.is_none()) {
                column.keys = keys.get(&column.name).copied();
            }
        }
        Ok(())
    }

    /// What a plugin is told before it plans.
    pub fn facts(&self, workers: u32) -> Facts {
        let column = |c: &Meta| ColumnFacts {
            dtype: c.dtype,
            list: c.list,
            values: c.stats.values,
            min: c.stats.min,
            max: c.stats.max,
            sum: c.stats.sum,
            keys: c.keys,
        };
        let dataset = |d: &Arc<Dataset>| DatasetFacts {
            rows: d.rows,
            columns: d.columns.iter().map(|c| (c.name.clone(), column(c))).collect(),
        };
        Facts { workers, datasets: self.datasets.iter().map(|(n, d)| (n.clone(), dataset(d))).collect() }
    }

    /// Names of the datasets.
    pub fn datasets(&self) -> impl Iterator<Item = &str> {
        self.datasets.keys().map(String::as_str)
    }

    /// Rows of a dataset; 0 when there is none of this name.
    pub fn rows(&self, dataset: &str) -> u64 {
        self.datasets.get(dataset).map_or(0, |d| d.rows)
    }

    /// Whether a dataset outgrew its memory and lies on disk.
    pub fn spilled(&self, dataset: &str) -> bool {
        self.datasets.get(dataset).is_some_and(|d| d.spilled)
    }

    /// How values were coded: part of a job's state.
    pub fn dictionaries(&self) -> &Dictionaries {
        &self.dictionaries
    }

    /// What the keys of a column stand for: its vocabulary's words or its dictionary's values.
    pub fn labels(&self, column: &str) -> Option<Vec<String>> {
        match self.vocabularies.get(column) {
            Some(words) => Some(words.to_vec()),
            None => self.dictionaries.get(column).map(|d| d.labels()),
        }
    }

    /// Malformed rows that were left out, by dataset.
    pub fn skipped(&self) -> &BTreeMap<String, Skipped> {
        &self.skipped
    }

    /// The share of `worker` among `workers`. In `train` no worker may be without a row: it would hold up a clock that
    /// counts batches for ever.
    pub fn partition(&self, dataset: &str, worker: u32, workers: u32) -> Result<Partition, DataError> {
        let Some(found) = self.datasets.get(dataset) else {
            let available = self.datasets.keys().cloned().collect();
            return Err(DataError::NoDataset { dataset: dataset.into(), available });
        };
        if worker >= workers {
            return Err(DataError::Invalid(format!("worker {worker} of {workers}: workers count from 0")));
        }
        let (rows, w, n) = (found.rows, u64::from(worker), u64::from(workers));
        let share = match &self.partition {
            Partitioning::Rows => {
                // Below 2³² each, so the products fit.
                let (start, end) = (rows * w / n, rows * (w + 1) / n);
                Share::Stride { start, step: 1, len: end - start }
            }
            Partitioning::RoundRobin => Share::Stride { start: w, step: n, len: (rows + n - 1 - w) / n },
            Partitioning::Hash(_) => {
                let hashes = found.hashes().into_iter().flatten();
                let mine = hashes.zip(0u32..).filter(|(h, _)| h % workers == worker).map(|(_, row)| row);
                Share::Rows(mine.collect())
            }
        };
        if share.len() == 0 && dataset == TRAIN {
            return Err(DataError::IdleWorker { dataset: dataset.into(), workers, rows, worker });
        }
        Ok(Partition { dataset: found.clone(), share, worker, batch: self.batch, shuffle: self.shuffle })
    }
}
