//! Whose state a folder holds, and what a run goes on from.

use crate::engine::cuts;
use crate::engine::error::RunError;
use crate::engine::versions::History;
use crate::events::HistoryPoint;
use crate::job::{ClockLength, Job};
use serde_json::{Value, json};
use slackline_core::{Clock, Layout, RowDeltas, ShardId, ShardMap, TableId, TableSpec, Values, WorkerId};
use slackline_server::{Shard, ShardConfig, TableSnapshot};
use slackline_storage::{CutReader, State, WorkerRecord};

/// What a run goes on from.
pub struct Resumed {
    /// The clock of the cut.
    pub clock: Clock,
    /// Each worker's side.
    pub workers: Vec<WorkerRecord>,
    /// Metrics of the clocks before.
    pub history: Vec<HistoryPoint>,
    /// The versions that ran in them; `None` in a cut that does not say.
    pub versions: Option<History>,
    cut: CutReader,
}

/// What makes two jobs the same course of events. How long they run and how they are watched may differ.
pub fn identity(job: &Job, digest: &str, rows: &Value) -> slackline_storage::Job {
    let clock = match job.clock {
        ClockLength::Epoch => json!("epoch"),
        ClockLength::Batches(n) => json!(n),
    };
    let document = json!({
        "job": {"name": job.name, "workers": job.workers, "seed": job.seed},
        "plugin": digest,
        "params": job.params,
        "data": {
            "rows": rows,
            "batch": job.data.batch,
            "partition": job.data.partition.to_string(),
            "shuffle": job.data.shuffle,
            "split": job.data.split.map(|s| s.to_string()),
        },
        "consistency": {"model": job.consistency.model, "staleness": job.consistency.staleness},
        "clock": {"every": clock},
        "tables": job.tables.iter().map(|(n, t)| (n.clone(), json!(t.init))).collect::<serde_json::Map<_, _>>(),
    });
    let fingerprint = blake3::hash(document.to_string().as_bytes()).to_hex().to_string();
    slackline_storage::Job { fingerprint, document }
}

/// Claims a state folder for a job: an empty one, one of the same job to resume, or (with `fresh`) any.
pub fn claim(state: &State, ours: &slackline_storage::Job, resume: bool, fresh: bool) -> Result<(), RunError> {
    let dir = state.dir().display();
    // A folder without a cut has nothing to lose.
    let holds = !state.cuts()?.is_empty();
    if let Some(theirs) = state.job()?.filter(|_| holds && !fresh) {
        let name = theirs.document.pointer("/job/name").and_then(Value::as_str).unwrap_or("another job");
        if !resume {
            let at =
                state.newest_complete()?.map_or_else(String::new, |c| format!(", with a cut at clock {}", c.clock));
            return Err(RunError::OtherState(format!(
                "state folder {dir} already holds job {name:?}{at}: go on with --resume, start over with --fresh, or \
                 choose another folder with --state"
            )));
        }
        if theirs.fingerprint != ours.fingerprint {
            let differences: Vec<String> = slackline_storage::differences(&theirs.document, &ours.document)
                .iter()
                .map(|d| format!("  {d}"))
                .collect();
            let rebuilt = theirs.document.get("plugin") != ours.document.get("plugin");
            let advice = match theirs.document.get("plugin").and_then(Value::as_str).filter(|_| rebuilt) {
                Some(digest) => format!(
                    "its plugin is another build: go on with that one by job.plugin = \"{digest}\", start over with \
                     --fresh, or choose another folder with --state"
                ),
                None => "undo these changes to resume, start over with --fresh, or choose another folder with --state"
                    .to_owned(),
            };
            return Err(RunError::OtherState(format!(
                "state folder {dir} holds another job than this one; what it has against what was asked:\n{}\n{advice}",
                differences.join("\n")
            )));
        }
    }
    if !resume {
        state.drop_cuts_after(None)?;
    }
    Ok(state.put_job(ours)?)
}

/// The newest cut that is whole, and a line for each newer one that is not.
pub fn newest(state: &State, tables: &[TableSpec], workers: u32) -> Result<(Option<Resumed>, Vec<String>), RunError> {
    let found = state.newest_intact()?;
    let notices = found
        .skipped
        .iter()
        .map(|s| format!("the cut at clock {} is damaged and is passed over: {}", s.clock, s.reason))
        .collect();
    let Some(cut) = found.cut else { return Ok((None, notices)) };
    if cut.workers() != workers || !cut.tables().eq(tables) {
        return Err(RunError::OtherState(format!(
            "the cut at clock {} in {} has other tables or workers than this job; choose another folder with --state",
            cut.clock(),
            state.dir().display()
        )));
    }
    state.drop_cuts_after(Some(cut.clock()))?;
    let records = (0..workers).map(|w| cut.worker(WorkerId(w))).collect::<Result<Vec<_>, _>>()?;
    let (history, versions) = (cuts::history(cut.note()), cuts::versions(cut.note()));
    let resumed = Resumed { clock: cut.clock(), workers: records, history, versions, cut };
    Ok((Some(resumed), notices))
}

impl Resumed {
    /// A shard with the cut's rows.
    pub fn shard(&self, config: ShardConfig) -> Result<Shard, RunError> {
        let snapshots = (0..)
            .map(TableId)
            .zip(&config.tables)
            .map(|(id, spec)| rows(&self.cut, id, spec, config.id, config.shards))
            .collect::<Result<Vec<_>, _>>()?;
        let clock = self.clock;
        Shard::restore(config, snapshots)
            .ok_or_else(|| RunError::Internal(format!("the cut at clock {clock} does not fit its own tables")))
    }
}

/// A shard's rows of one table out of a cut, on however many shards they were when it was taken.
pub fn rows(
    cut: &CutReader,
    id: TableId,
    spec: &TableSpec,
    shard: ShardId,
    shards: u32,
) -> Result<TableSnapshot, RunError> {
    let range = ShardMap::new(spec, shards).range(shard);
    let rows = match spec.layout {
        Layout::Dense => {
            let mut values = Values::zeros(spec.dtype, 0);
            for chunk in cut.dense_rows(id, range.clone())? {
                values.extend(chunk?.values.as_ref());
            }
            RowDeltas::Dense(values)
        }
        Layout::Sparse => {
            let (mut offsets, mut columns, mut values) = (vec![0u32], Vec::new(), Values::zeros(spec.dtype, 0));
            for chunk in cut.sparse_rows(id, range.clone())? {
                let rows = chunk?.rows;
                let base = columns.len() as u32;
                offsets.extend(rows.offsets.iter().skip(1).map(|o| o + base));
                columns.extend_from_slice(&rows.columns);
                values.extend(rows.values.as_ref());
            }
            RowDeltas::Sparse { offsets, columns, values }
        }
    };
    Ok(TableSnapshot { range, rows })
}
