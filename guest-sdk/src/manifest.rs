//! The JSON documents of the contract, as builders: what a plugin says of itself ([`Manifest`]), the tables that it
//! needs for a job ([`Plan`]), and what the host tells it of the data ([`Facts`]). `wit/README.md` describes the
//! documents field by field.

use crate::element::{DType, Element, TableElement};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plugin is, whatever the job. Begin with [`manifest!`](crate::manifest!), which knows the crate's name and version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// Its version, for people.
    pub version: String,
    /// One line on what it does.
    #[serde(default)]
    pub summary: String,
    /// JSON schema of the parameters; the SDK fills it from the plugin's `Params`.
    pub params: serde_json::Value,
    /// Columns it wants of every dataset.
    pub columns: Vec<ColumnWant>,
    /// Metrics it reports.
    pub metrics: Vec<MetricSpec>,
    /// Names of the columns that `predict` puts; empty: it does not predict.
    #[serde(default)]
    pub predicts: Vec<String>,
    /// Whether `prepare` wants to see the whole partition once before the first step.
    #[serde(default)]
    pub prepare: bool,
    /// The partitioning it needs, such as `hash:user`.
    #[serde(default)]
    pub partition: Option<String>,
    /// What of the model is worth showing to people.
    #[serde(default)]
    pub views: Vec<View>,
}

impl Manifest {
    /// Of the plugin `name`; prefer [`manifest!`](crate::manifest!).
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: String::new(),
            params: serde_json::Value::Null,
            columns: Vec::new(),
            metrics: Vec::new(),
            predicts: Vec::new(),
            prepare: false,
            partition: None,
            views: Vec::new(),
        }
    }

    /// One line on what it does.
    pub fn summary(mut self, line: &str) -> Self {
        self.summary = line.to_owned();
        self
    }

    /// Wants a column of every dataset.
    pub fn column(mut self, want: ColumnWant) -> Self {
        self.columns.push(want);
        self
    }

    /// Reports a metric.
    pub fn metric(mut self, metric: MetricSpec) -> Self {
        self.metrics.push(metric);
        self
    }

    /// `predict` puts this column.
    pub fn predicts(mut self, column: &str) -> Self {
        self.predicts.push(column.to_owned());
        self
    }

    /// `prepare` wants to see the whole partition once before the first step.
    pub fn prepare(mut self) -> Self {
        self.prepare = true;
        self
    }

    /// Needs this partitioning: `rows`, `round-robin` or `hash:COLUMN`.
    pub fn partition(mut self, rule: &str) -> Self {
        self.partition = Some(rule.to_owned());
        self
    }

    /// Shows, for each column of `table`, the `top` rows with the largest values, named by the column `labels`.
    pub fn view(mut self, title: &str, table: &str, labels: &str, top: u32) -> Self {
        self.views.push(View { title: title.to_owned(), table: table.to_owned(), labels: labels.to_owned(), top });
        self
    }
}

/// A column that a plugin wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnWant {
    /// Its name in batches.
    pub name: String,
    /// Type of its values.
    pub dtype: DType,
    /// A list a row instead of a value a row.
    #[serde(default)]
    pub list: bool,
    /// How the host codes it.
    #[serde(default)]
    pub encode: Encode,
    /// Whether a dataset may lack it.
    #[serde(default)]
    pub optional: bool,
    /// Whether input to `predict` may lack it (a label, say).
    #[serde(default)]
    pub target: bool,
}

impl ColumnWant {
    /// A value of type `T` a row.
    pub fn new<T: Element>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            dtype: T::DTYPE,
            list: false,
            encode: Encode::None,
            optional: false,
            target: false,
        }
    }

    /// A list of `T` a row.
    pub fn list<T: Element>(name: &str) -> Self {
        Self { list: true, ..Self::new::<T>(name) }
    }

    /// A column that the host codes: each value becomes its place (u32) among the distinct values of all training rows
    /// in ascending order, and one that training lacks becomes `u32::MAX`.
    pub fn dictionary(name: &str) -> Self {
        Self { encode: Encode::Dictionary, ..Self::new::<u32>(name) }
    }

    /// A dataset may lack it.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Input to `predict` may lack it.
    pub fn target(mut self) -> Self {
        self.target = true;
        self
    }
}

/// How the host codes a column before a plugin sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encode {
    /// As it is.
    #[default]
    None,
    /// As its place among the distinct training values (u32).
    Dictionary,
}

/// A metric: Σ value·weight / Σ weight over batches and workers, then `then`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Its name.
    pub name: String,
    /// What is done to the weighted mean.
    #[serde(default)]
    pub then: Then,
    /// Which way is better.
    #[serde(default)]
    pub goal: Goal,
    /// Whether NaN or infinity in it ends the job.
    #[serde(default = "yes")]
    pub finite: bool,
}

fn yes() -> bool {
    true
}

impl MetricSpec {
    /// A weighted mean, the lower the better, that must stay finite.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), then: Then::Nothing, goal: Goal::Lower, finite: true }
    }

    /// Shows its square root: a root mean square from mean squares.
    pub fn sqrt(mut self) -> Self {
        self.then = Then::Sqrt;
        self
    }

    /// Shows exp(−mean): a perplexity from a mean log-likelihood.
    pub fn exp_neg(mut self) -> Self {
        self.then = Then::ExpNeg;
        self
    }

    /// The higher the better.
    pub fn higher(mut self) -> Self {
        self.goal = Goal::Higher;
        self
    }

    /// NaN and infinity are no error.
    pub fn may_be_infinite(mut self) -> Self {
        self.finite = false;
        self
    }
}

