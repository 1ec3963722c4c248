//! A plugin that misbehaves as its parameter `mode` says, so that one component serves every test of what a bad plugin
//! gets. Between misdeeds it is an honest counter: each step adds the batch's rows to the one row of the table `count`.
//!
//! It misbehaves from clock `from` on and, unless `every_worker`, on worker 0 alone: the clocks before give a cut that
//! must stay good, and a worker that waits for a failed one must not wait for ever.

use schemars::JsonSchema;
use serde::Deserialize;
use slackline_guest::telemetry::metric;
use slackline_guest::{
    Batch, Buffer, ColumnWant, Error, Facts, LocalState, Manifest, MetricSpec, Plan, Plugin, Result, Table, TableSpec,
    info, output, run,
};
use std::hint::black_box;

/// What to do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing.
    #[default]
    Honest,
    /// Panics with a message.
    Panic,
    /// Never returns from `step`.
    Loop,
    /// Takes memory until there is none.
    Memory,
    /// Takes host buffers until there are no handles.
    Handles,
    /// Takes one host buffer of absurd size.
    HugeBuffer,
    /// Calls itself without end.
    Recursion,
    /// Reports NaN.
    Nan,
    /// Reports a metric that the manifest does not have.
    UnknownMetric,
    /// Opens the table with a width that it does not have.
    WrongWidth,
    /// Opens the table as another type.
    WrongType,
    /// Opens a table that the plan does not have.
    NoTable,
    /// Reads a row that the table does not have.
    RowBeyond,
    /// Increments one row with the values of less than one.
    UnequalLists,
    /// Asks for more rows in one call than a call may move.
    HugeList,
    /// Writes lines without measure.
    LogFlood,
    /// Answers `step` with an error.
    Error,
    /// Refuses to be restored.
    Unrestorable,
    /// Changes the model and its state while it is restored and then, from clock `from` on, refuses.
    UnrestorableLater,
    /// Never returns from `restore`.
    LoopInRestore,
    /// Keeps more local state than before.
    MoreState,
    /// Sleeps as well as a guest can: steps take long and end.
    Slow,
    /// Plans a table larger than any machine.
    HugeTable,
    /// Traps while it is made.
    PanicInCreate,
    /// Panics in `evaluate`.
    PanicInEvaluate,
}

/// The `[params]` of a job.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What to do wrong.
    #[serde(default)]
    mode: Mode,
    /// The first clock in which to do it.
    #[serde(default)]
    from: u32,
    /// Whether workers other than 0 do it too.
    #[serde(default)]
    every_worker: bool,
    /// What counts as long in mode `slow`: rounds of arithmetic a step.
    #[serde(default = "rounds")]
    rounds: u64,
}

fn rounds() -> u64 {
    20_000_000
}

/// A worker's instance.
pub struct Misfit {
    params: Params,
    count: Table<f32>,
}

slackline_guest::export!(Misfit);

/// Values in the row of the table.
const WIDTH: u32 = 4;

impl Plugin for Misfit {
    type Params = Params;

    fn manifest() -> Manifest {
        slackline_guest::manifest!()
            .summary("misbehaves on demand")
            .column(ColumnWant::new::<f32>("x"))
            .metric(MetricSpec::new("train_mean"))
            .metric(MetricSpec::new("counted"))
            .predicts("twice")
    }

    fn plan(params: &Params, _facts: &Facts) -> Result<Plan> {
        let rows = if params.mode == Mode::HugeTable { 1 << 40 } else { 1 };
        Ok(Plan::new().table(TableSpec::dense::<f32>("count", rows, WIDTH)))
    }

