//! A rehearsal: a candidate's instances are restored from copies of the workers' state and thrown away, so that a version
//! that cannot be restored is refused before the first worker comes to it.
//!
//! They read the real tables as they are at the moment, and what they add is lost with them.

use crate::engine::run::RunInput;
use crate::engine::shards::Shards;
use crate::failure::{Exit, Failure};
use slackline_client::InPlace;
use slackline_core::ports::{Level, Plugin, RunInfo, Telemetry, WorkerHost};
use slackline_core::{Clock, Consistency, HostError, LocalState, Model, RandomStream, Values, WorkerId};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

/// A copy of what a worker's instance is remade from, as of the beginning of a clock.
#[derive(Clone)]
pub struct HandedOver {
    /// The clock.
    pub clock: Clock,
    /// The digest of the plugin that wrote `saved`.
    pub digest: String,
    /// What its instance saved.
    pub saved: Vec<u8>,
    /// Partition-local state.
    pub local: BTreeMap<String, Values>,
    /// Position of its random stream.
    pub random: u128,
    /// Rows of its partition of each dataset.
    pub rows: Arc<BTreeMap<String, u64>>,
}

/// Restores `probe` with `params` from each worker's copy.
pub fn rehearse(
    input: &RunInput<'_>,
    shards: &Arc<Shards>,
    probe: &dyn Plugin,
    params: &str,
    copies: &[HandedOver],
    cancelled: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let name = &probe.manifest().name;
    for (w, copy) in (0..).zip(copies) {
        // What runs is not held: reads pass without a gate, and show what is there.
        let free = Consistency { model: Model::Async, staleness: 0 };
        let tables = InPlace::new(WorkerId(w), copy.clock, free, &input.tables, shards.count(), shards.clone());
        let mut random = RandomStream::new(input.job.seed, u64::from(w) + 1);
        random.seek(copy.random);
        let local = LocalState::restore(copy.local.clone());
        let host = WorkerHost {
            tables: Arc::new(Mutex::new(tables)),
            kernels: input.kernels.clone(),
            telemetry: Arc::new(Mutex::new(Unheard)),
            local: local.clone(),
            random: Arc::new(Mutex::new(random)),
            run: RunInfo {
                worker: w,
                workers: input.job.workers,
                clock: Arc::new(AtomicU32::new(copy.clock)),
                cancelled: cancelled.clone(),
                partition_rows: copy.rows.clone(),
            },
        };
        // What was saved once must be saved again: at the next cut, and for a way back.
        let restored = probe.restore(host, &copy.digest, &copy.saved, params).and_then(|mut p| p.save());
        if let Err(e) = restored {
            let message = format!("plugin {name} cannot go on from the state of worker {w}: {}", e.message);
            return Err(Failure::new(Exit::Refused, message).hint("the version that runs goes on"));
        }
        let differences = local_differences(&copy.local, &local.snapshot());
        if !differences.is_empty() {
            let message = format!(
                "plugin {name} does not fit the running job's local state; what runs against what was asked:{differences}"
            );
            return Err(Failure::new(Exit::Refused, message).hint("the version that runs goes on"));
        }
    }
    Ok(())
}

/// Buffers that the candidate made, grew or shrank, a line each.
fn local_differences(before: &BTreeMap<String, Values>, after: &BTreeMap<String, Values>) -> String {
    let shape = |v: Option<&Values>| v.map_or_else(|| "absent".to_owned(), |v| format!("{} × {}", v.len(), v.dtype()));
    let mut out = String::new();
    for (name, now) in after {
        let (was, is) = (shape(before.get(name)), shape(Some(now)));
        if was != is {
            _ = write!(out, "\n  local state {name:?}: {was} against {is}");
        }
    }
    out
}

/// Nobody hears what is said in a rehearsal.
struct Unheard;

impl Telemetry for Unheard {
    fn log(&mut self, level: Level, line: &str) {
        tracing::debug!(?level, line, "a plugin that rehearses logs");
    }

    fn metric(&mut self, _: &str, _: f64, _: f64) -> Result<(), HostError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_state_of_another_shape_is_named_with_both_sides() {
        let before = BTreeMap::from([("a".to_owned(), Values::F32(vec![1.0])), ("b".to_owned(), Values::U64(vec![]))]);
        let mut after = before.clone();
        assert_eq!(local_differences(&before, &after), "");
        after.insert("a".into(), Values::F32(vec![9.0, 0.0]));
        after.insert("c".into(), Values::F64(vec![]));
        let want = "\n  local state \"a\": 1 × f32 against 2 × f32\n  local state \"c\": absent against 0 × f64";
        assert_eq!(local_differences(&before, &after), want);
    }
}
