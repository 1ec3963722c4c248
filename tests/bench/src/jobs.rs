//! Whole jobs: the bundled plugins as WebAssembly and as native twins, over the same engine, data and seed.

use crate::Options;
use crate::measure::{Samples, turns};
use crate::report::Report;
use crate::worker::failed;
use anyhow::{Context, Result};
use slackline::config::{self, Overrides};
use slackline::engine::{self, RunInput};
use slackline::events::{Event, Sink, Summary};
use slackline::job::{Interrupt, Job};
use slackline::session;
use slackline_core::ports::Plugin;
use slackline_data::Data;
use slackline_data::generate::{Classes, Ratings, Topics};
use slackline_storage::State;
use slackline_twin::NativePlugin;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// How much longer a job may take as WebAssembly than natively.
const RATIO_GATE: f64 = 1.3;

/// Makes a workload in a scratch folder.
pub type Make = fn(&Options, &Path) -> Result<Workload>;

/// A job, and what counts as work done.
pub struct Workload {
    /// The plugin's name.
    pub name: &'static str,
    /// The job file.
    pub file: PathBuf,
    /// What one clock does, and its name.
    unit: &'static str,
    twin: Arc<dyn Plugin>,
    rounds: usize,
}

/// Matrix factorisation of 1.6 M generated ratings at rank 20.
pub fn mf(options: &Options, scratch: &Path) -> Result<Workload> {
    let ratings = if options.quick { 200_000 } else { 2_000_000 };
    let set = Ratings { users: 20_000, items: 5_000, ratings, rank: 20, ..Ratings::default() };
    let folder = scratch.join("ratings");
    set.write(&folder)?;
    let body = format!(
        "train = \"{0}/train.csv\"\ntest = \"{0}/test.csv\"\nbatch = 8192\n\
         [consistency]\nmodel = \"ssp\"\nstaleness = 1\n[clock]\nmax = 10\n\
         [params]\nrank = 20\nl2 = 0.05\n",
        folder.display()
    );
    let twin = Arc::new(NativePlugin::<slackline_mf::Factorisation>::load()?);
    workload("mf", "M ratings/s", twin, options.rounds(5), scratch, &body)
}

/// Logistic regression on 8,000 handwritten digits, or on a generated set of that size.
pub fn mlr(options: &Options, scratch: &Path) -> Result<Workload> {
    let real = options.sets.join("mnist10k");
    let folder = if real.is_dir() { real.canonicalize()? } else { scratch.join("classes") };
    let ending = if real.is_dir() { "libsvm.gz" } else { "libsvm" };
    let stem = if real.is_dir() { "mnist10k." } else { "" };
    if !real.is_dir() {
        Classes { rows: 10_000, columns: 784, classes: 10, row_values: 150, ..Classes::default() }.write(&folder)?;
    }
    let clocks = if options.quick { 3 } else { 10 };
    let body = format!(
        "train = \"{0}/{stem}train.{ending}\"\ntest = \"{0}/{stem}test.{ending}\"\nbatch = 100\n\
         [consistency]\nmodel = \"ssp\"\nstaleness = 1\n[clock]\nmax = {clocks}\n\
         [params]\nl2 = 1e-4\n",
        folder.display()
    );
    let twin = Arc::new(NativePlugin::<slackline_mlr::Mlr>::load()?);
    workload("mlr", "k samples/s", twin, options.rounds(5), scratch, &body)
}

/// Fifty topics of the Associated Press corpus, or of a generated one of about that size.
pub fn lda(options: &Options, scratch: &Path) -> Result<Workload> {
    let real = options.sets.join("ap");
    let folder = if real.is_dir() { real.canonicalize()? } else { scratch.join("topics") };
    if !real.is_dir() {
        let set = Topics { documents: 2_250, vocabulary: 10_473, topics: 50, length: 194.0, ..Topics::default() };
        set.write(&folder)?;
    }
    let clocks = if options.quick { 10 } else { 50 };
    let body = format!(
        "train = {{ path = \"{0}/docword.train.txt\", format = \"uci-bow\", vocab = \"{0}/vocab.txt\" }}\n\
         test = {{ path = \"{0}/docword.test.txt\", format = \"uci-bow\", vocab = \"{0}/vocab.txt\" }}\nbatch = 512\n\
         [consistency]\nmodel = \"ssp\"\nstaleness = 1\n[clock]\nmax = {clocks}\n\
         [params]\ntopics = 50\nalpha = 0.1\nbeta = 0.1\n",
        folder.display()
    );
    let twin = Arc::new(NativePlugin::<slackline_lda::Lda>::load()?);
    workload("lda", "M tokens/s", twin, options.rounds(5), scratch, &body)
}

fn workload(
    name: &'static str,
    unit: &'static str,
    twin: Arc<dyn Plugin>,
    rounds: usize,
    scratch: &Path,
    body: &str,
) -> Result<Workload> {
    let file = scratch.join(format!("{name}.toml"));
    std::fs::write(&file, format!("[job]\nname = \"{name}\"\nplugin = \"{name}\"\nseed = 1\n[data]\n{body}"))?;
    Ok(Workload { name, file, unit, twin, rounds })
}

