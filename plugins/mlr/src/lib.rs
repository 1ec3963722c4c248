//! Multinomial logistic regression on sparse or dense rows, in mini-batches over a table of weights.
//!
//! Two things decide how it is built. Increments of workers *add*, so a worker that moved freely through a clock of many
//! steps hands in its share of the average, not its whole way (module `moves`). And the default must end at the optimum without
//! a schedule, for any number of workers, so each row's last residual is kept and the noise of mini-batches cancels
//! (`optimizer = "saga"`). The README has the equations and what was measured.

mod evaluate;
mod linear;
mod moves;
mod params;
mod rows;
mod step;

pub use params::{Optimizer, Params};

use evaluate::Penalty;
use rows::Rows;
use slackline_guest::{
    Batch, ColumnWant, Facts, Manifest, MetricSpec, Plan, Plugin, Result, Table, TableSpec, bail, ensure, output,
};
use step::Trainer;

/// The plugin.
pub struct Mlr {
    params: Params,
    weights: Table<f32>,
    features: Features,
    trainer: Trainer,
    penalty: Penalty,
    rows: Rows,
}

slackline_guest::export!(Mlr);

/// How the rows of the table `weights` are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Features {
    /// Features of the training data: rows `0..count` of the table.
    count: usize,
    /// Whether row `count` holds the intercept.
    intercept: bool,
}

impl Features {
    fn of(weights: &Table<f32>, params: &Params) -> Result<Self> {
        let rows = usize::try_from(weights.rows())?;
        let count = rows.checked_sub(usize::from(params.intercept));
        match count {
            Some(count) if count > 0 => Ok(Self { count, intercept: params.intercept }),
            _ => bail!("table \"weights\" has {rows} rows, too few for a feature"),
        }
    }
}

impl Plugin for Mlr {
    type Params = Params;

    fn manifest() -> Manifest {
        Manifest::new("mlr", env!("CARGO_PKG_VERSION"))
            .summary("multinomial and binary logistic regression with L2, by variance-reduced SGD, SGD or AdaGrad")
            .column(ColumnWant::dictionary("label").target())
            .column(ColumnWant::list::<u32>("index").optional())
            .column(ColumnWant::list::<f32>("value").optional())
            .column(ColumnWant::list::<f32>("x").optional())
            .metric(MetricSpec::new("train_loss"))
            .metric(MetricSpec::new("train_objective"))
            .metric(MetricSpec::new("train_error"))
            .metric(MetricSpec::new("test_loss"))
            .metric(MetricSpec::new("test_error"))
            .predicts("label")
            .predicts("probability")
            .prepare()
    }

    fn plan(params: &Params, facts: &Facts) -> Result<Plan> {
        params.check()?;
        let train = facts.dataset("train")?;
        let labels = train.column("label")?.key_count();
        ensure!(
            labels >= 2,
            "column \"label\" of the training data has {labels} distinct values; classes need 2 or more"
        );
        if let Some(classes) = params.classes {
            ensure!(
                u64::from(classes) == labels,
                "classes = {classes}, but column \"label\" of the training data has {labels} distinct values"
            );
        }
        let classes = u32::try_from(labels)?;
        let features = match (train.columns.get("index"), train.columns.get("value"), train.columns.get("x")) {
            (Some(index), Some(_), None) if index.values > 0 => index.max as u64 + 1,
            (None, None, Some(x)) if train.rows > 0 && x.values >= train.rows => x.values / train.rows,
            (Some(_), Some(_), None) | (None, None, Some(_)) => bail!("the training data has no features"),
            _ => bail!(
                "rows come as columns \"index\" and \"value\" or as column \"x\": give exactly one of these forms"
            ),
        };
        let rows = features + u64::from(params.intercept);
        let like_weights = |name| TableSpec::dense::<f32>(name, rows, classes);
        let plan = Plan::new().table(like_weights("weights"));
        Ok(match params.optimizer {
            Optimizer::Saga => plan.table(like_weights("gradient")).table(step::total_rows(train.rows)),
            Optimizer::Adagrad => plan.table(like_weights("squares")),
            Optimizer::Sgd => plan,
        })
    }

    fn create(params: Params) -> Result<Self> {
        params.check()?;
        let weights = Table::open("weights")?;
        let features = Features::of(&weights, &params)?;
        let trainer = Trainer::open(&params, features, weights.width())?;
        Ok(Self { params, weights, features, trainer, penalty: Penalty::default(), rows: Rows::default() })
    }

    fn prepare(&mut self, batch: &Batch) -> Result<()> {
        self.rows.read(batch, self.features)?;
        self.trainer.survey(&self.rows)
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        self.penalty.forget();
        self.rows.read(batch, self.features)?;
        self.trainer.step(batch, &mut self.rows, &self.weights, &self.params)
    }

    fn end_clock(&mut self, _: u32) -> Result<()> {
        self.penalty.forget();
        self.trainer.end_clock(&self.weights)
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        self.rows.read(batch, self.features)?;
        let probabilities = evaluate::probabilities(&mut self.rows, &self.weights)?;
        let penalty = match batch.dataset().as_str() {
            "train" => Some(self.penalty.of(&self.weights, self.features.count, self.params.l2)?),
            "test" => None,
            _ => return Ok(()),
        };
        evaluate::report(&batch.column::<u32>("label")?, &probabilities, penalty)
    }

    fn predict(&mut self, batch: &Batch) -> Result<()> {
        self.rows.read(batch, self.features)?;
        let probabilities = evaluate::probabilities(&mut self.rows, &self.weights)?;
        output::put("label", &probabilities.best())?;
        let values: Vec<f32> = probabilities.values().map(|p| p as f32).collect();
        output::put("probability", &values)
    }
}
