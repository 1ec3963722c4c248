//! A whole run, from a loaded job to its summary.

use crate::engine::asks::{self, Live, Swapped};
use crate::engine::board::{Board, Ending};
use crate::engine::cuts::{CutDone, CutKeeper, CutMessage, CutSchedule};
use crate::engine::error::RunError;
use crate::engine::resume::Resumed;
use crate::engine::shards::Shards;
use crate::engine::summary::{summarise, swap_event};
use crate::engine::swap::Swapper;
use crate::engine::telemetry::{LogLine, WorkerTelemetry};
use crate::engine::versions::{History, Version, VersionRecord};
use crate::engine::worker::{Worker, WorkerEnd};
use crate::events::{CutSummary, Event, HistoryPoint, PluginSummary, Sink, Started, Summary};
use crate::job::{Job, StopWatch};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use slackline_client::InPlace;
use slackline_core::ports::{Kernels, Level, Plugin, RunInfo, WorkerHost};
use slackline_core::{LocalState, PluginErrorKind, RandomStream, ShardId, TableSpec, WorkerId};
use slackline_data::{Data, Partition};
use slackline_server::{Shard, ShardConfig};
use slackline_storage::State;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a run needs.
pub struct RunInput<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its plugin, loaded.
    pub plugin: Arc<dyn Plugin>,
    /// The plugin's digest, `blake3:…`.
    pub digest: String,
    /// Its data, loaded.
    pub data: &'a Data,
    /// Its tables (see [`tables`]).
    pub tables: Vec<TableSpec>,
    /// The native core.
    pub kernels: Arc<dyn Kernels>,
    /// Where cuts go.
    pub state: Option<&'a State>,
    /// What it goes on from.
    pub resumed: Option<Resumed>,
    /// Set when a person wants it to end.
    pub interrupt: &'a AtomicBool,
    /// The versions of the job so far, the one that runs included; empty for a job that begins.
    pub versions: History,
    /// Who may ask it things while it runs.
    pub live: Option<Live<'a>>,
}

/// What threads tell the caller's thread.
pub enum News {
    /// The board has complete clocks.
    Clock,
    /// A plugin wrote a line.
    Log(LogLine),
    /// A cut is complete.
    Cut(CutDone),
    /// The version was swapped.
    Swap(Swapped),
    /// A worker is done.
    End(WorkerId, Box<WorkerEnd>),
    /// The cut keeper is done.
    CutsEnd,
}

