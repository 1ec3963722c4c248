//! What one schedule does: the job, how each worker reads, how the network behaves, and every worker's script.
//!
//! A plan follows from its seed alone. Scripts do not depend on what is read, so that the whole history of updates is
//! known before the run, and a checker can judge a read without asking the engine.

use crate::dice::Dice;
use slackline_core::{Clock, Consistency, DType, Init, Layout, Model, TableSpec};

/// Exact sums: worker w adds positive amounts to column w only.
pub const DENSE: usize = 0;
/// The same in sparse rows.
pub const SPARSE: usize = 1;
/// Floats with random beginnings, whose bits tell the order of additions.
pub const FLOAT: usize = 2;

/// One thing that a worker does.
#[derive(Clone, Debug)]
pub enum Op {
    /// Reads rows.
    Read {
        /// Place of the table.
        table: usize,
        /// Which rows; may repeat.
        rows: Vec<u64>,
    },
    /// Adds to a table of exact sums: an amount a row, in the worker's own column.
    Add {
        /// `DENSE` or `SPARSE`.
        table: usize,
        /// Which rows; may repeat.
        rows: Vec<u64>,
        /// One a row.
        amounts: Vec<i64>,
    },
    /// Adds to the table of floats: rows × width deltas.
    AddFloats {
        /// Which rows; may repeat.
        rows: Vec<u64>,
        /// Rows × width.
        deltas: Vec<f32>,
    },
    /// Sends what there is ahead of the tick.
    Flush,
}

/// How a worker reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The shards' rows, where they are.
    InPlace,
    /// Through a cache of so many rows.
    Cached(usize),
}

/// What the network does to messages.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// A message takes 1..=delay.
    pub delay: u64,
    /// Percentage of messages that arrive twice.
    pub repeats: u64,
    /// Percentage of steps after which a worker sends a part again that it has sent before.
    pub resends: u64,
    /// A worker thinks 0..=think between two steps.
    pub think: u64,
}

/// One schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it comes from.
    pub seed: u64,
    /// The job's consistency.
    pub consistency: Consistency,
    /// `DENSE`, `SPARSE`, `FLOAT`.
    pub tables: Vec<TableSpec>,
    /// Number of shards.
    pub shards: u32,
    /// Where every worker begins.
    pub start: Clock,
    /// How each worker reads.
    pub readings: Vec<Reading>,
    /// The network.
    pub weather: Weather,
    /// A cut every so many clocks.
    pub cut_every: Option<Clock>,
    /// By worker, by clock.
    pub scripts: Vec<Vec<Vec<Op>>>,
}

impl Plan {
    /// The plan of `seed` for a job under `model`.
    pub fn new(model: Model, seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let workers = dice.within(1, 4) as usize;
        let rows = dice.within(3, 9);
        let table =
            |name: &str, dtype, layout, width, init| TableSpec { name: name.into(), dtype, layout, rows, width, init };
        let tables = vec![
            table("dense", DType::I64, Layout::Dense, workers as u32, Init::Zero),
            table("sparse", DType::I64, Layout::Sparse, workers as u32, Init::Zero),
            table("float", DType::F32, Layout::Dense, dice.pick(&[1, 3, 8, 16]), Init::Normal { mean: 0.5, sd: 2.0 }),
        ];
        let staleness = if model == Model::Bsp { 0 } else { dice.within(0, 4) as u32 };
        let clocks = dice.within(2, 7) as usize;
        let script = |w: usize, c: usize| script(&mut Dice::new(seed, 1000 + (w * 64 + c) as u64), &tables);
        let scripts = (0..workers).map(|w| (0..clocks).map(|c| script(w, c)).collect()).collect();
        let cut_every = dice.chance(50).then(|| dice.within(1, 3) as Clock);
        let plan = Self {
            seed,
            consistency: Consistency { model, staleness },
            tables,
            shards: 1,
            start: 0,
            readings: Vec::new(),
            weather: Weather { delay: 1, repeats: 0, resends: 0, think: 0 },
            cut_every,
            scripts,
        };
        plan.elsewhere(2)
    }

    /// The same job under other circumstances: shards, ways of reading and weather are drawn anew.
    pub fn elsewhere(mut self, stream: u64) -> Self {
        let mut dice = Dice::new(self.seed, stream);
        self.shards = dice.within(1, 3) as u32;
        let ways = [Reading::InPlace, Reading::Cached(1), Reading::Cached(4), Reading::Cached(100)];
        self.readings = self.scripts.iter().map(|_| dice.pick(&ways)).collect();
        self.weather = Weather {
            delay: dice.pick(&[1, 5, 40]),
            repeats: dice.pick(&[0, 10, 40]),
            resends: dice.pick(&[0, 0, 15]),
            think: dice.pick(&[0, 3, 30]),
        };
        self
    }

    /// The same job from the clock `start` on.
    pub fn from_clock(mut self, start: Clock) -> Self {
        self.start = start;
        self
    }

    /// Number of workers.
    pub fn workers(&self) -> u32 {
        self.scripts.len() as u32
    }

    /// The clock at which the job ends.
    pub fn end(&self) -> Clock {
        self.scripts.first().map_or(0, |clocks| clocks.len() as Clock)
    }

    /// Clocks of the cuts after `clock`, in order.
    pub fn cuts_after(&self, clock: Clock) -> impl Iterator<Item = Clock> + use<> {
        let (every, end) = (self.cut_every, self.end());
        let next = move |at: &Clock| every.map(|n| (at / n + 1) * n).filter(|c| *c <= end);
        std::iter::successors(next(&clock), next)
    }
}

fn script(dice: &mut Dice, tables: &[TableSpec]) -> Vec<Op> {
    let rows = |dice: &mut Dice| {
        let n = dice.within(1, 4);
        (0..n).map(|_| dice.within(0, tables[0].rows - 1)).collect::<Vec<_>>()
    };
    let n = dice.within(1, 6);
    let mut ops = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let table = dice.within(0, 2) as usize;
        ops.push(match dice.within(0, 9) {
            0 => Op::Flush,
            1..=4 => Op::Read { table, rows: rows(dice) },
            _ if table == FLOAT => {
                let rows = rows(dice);
                let deltas = (0..rows.len() * tables[FLOAT].width as usize).map(|_| dice.float()).collect();
                Op::AddFloats { rows, deltas }
            }
            _ => {
                let rows = rows(dice);
                let amounts = rows.iter().map(|_| dice.within(1, u64::from(u32::MAX)) as i64).collect();
                Op::Add { table, rows, amounts }
            }
        });
    }
    ops
}
