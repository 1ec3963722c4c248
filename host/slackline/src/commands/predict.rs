//! `slackline predict`: a trained model's say on new rows.

use crate::commands::cluster::{self, ClusterArgs};
use crate::commands::run::JobArgs;
use crate::commands::table::open_cut;
use crate::engine::RunError;
use crate::engine::cuts::{self, CutSchedule};
use crate::engine::resume;
use crate::engine::run::News;
use crate::engine::shards::Shards;
use crate::engine::telemetry::WorkerTelemetry;
use crate::engine::versions::{History, VersionRecord};
use crate::export::{Cells, Export};
use crate::failure::{Exit, Failure};
use crate::job::Job;
use crate::session::{self, Loaded};
use crate::sinks::words::plural;
use crate::train::documents;
use clap::Args;
use crossbeam_channel::bounded;
use serde_json::{Value, json};
use slackline_client::InPlace;
use slackline_core::ports::{Plugin, RunInfo, WorkerHost};
use slackline_core::{DType, LocalState, RandomStream, ShardId, TableSpec, Values, WorkerId};
use slackline_data::{Data, DataSpec, Dictionaries, Source};
use slackline_server::{Shard, ShardConfig};
use slackline_storage::{CutReader, Mode, State};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

/// Examples for the help.
pub const EXAMPLES: &str = "\
Examples:
  slackline predict job.toml --state runs/a --input new.libsvm --output predictions.csv
  slackline predict job.toml --state runs/a --input new.csv --output predictions.parquet
  slackline predict --job digits --input new.libsvm --output predictions.csv     on a cluster

The input is read like the job's training data; a column that is only a target may be missing.
Rows come out in the order of the input.";

/// The dataset that predictions are for, as plugins see its name.
const DATASET: &str = "predict";

/// Flags of `slackline predict`.
#[derive(Args, Clone, Debug)]
pub struct PredictArgs {
    /// The job file that the model was trained by
    #[arg(value_name = "JOB.toml", required_unless_present = "job", conflicts_with = "job")]
    pub file: Option<PathBuf>,
    /// Set a key of the job file by its path, such as data.skip_bad_rows; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "job")]
    pub set: Vec<String>,
    /// The state folder of the run
    #[arg(long, value_name = "DIR", required_unless_present = "job", conflicts_with = "job")]
    pub state: Option<PathBuf>,
    /// A job of a cluster, by its id or name, instead of a job file and a state folder
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// New rows, in the format of the training data
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Where predictions go; the ending says the format: .csv, .parquet, .arrow or .npy
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Predicts.
pub fn predict(args: &PredictArgs) -> Result<Exit, Failure> {
    if let Some(job) = &args.job {
        return cluster::predict::predict(&args.cluster, job, &args.input, &args.output, args.json);
    }
    let (Some(file), Some(dir)) = (&args.file, &args.state) else {
        return Err(Failure::new(Exit::Usage, "a job file and --state, or --job, say which model"));
    };
    let typed = JobArgs { file: file.clone(), set: args.set.clone(), ..JobArgs::default() };
    let mut job = typed.job()?;
    let state = State::open(dir, Mode::ReadOnly)?;
    let cut = open_cut(&state, None)?;
    let Trained { loaded, workers, params } = trained(&state, &job, &cut)?;
    // The model was made with these; a job file that was edited since does not change it.
    job.params = params;
    let manifest = loaded.component.manifest().clone();
    if manifest.predicts.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("plugin {} does not predict", manifest.name)));
    }
    session::settle(&mut job, &loaded, &manifest)?;
    if cut.workers() != workers {
        return Err(Failure::new(Exit::State, format!("{} holds a cut of other workers", dir.display())));
    }
    let data = input(args, &job, &manifest.columns, &state)?;
    let columns = collect(&job, &loaded, &cut, &data)?;
    let rows = data.rows(DATASET);
    let fields: Vec<(String, DType, usize)> =
        columns.iter().map(|c| (c.name.clone(), c.values.dtype(), c.width)).collect();
    let mut export = Export::predictions(&args.output, &fields)?;
    let cells: Vec<Cells> = columns.into_iter().map(|c| Cells::Dense(c.values)).collect();
    export.write(rows as usize, &cells)?;
    export.finish()?;
    let (to, names) = (args.output.display(), manifest.predicts.join(", "));
    if args.json {
        println!("{}", json!({"rows": rows, "columns": manifest.predicts, "clock": cut.clock(), "to": to.to_string()}));
    } else {
        println!("{to}: {names} for {}, by the model as of clock {}", plural(rows, "row"), cut.clock());
    }
    Ok(Exit::Done)
}

/// What trained the model.
struct Trained {
    loaded: Loaded,
    workers: u32,
    params: serde_json::Map<String, Value>,
}

/// The very plugin that trained the model, on how many workers and with which parameters.
fn trained(state: &State, job: &Job, cut: &CutReader) -> Result<Trained, Failure> {
    let dir = state.dir().display();
    let trained = state.job()?.ok_or_else(|| Failure::new(Exit::State, format!("{dir} holds no job")))?.document;
    let name = trained.pointer("/job/name").and_then(Value::as_str).unwrap_or_default();
    if name != job.name {
        return Err(Failure::new(Exit::State, format!("{dir} holds job {name:?}, not {:?}", job.name)));
    }
    let workers = trained.pointer("/job/workers").and_then(Value::as_u64).and_then(|w| u32::try_from(w).ok());
    let digest = trained.get("plugin").and_then(Value::as_str);
    let (Some(workers), Some(digest)) = (workers, digest) else {
        return Err(Failure::new(Exit::State, format!("the job's document in {dir} is damaged")));
    };
    // The job's document says how it began; a cut, which version it was made by.
    let versions = cuts::versions(cut.note());
    let version = versions.as_ref().and_then(History::newest);
    let digest = version.map_or(digest, |v| &v.digest);
    let began_with = || trained.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    let params = version.map_or_else(began_with, VersionRecord::params);
    let loaded = session::load_bytes(state.blob(digest)?, digest, &job.limits, String::new())?;
    Ok(Trained { loaded, workers, params })
}