/// The tables of a job: what its plugin plans, and what the job changes of it.
pub fn tables(job: &Job, plugin: &dyn Plugin, data: &Data) -> Result<Vec<TableSpec>, RunError> {
    let params = serde_json::Value::Object(job.params.clone()).to_string();
    let plan = plugin.plan(&params, &data.facts(job.workers)).map_err(|e| match e.kind {
        // The plugin's own verdict on what the job asks for: nothing of it has run yet.
        PluginErrorKind::Failed => RunError::Job(e.message),
        _ => RunError::Refused(e),
    })?;
    let mut tables = plan.tables;
    for (name, change) in &job.tables {
        let Some(table) = tables.iter_mut().find(|t| t.name == *name) else {
            let known: Vec<_> = tables.iter().map(|t| t.name.as_str()).collect();
            return Err(RunError::Job(format!(
                "[tables.{name}]: the plugin has no such table; it has {}",
                known.join(", ")
            )));
        };
        if let Some(init) = change.init {
            table.init = init;
        }
    }
    let bytes = tables.iter().try_fold(0u64, |sum, t| sum.checked_add(t.bytes()?));
    let memory = crate::memory::available_bytes();
    match bytes {
        Some(bytes) if memory.is_none_or(|m| bytes <= m) => Ok(tables),
        _ => Err(RunError::Job(format!(
            "the plugin's tables need {} bytes, more than this machine has free{}: {}",
            bytes.map_or_else(|| "over 2^64".to_owned(), |b| b.to_string()),
            memory.map_or_else(String::new, |m| format!(" ({m})")),
            tables
                .iter()
                .map(|t| format!("{} {} × {} {}", t.name, t.rows, t.width, t.dtype))
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// Runs the job to its end. The last event is the caller's to send: the summary that this returns.
pub fn run(input: RunInput<'_>, sink: &mut dyn Sink) -> Result<Summary, RunError> {
    let job = input.job;
    let start = input.resumed.as_ref().map_or(0, |r| r.clock);
    let specs: Arc<[_]> = input.plugin.manifest().metrics.clone().into();
    let watch = match &job.stop {
        None => None,
        Some(rule) => match specs.iter().find(|s| s.name == rule.metric) {
            Some(spec) => Some(StopWatch::new(rule.clone(), spec.goal)),
            None => {
                let known: Vec<_> = specs.iter().map(|s| s.name.as_str()).collect();
                let metric = &rule.metric;
                return Err(RunError::Job(format!(
                    "stop.metric = {metric:?}: the plugin has no such metric; it has {}",
                    known.join(", ")
                )));
            }
        },
    };
    let (bell, news) = bounded(1024);
    let (cut_parts, cut_inbox) = bounded(4);
    let (schedule, cut_parts) = match input.state {
        Some(_) => (CutSchedule::every(job.cuts.every), Some(cut_parts)),
        None => (CutSchedule::every(None), None),
    };
    let history = input.resumed.as_ref().map(|r| r.history.clone()).unwrap_or_default();
    let ordered = job.consistency.ordered();
    let board = Board::new(job.workers, start, job.max_clocks, ordered, specs, watch, history, bell.clone());
    let current = first_version(&input, start);
    let versions =
        if input.versions.all().is_empty() { History::new(current.record.clone()) } else { input.versions.clone() };
    if let Some(state) = input.state {
        versions.keep(state)?;
    }
    board.begin_with(versions, current);
    let shards =
        Arc::new(Shards::new(make_shards(&input, start)?, job.limits.host_call_deadline, schedule, cut_parts.clone()));
    let workers = Workers { input: &input, board: &board, shards: &shards, schedule, cuts: cut_parts.clone(), bell };
    sink.event(&Event::Started(started(&input, start)));
    let mut told = Told::default();
    let swapper = input.live.as_ref().map(|live| Swapper {
        input: &input,
        board: &board,
        shards: &shards,
        loader: live.loader,
        columns: live.columns,
        bell: workers.bell.clone(),
    });
    let (running, done) = bounded(0);
    std::thread::scope(|scope| {
        if let (Some(live), Some(swapper)) = (&input.live, &swapper) {
            let asks = &live.asks;
            scope.spawn(move || asks::answer(scope, asks, &done, swapper));
        }
        if let Some(state) = input.state {
            let keeper = CutKeeper::new(state, &board, &input.tables, job.workers, shards.count());
            let (bell, board, shards) = (workers.bell.clone(), &board, &shards);
            scope.spawn(move || {
                if let Err(e) = keeper.run(&cut_inbox, |done| drop(bell.send(News::Cut(done)))) {
                    board.fail(e);
                    shards.close();
                }
                drop(bell.send(News::CutsEnd));
            });
        }
        for w in 0..job.workers {
            let workers = workers.clone();
            scope.spawn(move || workers.work(WorkerId(w)));
        }
        drop((workers, cut_parts));
        // With the last worker goes the last part of a cut.
        told.listen(&input, &news, &board, sink, || {
            shards.release();
            board.finish();
        });
        // Whoever asks from here on is told that the run has ended.
        drop(running);
    });
    drop(swapper);
    if let Some(failure) = board.take_failure() {
        return Err(failure);
    }
    Ok(summarise(&input, &board, &shards, told, start))
}

/// The version that a run begins with.
fn first_version(input: &RunInput<'_>, start: u32) -> Arc<Version> {
    let record = input.versions.newest().cloned().unwrap_or_else(|| VersionRecord {
        number: 1,
        plugin: input.plugin.manifest().name.clone(),
        digest: input.digest.clone(),
        params: serde_json::Value::Object(input.job.params.clone()).to_string(),
        staleness: input.job.consistency.staleness,
        from: start,
        reason: "start".into(),
    });
    Arc::new(Version { record, plugin: input.plugin.clone(), consistency: input.job.consistency })
}

fn make_shards(input: &RunInput<'_>, start: u32) -> Result<Vec<Shard>, RunError> {
    let job = input.job;
    (0..job.shards.max(1))
        .map(|s| {
            let config = ShardConfig {
                id: ShardId(s),
                shards: job.shards.max(1),
                tables: input.tables.clone(),
                workers: job.workers,
                consistency: job.consistency,
                seed: job.seed,
                start,
            };
            match &input.resumed {
                Some(resumed) => resumed.shard(config),
                None => Ok(Shard::new(config)),
            }
        })
        .collect()
}

fn started(input: &RunInput<'_>, start: u32) -> Started {
    let job = input.job;
    Started {
        job: job.name.clone(),
        plugin: PluginSummary { name: input.plugin.manifest().name.clone(), digest: input.digest.clone() },
        workers: job.workers,
        consistency: job.consistency.model.to_string(),
        staleness_bound: job.consistency.staleness,
        max_clocks: job.max_clocks,
        resumed_from: input.resumed.as_ref().map(|_| start),
        rows: input.data.facts(job.workers).datasets.into_iter().map(|(name, f)| (name, f.rows)).collect(),
    }
}

/// What worker threads share.
#[derive(Clone)]
struct Workers<'a> {
    input: &'a RunInput<'a>,
    board: &'a Board,
    shards: &'a Arc<Shards>,
    schedule: CutSchedule,
    cuts: Option<Sender<CutMessage>>,
    bell: Sender<News>,
}

impl Workers<'_> {
    /// A worker's thread. Whatever goes wrong ends the run with the first error, and nobody waits for this worker.
    fn work(self, id: WorkerId) {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.run(id)));
        let end = match done {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => self.give_up(error),
            Err(_) => self.give_up(RunError::Internal(format!("worker {id} panicked"))),
        };
        drop(self.bell.send(News::End(id, Box::new(end))));
    }

    fn give_up(&self, error: RunError) -> WorkerEnd {
        self.board.fail(error);
        self.shards.close();
        WorkerEnd::default()
    }

    fn run(&self, id: WorkerId) -> Result<WorkerEnd, RunError> {
        let (input, job) = (self.input, self.input.job);
        let record = input.resumed.as_ref().map(|r| (r.clock, &r.workers[id.index()]));
        let start = record.map_or(0, |(clock, _)| clock);
        let tables = Arc::new(Mutex::new(InPlace::new(
            id,
            start,
            job.consistency,
            &input.tables,
            self.shards.count(),
            self.shards.clone(),
        )));
        let Some(version) = self.board.current() else {
            return Err(RunError::Internal(format!("worker {id} has no version to run")));
        };
        let manifest = version.plugin.manifest();
        let telemetry =
            Arc::new(Mutex::new(WorkerTelemetry::new(id.0, manifest.metrics.clone().into(), self.bell.clone())));
        // Stream 0 is the job's own.
        let mut random = RandomStream::new(job.seed, u64::from(id.0) + 1);
        let partitions = partitions(input.data, id, job.workers)?;
        let train = partitions.get("train");
        let mut cursor = match train {
            Some(train) => train.cursor(job.seed),
            None => return Err(RunError::Job("the job has no dataset named train".into())),
        };
        let mut local = LocalState::default();
        if let Some((_, record)) = record {
            random.seek(record.random);
            cursor.seek(record.cursor.epoch, record.cursor.position);
            local = LocalState::restore(record.local.clone());
        }
        let random = Arc::new(Mutex::new(random));
        let (clock, cancelled) = (Arc::new(AtomicU32::new(start)), self.board.cancelled());
        let host = WorkerHost {
            tables: tables.clone(),
            kernels: input.kernels.clone(),
            telemetry: telemetry.clone(),
            local: local.clone(),
            random: random.clone(),
            run: RunInfo {
                worker: id.0,
                workers: job.workers,
                clock: clock.clone(),
                cancelled: cancelled.clone(),
                partition_rows: Arc::new(partitions.iter().map(|(n, p)| (n.clone(), p.rows())).collect()),
            },
        };
        let (plugin, params) = (&version.plugin, &version.record.params);
        let program = match record {
            Some((_, record)) => plugin.restore(host.clone(), &record.digest, &record.saved, params),
            None => plugin.create(host.clone(), params),
        };
        let worker = Worker {
            id,
            prepare: manifest.prepare && record.is_none(),
            program: program.map_err(RunError::of_plugin)?,
            version,
            host,
            seed: job.seed,
            tables,
            telemetry,
            random,
            local,
            clock,
            cursor,
            partitions,
            length: job.clock,
            evaluate_every: job.evaluate_every,
            schedule: self.schedule,
            cuts: self.cuts.clone(),
            shards: self.shards.clone(),
            board: self.board,
            cancelled,
            saved: None,
            next: None,
        };
        worker.run(|| self.board.ending().1 != Ending::Interrupted)
    }
}

/// A worker's share of every dataset.
pub fn partitions(data: &Data, worker: WorkerId, workers: u32) -> Result<BTreeMap<String, Partition>, RunError> {
    let names = data.facts(workers).datasets.into_keys();
    names.map(|name| Ok((name.clone(), data.partition(&name, worker.0, workers)?))).collect()
}

/// What the listener has heard.
#[derive(Default)]
pub(super) struct Told {
    pub(super) ends: BTreeMap<WorkerId, WorkerEnd>,
    pub(super) cuts: CutSummary,
}

impl Told {
    /// Passes news on until all threads are done. `workers_done` is called once, when the last worker is.
    fn listen(
        &mut self,
        input: &RunInput<'_>,
        news: &Receiver<News>,
        board: &Board,
        sink: &mut dyn Sink,
        workers_done: impl FnOnce(),
    ) {
        let mut workers_done = Some(workers_done);
        let (mut asked, mut cutting) = (false, input.state.is_some());
        while cutting || self.ends.len() < input.job.workers as usize {
            if !asked && input.interrupt.load(Ordering::Relaxed) {
                asked = true;
                board.interrupt();
            }
            let heard = news.recv_timeout(Duration::from_millis(50));
            // First the clocks: a cut is told after the clock that it follows.
            for HistoryPoint { clock, seconds, metrics } in board.news() {
                sink.event(&Event::Clock { clock, metrics, seconds });
            }
            match heard {
                Ok(News::Clock) | Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Log(line)) => sink.event(&log_event(line)),
                Ok(News::Cut(cut)) => self.note_cut(&cut, sink),
                Ok(News::Swap(swapped)) => sink.event(&swap_event(&swapped)),
                Ok(News::End(worker, end)) => {
                    self.ends.insert(worker, *end);
                }
                Ok(News::CutsEnd) => cutting = false,
                // The board holds a sender for as long as it lives.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.ends.len() == input.job.workers as usize
                && let Some(done) = workers_done.take()
            {
                done();
            }
        }
    }

    fn note_cut(&mut self, cut: &CutDone, sink: &mut dyn Sink) {
        self.cuts.count += 1;
        self.cuts.newest = Some(cut.info.clock);
        self.cuts.bytes += cut.info.bytes;
        self.cuts.seconds += cut.seconds;
        self.cuts.clocks.push(cut.info.clock);
        sink.event(&Event::Cut { clock: cut.info.clock, bytes: cut.info.bytes, seconds: cut.seconds });
    }
}

fn log_event(line: LogLine) -> Event {
    let level = match line.level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    Event::Log { worker: line.worker, level: level.into(), line: line.line }
}