/// What is done to a weighted mean before people see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// Nothing.
    #[default]
    Nothing,
    /// Square root.
    Sqrt,
    /// exp(−mean).
    ExpNeg,
}

impl Then {
    /// Applies it.
    pub fn apply(self, mean: f64) -> f64 {
        match self {
            Then::Nothing => mean,
            Then::Sqrt => mean.sqrt(),
            Then::ExpNeg => (-mean).exp(),
        }
    }
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Smaller.
    #[default]
    Lower,
    /// Larger.
    Higher,
}

/// The rows with the largest values of each column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Heading, such as `topics`.
    pub title: String,
    /// The table; every one of its columns becomes a line.
    pub table: String,
    /// The column whose dictionary or vocabulary names the rows.
    pub labels: String,
    /// How many rows a line shows.
    pub top: u32,
}

/// What a plugin needs for one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its tables.
    pub tables: Vec<TableSpec>,
}

impl Plan {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table.
    pub fn table(mut self, table: TableSpec) -> Self {
        self.tables.push(table);
        self
    }
}

/// How a row holds its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Every row holds `width` values.
    Dense,
    /// A row holds a value for some of `width` possible columns; the others are zero.
    Sparse,
}

/// How rows begin. Values depend on (seed, table, row, column) alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Init {
    /// All zeros.
    #[default]
    Zero,
    /// All the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Independent and uniform on [low, high).
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Independent normal deviates.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
}

/// A table of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its name, unique within the job.
    pub name: String,
    /// Type of its values: f32, f64, i32 or i64.
    pub dtype: DType,
    /// Dense or sparse rows.
    #[serde(default = "dense")]
    pub layout: Layout,
    /// Number of rows; row ids are 0..rows.
    pub rows: u64,
    /// Values in a row (dense), or columns that a row may have (sparse).
    pub width: u32,
    /// How rows begin; sparse rows always begin empty.
    #[serde(default)]
    pub init: Init,
}

fn dense() -> Layout {
    Layout::Dense
}

impl TableSpec {
    /// Dense rows of `width` values, all zero at first.
    pub fn dense<T: TableElement>(name: &str, rows: u64, width: u32) -> Self {
        Self { name: name.to_owned(), dtype: T::DTYPE, layout: Layout::Dense, rows, width, init: Init::Zero }
    }

    /// Sparse rows with up to `width` columns, empty at first.
    pub fn sparse<T: TableElement>(name: &str, rows: u64, width: u32) -> Self {
        Self { layout: Layout::Sparse, ..Self::dense::<T>(name, rows, width) }
    }

    /// How dense rows begin.
    pub fn init(mut self, init: Init) -> Self {
        self.init = init;
        self
    }
}

/// What the host tells of the data before a job starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Logical workers of the job.
    pub workers: u32,
    /// Datasets by name (`train`, `test`, …).
    pub datasets: BTreeMap<String, DatasetFacts>,
}

impl Facts {
    /// The facts of `dataset`, or an error that names it.
    pub fn dataset(&self, dataset: &str) -> Result<&DatasetFacts> {
        self.datasets.get(dataset).ok_or_else(|| Error::NotFound(format!("dataset {dataset:?}")))
    }

    /// The facts of a column of the dataset `train`, or an error that names it.
    pub fn train(&self, column: &str) -> Result<&ColumnFacts> {
        self.dataset("train")?.column(column)
    }

    /// The largest value of a column in any dataset that has it; `None` when none has.
    pub fn max(&self, column: &str) -> Option<f64> {
        self.datasets.values().filter_map(|d| d.columns.get(column)).map(|c| c.max).reduce(f64::max)
    }
}

/// What the host tells of one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetFacts {
    /// Rows.
    pub rows: u64,
    /// Columns by the names that batches use.
    pub columns: BTreeMap<String, ColumnFacts>,
}

impl DatasetFacts {
    /// The facts of `column`, or an error that names it.
    pub fn column(&self, column: &str) -> Result<&ColumnFacts> {
        self.columns.get(column).ok_or_else(|| Error::NotFound(format!("column {column:?}")))
    }
}

/// What the host tells of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnFacts {
    /// Type of its values, as batches show them.
    pub dtype: DType,
    /// Whether a row holds a list.
    #[serde(default)]
    pub list: bool,
    /// Values in all rows together.
    pub values: u64,
    /// The least value; 0 when there is none.
    pub min: f64,
    /// The largest value; 0 when there is none.
    pub max: f64,
    /// Their sum.
    pub sum: f64,
    /// For a coded column or one with a vocabulary: the number of keys. For a list of indices without one: the largest
    /// index of any dataset plus one.
    #[serde(default)]
    pub keys: Option<u64>,
}

impl ColumnFacts {
    /// Mean of the values; 0 when there is none.
    pub fn mean(&self) -> f64 {
        if self.values == 0 { 0.0 } else { self.sum / self.values as f64 }
    }

    /// The number of keys: `keys`, or else the largest value plus one.
    pub fn key_count(&self) -> u64 {
        self.keys.unwrap_or(if self.values == 0 { 0 } else { self.max as u64 + 1 })
    }
}

/// A [`Manifest`] that begins with the name and version of the crate that this is written in.
#[macro_export]
macro_rules! manifest {
    () => {
        $crate::Manifest::new(::core::env!("CARGO_PKG_NAME"), ::core::env!("CARGO_PKG_VERSION"))
    };
}
