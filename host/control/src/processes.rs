//! The host processes that can run workers.

use crate::Millis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host process that has joined. Not durable: a process that lives joins again after the coordinator's restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its name, unique in the cluster.
    pub name: String,
    /// What it does: `coordinator`, `server`, `worker`.
    pub roles: Vec<String>,
    /// Workers that it may run at once.
    pub slots: u32,
    /// When it joined.
    pub joined: Millis,
    /// Its release.
    pub version: String,
}

pub(crate) type Processes = BTreeMap<String, Process>;
