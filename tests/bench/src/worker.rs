//! One worker over real shards, without a job around it: what the border's benches step by hand.

use anyhow::{Context, Result};
use slackline::engine::cuts::CutSchedule;
use slackline::engine::shards::Shards;
use slackline::engine::telemetry::WorkerTelemetry;
use slackline::job::{Consistency, Interrupt, Limits, Model};
use slackline::session;
use slackline_client::InPlace;
use slackline_core::ports::{Plugin, Program, RunInfo, Shared, WorkerHost};
use slackline_core::{Batch, Column, Facts, LocalState, RandomStream, ShardId, TableSpec, Values, WorkerId};
use slackline_guest_rows::Rows;
use slackline_server::{Shard, ShardConfig};
use slackline_twin::NativePlugin;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The parameters of the bench's guest.
pub struct Crossing {
    /// `nothing`, `ask`, `get` or `inc`.
    pub work: &'static str,
    /// How often a step does it.
    pub calls: usize,
    /// Rows a call.
    pub rows: usize,
}

/// Rows of the table, and their width: 64 MB of f32, far more than caches hold.
pub const TABLE_ROWS: u64 = 1 << 20;
/// Values in a row.
pub const WIDTH: usize = 16;

impl Crossing {
    /// As a job's `[params]`.
    pub fn params(&self) -> String {
        let Self { work, calls, rows } = self;
        serde_json::json!({"work": work, "calls": calls, "rows": rows, "table_rows": TABLE_ROWS, "width": WIDTH})
            .to_string()
    }
}

/// A worker and its instance.
pub struct Worker {
    /// Its side of the tables.
    pub tables: Shared<InPlace>,
    program: Box<dyn Program>,
    batch: Batch,
}

impl Worker {
    /// An instance of `plugin`, alone on a shard of its own.
    pub fn new(plugin: &dyn Plugin, crossing: &Crossing) -> Result<Self> {
        let params = crossing.params();
        let plan = plugin.plan(&params, &Facts::default())?;
        let consistency = Consistency { model: Model::Ssp, staleness: 1 };
        let tables = Arc::new(Mutex::new(InPlace::new(
            WorkerId(0),
            0,
            consistency,
            &plan.tables,
            1,
            Arc::new(shards(&plan.tables, consistency)),
        )));
        // Nobody listens: the guest says nothing.
        let (bell, _) = crossbeam_channel::bounded(1);
        let host = WorkerHost {
            tables: tables.clone(),
            kernels: session::kernels().map_err(failed)?,
            telemetry: Arc::new(Mutex::new(WorkerTelemetry::new(0, plugin.manifest().metrics.clone().into(), bell))),
            local: LocalState::default(),
            random: Arc::new(Mutex::new(RandomStream::new(1, 1))),
            run: RunInfo {
                worker: 0,
                workers: 1,
                clock: Arc::new(AtomicU32::new(0)),
                cancelled: Arc::new(AtomicBool::new(false)),
                partition_rows: Arc::new(BTreeMap::new()),
            },
        };
        let program = plugin.create(host, &params)?;
        let x = Column::flat(Values::F32(vec![0.0]));
        Ok(Self { tables, program, batch: Batch::new("train", vec![0], [("x".to_owned(), x)].into()) })
    }

    /// A step of the instance.
    pub fn step(&mut self) -> Result<()> {
        Ok(self.program.step(&self.batch)?)
    }

    /// A call into the instance that carries no batch.
    pub fn end_clock(&mut self) -> Result<()> {
        Ok(self.program.end_clock(0)?)
    }

    /// Ends the worker's clock: seals, sends and applies what its steps added.
    pub fn tick(&mut self) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).tick();
    }
}

fn shards(tables: &[TableSpec], consistency: Consistency) -> Shards {
    let config =
        ShardConfig { id: ShardId(0), shards: 1, tables: tables.to_vec(), workers: 1, consistency, seed: 1, start: 0 };
    Shards::new(vec![Shard::new(config)], Duration::from_secs(60), CutSchedule::every(None), None)
}

/// The bench's guest, as a component with one means of interruption.
pub fn component(interrupt: Interrupt) -> Result<Arc<dyn Plugin>> {
    let found = session::bundled().into_iter().find(|(name, _)| name == "rows");
    let (_, path) = found.context(
        "the bench's guest is not beside this program: `make bench` builds it, or by hand\n  \
         slackline plugin build tests/guests/rows --release --out target/release/plugins\n  \
         mv target/release/plugins/slackline_guest_rows.wasm target/release/plugins/rows.wasm",
    )?;
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let limits = Limits { interrupt, ..Limits::default() };
    Ok(session::load_bytes(bytes, "rows", &limits, "this is a bench".to_owned()).map_err(failed)?.component)
}

/// The same guest natively.
pub fn twin() -> Result<Arc<dyn Plugin>> {
    Ok(Arc::new(NativePlugin::<Rows>::load()?))
}

/// A failure of the binary's library as an error.
pub fn failed(failure: slackline::failure::Failure) -> anyhow::Error {
    let hints = failure.hints.iter().map(|hint| format!("\n  hint: {hint}"));
    anyhow::anyhow!("{}{}", failure.message, hints.collect::<String>())
}
