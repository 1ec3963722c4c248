//! What a run tells in its last line: its threads' accounts, put together.

use crate::engine::asks::Swapped;
use crate::engine::board::{Board, Ending};
use crate::engine::run::{RunInput, Told};
use crate::engine::shards::Shards;
use crate::engine::versions::VersionRecord;
use crate::engine::views;
use crate::engine::worker::WorkerEnd;
use crate::events::{
    Event, PluginSummary, Status, Summary, TableSummary, Traffic, VersionSummary, ViewResult, WorkerTime,
};
use slackline_core::manifest::View;
use slackline_core::{Layout, Model, TableSpec, WorkerId};
use slackline_server::TableSnapshot;

/// What a run that ended well leaves to tell.
pub(super) fn summarise(input: &RunInput<'_>, board: &Board, shards: &Shards, mut told: Told, start: u32) -> Summary {
    let job = input.job;
    let (clocks, ending) = board.ending();
    let history = board.history_below(clocks);
    let mut metrics = history.last().map(|p| p.metrics.clone()).unwrap_or_default();
    let evaluations: Vec<_> = told.ends.values_mut().filter_map(|e| e.evaluation.take()).collect();
    metrics.extend(board.combine(&evaluations));
    let mut stats = slackline_client::ReadStats::default();
    told.ends.values().for_each(|e| stats.add(&e.stats));
    let (status, reason) = match ending {
        Ending::Finished => (Status::Done, None),
        Ending::Stopped(why) => (Status::Stopped, Some(why)),
        Ending::Interrupted => (Status::Interrupted, Some("interrupted".to_owned())),
    };
    let last = board.current();
    let plugin = last.as_ref().map_or(&input.plugin, |v| &v.plugin);
    let digest = last.as_ref().map_or(&input.digest, |v| &v.record.digest);
    let snapshots = if plugin.manifest().views.is_empty() { Vec::new() } else { shards.snapshots() };
    let mut notices = Vec::new();
    if job.consistency.model == Model::Async {
        notices
            .push("async gives no bound on staleness: results may differ widely from run to run (unsafe)".to_owned());
    }
    Summary {
        status,
        reason,
        clocks,
        seconds: board.seconds(),
        metrics,
        staleness: stats.staleness.clone(),
        tables: input.tables.iter().map(|t| (t.name.clone(), table_summary(t))).collect(),
        plugin: PluginSummary { name: plugin.manifest().name.clone(), digest: digest.clone() },
        job: job.name.clone(),
        workers: told.ends.iter().map(|(w, e)| worker_time(*w, e)).collect(),
        traffic: Traffic {
            rows_read: stats.rows_read,
            rows_updated: stats.rows_incremented,
            rows_pulled: stats.rows_read,
            bytes_pulled: stats.bytes_read,
            rows_pushed: stats.rows_sealed,
            bytes_pushed: stats.bytes_sealed,
        },
        cuts: told.cuts,
        peak_memory_bytes: crate::memory::peak_bytes(),
        resumed_from: input.resumed.as_ref().map(|_| start),
        skipped_rows: input.data.skipped().values().map(|s| s.rows).sum(),
        notices,
        versions: board.versions().all().iter().map(version_summary).collect(),
        views: fill_views(input, &plugin.manifest().views, &snapshots),
        history,
        config: Vec::new(),
    }
}

fn table_summary(table: &TableSpec) -> TableSummary {
    TableSummary {
        dtype: table.dtype.to_string(),
        layout: if table.layout == Layout::Dense { "dense" } else { "sparse" }.to_owned(),
        rows: table.rows,
        width: table.width,
        bytes: table.bytes().unwrap_or(u64::MAX),
    }
}

fn worker_time(worker: WorkerId, end: &WorkerEnd) -> WorkerTime {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let (gate, host, apply) = (seconds(end.stats.gate_ns), seconds(end.stats.table_ns), seconds(end.stats.apply_ns));
    // The gate is mostly passed inside the instance's own reads.
    let compute = (end.inside.as_secs_f64() - gate - host).max(0.0);
    WorkerTime { worker: worker.0, compute, gate, host, apply }
}

fn fill_views(input: &RunInput<'_>, views: &[View], snapshots: &[Vec<TableSnapshot>]) -> Vec<ViewResult> {
    let known = views.iter().filter_map(|v| {
        let at = input.tables.iter().position(|t| t.name == v.table)?;
        let rows: Vec<_> = snapshots.iter().filter_map(|s| s.get(at)).collect();
        let labels = input.data.labels(&v.labels);
        let label = |row: u64| {
            let name = labels.as_ref().and_then(|l| l.get(row as usize)).map(|s| s.to_string());
            name.unwrap_or_else(|| row.to_string())
        };
        Some(views::fill(v, &input.tables[at], &rows, label))
    });
    known.collect()
}

/// The event of a swap.
pub(super) fn swap_event(swapped: &Swapped) -> Event {
    Event::Swap {
        clock: swapped.to.from,
        from: version_summary(&swapped.from),
        to: version_summary(&swapped.to),
        reason: swapped.to.reason.clone(),
    }
}

fn version_summary(version: &VersionRecord) -> VersionSummary {
    VersionSummary {
        version: version.number,
        plugin: version.plugin.clone(),
        digest: version.digest.clone(),
        params: version.params(),
        staleness: version.staleness,
        since: version.from,
        reason: version.reason.clone(),
    }
}
