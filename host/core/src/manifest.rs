//! What a plugin says of itself, and what the host tells it of the data, as JSON documents.
//!
//! `describe()` gives a [`Manifest`]: what does not depend on a job. `plan(params, facts)` gives a [`Plan`]: the tables
//! of one job. The documents are part of the contract; `wit/README.md` describes them field by field.

use crate::table::TableSpec;
use crate::values::DType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plugin is, whatever the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The plugin's name.
    pub name: String,
    /// Its version, for people.
    pub version: String,
    /// One line on what it does.
    #[serde(default)]
    pub summary: String,
    /// JSON schema of the parameters.
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
    /// The partitioning it needs, such as `hash:user`; a job file that says otherwise is refused.
    #[serde(default)]
    pub partition: Option<String>,
    /// What of the model is worth showing to people.
    #[serde(default)]
    pub views: Vec<View>,
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

/// How the host codes a column before a plugin sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encode {
    /// As it is.
    #[default]
    None,
    /// As its place among the distinct values of all training rows in ascending order (u32); a value that training lacks
    /// is `u32::MAX`.
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
    /// Whether NaN or infinity in it ends the job (exit 5). On by default.
    #[serde(default = "yes")]
    pub finite: bool,
}

fn yes() -> bool {
    true
}

/// What is done to a weighted mean before people see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// Nothing.
    #[default]
    Nothing,
    /// Square root: a root mean square from a mean square.
    Sqrt,
    /// exp(−mean): a perplexity from a mean log-likelihood.
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

/// A part of the model that is worth showing: the rows with the largest values of each column of a table.
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

/// What the host tells of the data before a job starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Logical workers of the job.
    pub workers: u32,
    /// Datasets by name (`train`, `test`, …).
    pub datasets: BTreeMap<String, DatasetFacts>,
}

/// What the host tells of one dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetFacts {
    /// Rows.
    pub rows: u64,
    /// Columns by the names that batches use.
    pub columns: BTreeMap<String, ColumnFacts>,
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
