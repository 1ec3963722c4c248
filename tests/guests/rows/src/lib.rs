//! A plugin that learns nothing: its step crosses the border of the sandbox in one given way, so that a bench can tell
//! what the crossing costs.

use schemars::JsonSchema;
use serde::Deserialize;
use slackline_guest::{
    Batch, ColumnWant, Facts, Manifest, MetricSpec, Plan, Plugin, Result, Table, TableSpec, ensure, run, telemetry,
};

/// What a step does.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Nothing.
    Nothing,
    /// Calls the host and asks for a number.
    Ask,
    /// Reads rows and sums their values.
    Get,
    /// Adds to rows.
    Inc,
}

/// Parameters of the plugin.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What a step does…
    pub work: Work,
    /// …and how often.
    pub calls: usize,
    /// Rows of the table.
    pub table_rows: u64,
    /// Values in a row.
    pub width: u32,
    /// Rows that a call moves.
    pub rows: usize,
}

/// An instance.
pub struct Rows {
    params: Params,
    table: Table<f32>,
    /// Keys in the order in which calls use them: as many as the table has rows, so that no row is soon met again.
    keys: Vec<u64>,
    /// Where the next call begins.
    at: usize,
    values: Vec<f32>,
    /// What was read, so that reading cannot be left out.
    sum: f64,
}

slackline_guest::export!(Rows);

impl Plugin for Rows {
    type Params = Params;

    fn manifest() -> Manifest {
        slackline_guest::manifest!()
            .summary("reads and adds to random rows, for benches")
            .column(ColumnWant::new::<f32>("x"))
            .metric(MetricSpec::new("sum"))
    }

    fn plan(params: &Params, _facts: &Facts) -> Result<Plan> {
        Ok(Plan::new().table(TableSpec::dense::<f32>("rows", params.table_rows, params.width)))
    }

    fn create(params: Params) -> Result<Self> {
        ensure!(params.table_rows > 0 && params.rows > 0, "table_rows and rows are from 1 up");
        let calls = usize::try_from(params.table_rows).unwrap_or(usize::MAX).div_ceil(params.rows);
        // A linear congruential generator of full period (Knuth's MMIX); its upper bits are the good ones.
        let mut state = u64::from(run::worker());
        let mut key = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(state) * u128::from(params.table_rows)) >> 64) as u64
        };
        Ok(Self {
            table: Table::open_with_width("rows", params.width)?,
            keys: (0..calls * params.rows).map(|_| key()).collect(),
            at: 0,
            values: vec![0.5; params.rows * params.width as usize],
            sum: 0.0,
            params,
        })
    }

    fn step(&mut self, _batch: &Batch) -> Result<()> {
        for _ in 0..self.params.calls {
            match self.params.work {
                Work::Nothing => {}
                Work::Ask => self.sum += f64::from(run::clock()),
                Work::Get => self.get()?,
                Work::Inc => {
                    let keys = next(&self.keys, &mut self.at, self.params.rows);
                    self.table.inc(keys, &self.values)?;
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, _batch: &Batch) -> Result<()> {
        telemetry::metric("sum", self.sum, 1.0);
        Ok(())
    }
}

impl Rows {
    fn get(&mut self) -> Result<()> {
        let keys = next(&self.keys, &mut self.at, self.params.rows);
        self.table.get(keys, &mut self.values)?;
        let mut sums = [0f32; 16];
        let (whole, rest) = self.values.as_chunks::<16>();
        for values in whole {
            sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += v);
        }
        self.sum += f64::from(sums.iter().chain(rest).sum::<f32>());
        Ok(())
    }
}

/// The keys of the next call, round and round.
fn next<'a>(keys: &'a [u64], at: &mut usize, rows: usize) -> &'a [u64] {
    let from = *at;
    *at = if from + 2 * rows > keys.len() { 0 } else { from + rows };
    &keys[from..from + rows]
}