    fn create(params: Params) -> Result<Self> {
        match params.mode {
            Mode::WrongWidth => drop(Table::<f32>::open_with_width("count", WIDTH + 1)?),
            Mode::WrongType => drop(Table::<i64>::open("count")?),
            Mode::NoTable => drop(Table::<f32>::open("cuont")?),
            Mode::PanicInCreate => panic!("create was asked to fail"),
            _ => {}
        }
        Ok(Self { params, count: Table::open_with_width("count", WIDTH)? })
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        if self.is_due() {
            self.misbehave()?;
        }
        let (x, rows) = (batch.column::<f32>("x")?, batch.rows());
        let seen = LocalState::open::<u64>("seen", 1)?;
        let before = seen.to_vec()?.first().copied().unwrap_or_default();
        seen.write(0, &[before + rows as u64])?;
        metric("train_mean", x.iter().map(|v| f64::from(*v)).sum::<f64>() / rows as f64, rows as f64);
        self.count.inc(&[0], &[rows as f32, x.iter().sum(), 1.0, 0.0])
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        if self.params.mode == Mode::PanicInEvaluate {
            panic!("evaluate was asked to fail");
        }
        let mut row = Vec::new();
        self.count.get(&[0], &mut row)?;
        let counted = row.first().copied().unwrap_or_default();
        metric("counted", f64::from(counted), batch.rows() as f64);
        Ok(())
    }

    fn predict(&mut self, batch: &Batch) -> Result<()> {
        let twice: Vec<f32> = batch.column::<f32>("x")?.iter().map(|x| 2.0 * x).collect();
        output::put("twice", &twice)
    }

    fn restore(_writer: &str, _state: &[u8], params: Params) -> Result<Self> {
        match params.mode {
            Mode::Unrestorable => {
                return Err(Error::invalid("what an older version saved means nothing to this one"));
            }
            Mode::LoopInRestore => loop {
                black_box(());
            },
            Mode::MoreState => drop(LocalState::open::<u64>("seen", 2)?),
            _ => {}
        }
        let made = Self::create(params)?;
        if made.params.mode == Mode::UnrestorableLater {
            // All of it must be as if it had never been.
            made.count.inc(&[0], &[1e6; WIDTH as usize])?;
            LocalState::open::<u64>("seen", 1)?.write(0, &[1_000_000])?;
            if made.is_due() {
                return Err(Error::invalid("this clock means nothing to this version"));
            }
        }
        Ok(made)
    }
}

impl Misfit {
    fn is_due(&self) -> bool {
        run::clock() >= self.params.from && (self.params.every_worker || run::worker() == 0)
    }

    fn misbehave(&self) -> Result<()> {
        match self.params.mode {
            Mode::Panic => panic!("step was asked to fail in clock {}", run::clock()),
            Mode::Loop => loop {
                black_box(());
            },
            Mode::Memory => {
                let mut held = Vec::new();
                loop {
                    held.push(vec![1u8; 1 << 20]);
                    black_box(&held);
                }
            }
            Mode::Handles => {
                let mut held = Vec::new();
                loop {
                    held.push(Buffer::<u8>::zeros(1)?);
                }
            }
            Mode::HugeBuffer => Buffer::<f64>::zeros(usize::MAX).map(drop),
            Mode::Recursion => {
                black_box(deeper(1));
                Ok(())
            }
            Mode::Nan => {
                metric("train_mean", f64::NAN, 1.0);
                Ok(())
            }
            Mode::UnknownMetric => {
                metric("train_maen", 1.0, 1.0);
                Ok(())
            }
            Mode::RowBeyond => self.count.get(&[0, 7], &mut Vec::new()),
            Mode::UnequalLists => self.count.inc(&[0], &[1.0; WIDTH as usize - 1]),
            Mode::HugeList => self.count.get(&vec![0; 40_000_000], &mut Vec::new()),
            Mode::LogFlood => {
                for line in 0..100_000 {
                    info!("line {line} of a flood");
                }
                Ok(())
            }
            Mode::Error => Err("step has nothing to say to such data".into()),
            Mode::Slow => {
                let mut x = 1u64;
                for i in 0..self.params.rounds {
                    x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Never ends, and needs its frame after the call, so that the call is no jump.
#[allow(unconditional_recursion)]
fn deeper(n: u64) -> u64 {
    let frame = black_box([n; 64]);
    deeper(n + 1).wrapping_add(frame[(n % 64) as usize])
}