/// A loaded job, ready to be run many times.
pub struct Ready {
    job: Job,
    component: Arc<dyn Plugin>,
    digest: String,
    data: Data,
    _state: State,
}

impl Ready {
    /// Loads the job of `file` for `workers` workers; its component is made for `interrupt`.
    pub fn load(file: &Path, workers: u32, interrupt: Interrupt, scratch: &Path) -> Result<Self> {
        let mut overrides = Overrides::default();
        overrides.flag("--workers", "job.workers", Some(workers));
        let mut job = config::read(file, &overrides)?;
        job.limits.interrupt = interrupt;
        let loaded = session::load_plugin(&job, None).map_err(failed)?;
        let manifest = loaded.component.manifest().clone();
        session::settle(&mut job, &loaded, &manifest).map_err(failed)?;
        let state = State::open(scratch, slackline_storage::Mode::Create)?;
        let data = session::load_data(&job, &manifest, &state)?;
        Ok(Self { job, component: loaded.component, digest: loaded.digest, data, _state: state })
    }

    /// The job, to be changed before a run.
    pub fn job_mut(&mut self) -> &mut Job {
        &mut self.job
    }

    /// Runs the component, or `twin` in its place. Answers the summary and the seconds from start to end, without
    /// loading.
    pub fn run(&self, twin: Option<&Arc<dyn Plugin>>, state: Option<&State>) -> Result<(Summary, f64)> {
        let plugin = twin.unwrap_or(&self.component).clone();
        let input = RunInput {
            job: &self.job,
            tables: engine::run::tables(&self.job, &*plugin, &self.data)?,
            plugin,
            digest: self.digest.clone(),
            data: &self.data,
            kernels: session::kernels().map_err(failed)?,
            state,
            resumed: None,
            interrupt: &AtomicBool::new(false),
            versions: Default::default(),
            live: None,
        };
        let begun = Instant::now();
        let summary = engine::run(input, &mut Silence)?;
        Ok((summary, begun.elapsed().as_secs_f64()))
    }
}

/// Nobody listens.
struct Silence;

impl Sink for Silence {
    fn event(&mut self, _event: &Event) {}
}

/// Runs the workload as WebAssembly in both ways and natively, with one and two workers.
pub fn compare(options: &Options, workload: &Workload, report: &mut Report) -> Result<()> {
    let part = workload.name;
    for workers in [1, 2] {
        let folder = tempfile::tempdir()?;
        let [process, epoch] = [(Interrupt::Process, "process"), (Interrupt::Epoch, "epoch")]
            .map(|(interrupt, name)| Ready::load(&workload.file, workers, interrupt, &folder.path().join(name)));
        let (process, epoch) = (process?, epoch?);
        let work = work(part, &process)?;
        let run = |ready: &Ready, twin: Option<&Arc<dyn Plugin>>| -> Result<[f64; 2]> {
            let (summary, wall) = ready.run(twin, None)?;
            let inside = summary.workers.iter().map(|w| w.compute + w.host).sum::<f64>();
            Ok([wall, inside])
        };
        let mut competitors: Vec<Box<dyn FnMut() -> Result<[f64; 2]> + '_>> = vec![
            Box::new(|| run(&process, None)),
            Box::new(|| run(&epoch, None)),
            Box::new(|| run(&process, Some(&workload.twin))),
        ];
        let measured = turns(workload.rounds, &mut competitors)?;
        let [process, epoch, native] = &measured[..] else { continue };
        let of = if workers == 1 { "1 worker" } else { "2 workers" };
        let [wall, inside] = [0, 1].map(|i| process[i].over(&native[i]));
        if options.quick {
            report.add(part, format!("whole job, process / native twin, {of}"), &wall, "×");
        } else {
            report.gate(part, format!("whole job, process / native twin, {of}"), &wall, "×", RATIO_GATE);
        }
        report.add(part, format!("in the plugin, process / native twin, {of}"), &inside, "×");
        report.add(part, format!("whole job, epoch / native twin, {of}"), &epoch[0].over(&native[0]), "×");
        let speed = |wall: &Samples| wall.map(|seconds| work / seconds);
        report.add(part, format!("whole job, {of}"), &speed(&process[0]), workload.unit);
        report.add(part, format!("whole job, native twin, {of}"), &speed(&native[0]), workload.unit);
    }
    Ok(())
}

/// What all clocks of the job do, in the workload's unit.
fn work(plugin: &str, ready: &Ready) -> Result<f64> {
    let clocks = f64::from(ready.job.max_clocks.context("a bench's job ends after some clocks")?);
    let rows = ready.data.rows("train") as f64;
    Ok(match plugin {
        "lda" => {
            let facts = ready.data.facts(1);
            let count = facts.datasets.get("train").and_then(|d| d.columns.get("count"));
            clocks * count.context("a corpus counts words")?.sum * 1e-6
        }
        "mf" => clocks * rows * 1e-6,
        _ => clocks * rows * 1e-3,
    })
}