fn input(
    args: &PredictArgs,
    job: &Job,
    wants: &[slackline_core::manifest::ColumnWant],
    state: &State,
) -> Result<Data, Failure> {
    let text = state.document(documents::DICTIONARIES)?.unwrap_or_else(|| b"{}".to_vec());
    let dictionaries: Dictionaries = serde_json::from_slice(&text).map_err(|e| {
        Failure::new(Exit::State, format!("the dictionaries in {} are damaged: {e}", state.dir().display()))
    })?;
    let like = job.data.datasets.get("train").cloned().unwrap_or_default();
    // A format that the job spells out holds for the input too, unless the file's ending says another.
    let format = slackline_data::Format::of_path(&args.input).ok().or(like.format);
    let source = Source { path: args.input.clone(), format, ..like };
    let spec = DataSpec { datasets: [(DATASET.to_owned(), source)].into(), split: None, ..job.data.clone() };
    Ok(slackline_data::load_for_predict(&spec, wants, None, dictionaries, &mut |_| {})?)
}

struct PredictedColumn {
    name: String,
    values: Values,
    width: usize,
}

/// Asks every worker for its rows, and puts what they say into the order of the input.
fn collect(job: &Job, loaded: &Loaded, cut: &CutReader, data: &Data) -> Result<Vec<PredictedColumn>, Failure> {
    let tables: Vec<TableSpec> = cut.tables().cloned().collect();
    let shards = shards(job, cut, &tables)?;
    let rows = data.rows(DATASET) as usize;
    let mut columns: Vec<PredictedColumn> = Vec::new();
    let kernels = session::kernels()?;
    for w in 0..cut.workers() {
        let partition = data.partition(DATASET, w, cut.workers())?;
        if partition.rows() == 0 {
            continue;
        }
        let record = cut.worker(WorkerId(w))?;
        let (bell, lines) = bounded(1024);
        let metrics = loaded.component.manifest().metrics.clone().into();
        let mut random = RandomStream::new(job.seed, u64::from(w) + 1);
        random.seek(record.random);
        let host = WorkerHost {
            tables: Arc::new(Mutex::new(InPlace::new(
                WorkerId(w),
                cut.clock(),
                job.consistency,
                &tables,
                1,
                shards.clone(),
            ))),
            kernels: kernels.clone(),
            telemetry: Arc::new(Mutex::new(WorkerTelemetry::new(w, metrics, bell))),
            local: LocalState::restore(record.local.clone()),
            random: Arc::new(Mutex::new(random)),
            run: RunInfo {
                worker: w,
                workers: cut.workers(),
                clock: Arc::new(AtomicU32::new(cut.clock())),
                cancelled: Arc::new(AtomicBool::new(false)),
                partition_rows: Arc::new([(DATASET.to_owned(), partition.rows())].into()),
            },
        };
        let params = Value::Object(job.params.clone()).to_string();
        let mut program = loaded.component.restore(host, &record.digest, &record.saved, &params)?;
        let mut places = partition.places();
        for batch in partition.in_order() {
            let said = program.predict(&batch)?;
            let at: Vec<usize> = places.by_ref().take(batch.rows()).map(|p| p as usize).collect();
            for (name, buffer) in said {
                put(&mut columns, name, &buffer.to_values(), &at, rows)?;
            }
            for line in lines.try_iter() {
                if let News::Log(line) = line {
                    eprintln!("worker {w}: {}", line.line);
                }
            }
        }
    }
    Ok(columns)
}

/// Puts a batch's values into the places of its rows.
fn put(
    columns: &mut Vec<PredictedColumn>,
    name: String,
    values: &Values,
    at: &[usize],
    rows: usize,
) -> Result<(), Failure> {
    let width = values.len() / at.len().max(1);
    let place = match columns.iter().position(|c| c.name == name) {
        Some(place) => place,
        None => {
            columns.push(PredictedColumn { name, values: Values::zeros(values.dtype(), rows * width), width });
            columns.len() - 1
        }
    };
    let column = &mut columns[place];
    let fits = column.width == width && width * at.len() == values.len();
    let copied = fits
        && at.iter().enumerate().all(|(i, &row)| {
            let to = column.values.as_mut().window(row * width, width);
            let from = values.as_ref().window(i * width, width);
            to.zip(from).is_some_and(|(to, from)| to.copy_from(from))
        });
    if copied {
        return Ok(());
    }
    let name = &column.name;
    Err(Failure::new(
        Exit::Failed,
        format!("column {name:?} of the predictions changes its type or width between batches"),
    ))
}

fn shards(job: &Job, cut: &CutReader, tables: &[TableSpec]) -> Result<Arc<Shards>, RunError> {
    let snapshots = (0..)
        .map(slackline_core::TableId)
        .zip(tables)
        .map(|(id, spec)| resume::rows(cut, id, spec, ShardId(0), 1))
        .collect::<Result<Vec<_>, _>>()?;
    let config = ShardConfig {
        id: ShardId(0),
        shards: 1,
        tables: tables.to_vec(),
        workers: cut.workers(),
        consistency: job.consistency,
        seed: job.seed,
        start: cut.clock(),
    };
    let shard = Shard::restore(config, snapshots)
        .ok_or_else(|| RunError::Internal("the cut does not fit its own tables".to_owned()))?;
    Ok(Arc::new(Shards::new(vec![shard], job.limits.host_call_deadline, CutSchedule::every(None), None)))
}
