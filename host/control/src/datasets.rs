//! A tenant's uploaded datasets: files by name.

use crate::Millis;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    /// What jobs call it, as `dataset:NAME`.
    pub name: String,
    /// The file's name at the client, whose ending tells the format.
    pub file_name: String,
    /// `blake3:…` of its bytes.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
    /// When it was pushed.
    pub at: Millis,
}

/// All datasets of a tenant.
pub(crate) type Datasets = BTreeMap<String, Dataset>;

/// Whether pushing `new` is a no-op; refused when it would replace other bytes unasked.
pub(crate) fn known(datasets: &Datasets, new: &Dataset, replace: bool) -> Result<bool, Refusal> {
    match datasets.get(&new.name) {
        Some(old) if old.digest == new.digest && old.file_name == new.file_name => Ok(true),
        Some(_) if !replace => Err(Refusal::conflict(format!("there is another dataset {:?}", new.name))
            .hint("--replace puts this one in its place; jobs that run keep what they have read")),
        _ => Ok(false),
    }
}

pub(crate) fn find<'a>(datasets: &'a Datasets, name: &str) -> Result<&'a Dataset, Refusal> {
    datasets.get(name).ok_or_else(|| {
        let known: Vec<_> = datasets.keys().map(String::as_str).collect();
        let refusal = Refusal::not_found(format!("there is no dataset {name:?}"));
        match known.is_empty() {
            true => refusal.hint("`slackline data push FILE --name NAME` puts one there"),
            false => refusal.hint(format!("there are: {}", known.join(", "))),
        }
    })
}
