//! Matrix factorisation by stochastic gradient descent with L2, optional biases and non-negativity.
//!
//! A rating is μ + b_u + b_i + p_u·q_i, or p_u·q_i without biases. Ratings are partitioned by user: what belongs to
//! users is partition-local state (`users`), what belongs to items is in tables (`items`), and one pass of plain
//! loops goes over the ratings of a batch in order ([`sgd`]). The README has the equations and their sources.

mod items;
mod params;
mod rate;
pub mod sgd;
mod users;

pub use params::{Optimizer, Params};
pub use rate::bold;

use items::{Items, Pull};
use params::FIRST_SD;
use rate::Rate;
use sgd::{Rating, Rows, Rule};
use slackline_guest::{
    Batch, ColumnWant, Facts, Init, Manifest, MetricSpec, Plan, Plugin, Result, Table, TableSpec, ensure, output, run,
    telemetry,
};
use users::Users;

/// Matrix factorisation of a worker's ratings.
pub struct Factorisation {
    params: Params,
    scale: Option<Scale>,
    users: Users,
    items: Items,
    rate: Rate,
    /// Columns of the batch at hand, and room for its work: kept, so that a step allocates nothing.
    batch: Columns,
    user_rows: Vec<u32>,
    item_rows: Vec<u32>,
    ratings: Vec<Rating>,
    known: Vec<u64>,
    read: Rows,
}

slackline_guest::export!(Factorisation);

/// Mean and range of the training ratings.
#[derive(Clone, Copy)]
struct Scale {
    mean: f64,
    min: f32,
    max: f32,
}

#[derive(Default)]
struct Columns {
    user: Vec<u32>,
    item: Vec<u32>,
    rating: Vec<f32>,
}

impl Columns {
    fn read(&mut self, batch: &Batch, rating: bool) -> Result<()> {
        batch.read_column("user", &mut self.user)?;
        batch.read_column("item", &mut self.item)?;
        let rows = self.user.len();
        if rating {
            batch.read_column("rating", &mut self.rating)?;
            ensure!(self.rating.len() == rows, "column \"rating\" has {} rows, not {rows}", self.rating.len());
        }
        ensure!(self.item.len() == rows, "column \"item\" has {} rows, not {rows}", self.item.len());
        Ok(())
    }
}

impl Plugin for Factorisation {
    type Params = Params;

    fn manifest() -> Manifest {
        Manifest::new("mf", env!("CARGO_PKG_VERSION"))
            .summary("matrix factorisation by SGD with L2, biases and non-negativity")
            .column(ColumnWant::dictionary("user"))
            .column(ColumnWant::dictionary("item"))
            .column(ColumnWant::new::<f32>("rating").target())
            .metric(MetricSpec::new("train_rmse").sqrt())
            .metric(MetricSpec::new("test_rmse").sqrt())
            .predicts("rating")
            .partition("hash:user")
    }

    fn plan(params: &Params, facts: &Facts) -> Result<Plan> {
        params.check()?;
        let rating = facts.train("rating")?;
        let (items, mean) = (facts.train("item")?.key_count(), rating.mean());
        ensure!(rating.values > 0 && items > 0, "dataset \"train\" has no ratings");
        ensure!(
            mean.is_finite() && rating.min.is_finite() && rating.max.is_finite(),
            "column \"rating\" of dataset \"train\" has a value that is not a finite number"
        );
        let fact = |name, value| TableSpec::dense::<f64>(name, 1, 1).init(Init::Constant { value });
        let first = Init::Normal { mean: params.first_factor(mean), sd: FIRST_SD };
        let mut plan = Plan::new()
            .table(TableSpec::dense::<f32>("items", items, params.rank).init(first))
            .table(fact("rating_mean", mean))
            .table(fact("rating_min", rating.min))
            .table(fact("rating_max", rating.max));
        if params.biases {
            plan = plan.table(TableSpec::dense::<f32>("item_biases", items, 1));
        }
        Ok(match params.optimizer {
            Optimizer::Sgd => plan,
            Optimizer::BoldDriver => plan.table(TableSpec::dense::<f64>("progress", 1, 2)),
            Optimizer::Adagrad => plan.table(TableSpec::dense::<f32>("item_squares", items, params.rank + 1)),
        })
    }

    fn create(params: Params) -> Result<Self> {
        params.check()?;
        Ok(Self {
            scale: None,
            users: Users::open(&params)?,
            items: Items::open(&params)?,
            rate: Rate::open(&params)?,
            batch: Columns::default(),
            user_rows: Vec::new(),
            item_rows: Vec::new(),
            ratings: Vec::new(),
            known: Vec::new(),
            read: Rows::new(params.rank as usize),
            params,
        })
    }

    fn step(&mut self, batch: &Batch) -> Result<()> {
        let scale = self.scale()?;
        let rule = self.rule(scale)?;
        self.batch.read(batch, true)?;
        let first = self.params.first_factor(scale.mean);
        self.users.touch(&self.batch.user, first, rule.nonnegative, &mut self.user_rows)?;
        if self.items.is_full() {
            self.send()?;
        }
        self.items.touch(&self.batch.item, &mut self.item_rows)?;
        self.ratings.clear();
        let rows = self.user_rows.iter().zip(&self.item_rows).zip(&self.batch.rating);
        self.ratings.extend(rows.map(|((user, item), value)| Rating { user: *user, item: *item, value: *value }));
        let squares = sgd::pass(&rule, &self.ratings, &mut self.users.rows, &mut self.items.rows);
        self.rate.met(squares, self.ratings.len());
        let rows = self.ratings.len() as f64;
        telemetry::metric("train_rmse", squares / rows, rows);
        Ok(())
    }

    fn end_clock(&mut self, _: u32) -> Result<()> {
        self.send()?;
        self.users.save()?;
        self.rate.end_clock()
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<()> {
        let metric = match batch.dataset().as_str() {
            "train" => "train_rmse",
            "test" => "test_rmse",
            // The manifest has no metric for other datasets.
            _ => return Ok(()),
        };
        self.batch.read(batch, true)?;
        let predictions = self.predictions()?;
        let squared = |(p, r): (&f32, &f32)| f64::from(p - r).powi(2);
        let squares: f64 = predictions.iter().zip(&self.batch.rating).map(squared).sum();
        let rows = predictions.len() as f64;
        telemetry::metric(metric, squares / rows, rows);
        Ok(())
    }

    fn predict(&mut self, batch: &Batch) -> Result<()> {
        self.batch.read(batch, false)?;
        output::put("rating", &self.predictions()?)
    }
}

impl Factorisation {
    /// Read once: constant tables are how facts of the plan reach an instance.
    fn scale(&mut self) -> Result<Scale> {
        if let Some(scale) = self.scale {
            return Ok(scale);
        }
        let fact = |name| -> Result<f64> {
            let mut value = Vec::new();
            Table::<f64>::open_with_width(name, 1)?.get(&[0], &mut value)?;
            value.first().copied().ok_or_else(|| slackline_guest::Error::not_found(name))
        };
        let (min, max) = (fact("rating_min")? as f32, fact("rating_max")? as f32);
        ensure!(min <= max, "tables \"rating_min\" and \"rating_max\" hold {min} and {max}");
        let scale = Scale { mean: fact("rating_mean")?, min, max };
        self.scale = Some(scale);
        Ok(scale)
    }

    fn send(&mut self) -> Result<()> {
        let workers = run::workers();
        let l2 = self.params.l2 as f32;
        // One worker sends what it has; the mean is not needed.
        let factors = if workers > 1 { self.users.mean_square() + l2 } else { 0.0 };
        let pull = Pull { workers, rate: self.rate.now()? as f32, factors, biases: 1.0 + l2 };
        self.items.send(pull)
    }

    fn rule(&mut self, scale: Scale) -> Result<Rule> {
        Ok(Rule {
            rate: self.rate.now()? as f32,
            l2: self.params.l2 as f32,
            biases: self.params.biases.then_some(scale.mean as f32),
            nonnegative: self.params.nonnegative,
            adagrad: self.params.optimizer == Optimizer::Adagrad,
        })
    }

    /// What the model says of the columns at hand, within the range of the training ratings; their mean where the
    /// user or the item has no training row.
    fn predictions(&mut self) -> Result<Vec<f32>> {
        let scale = self.scale()?;
        let biases = self.params.biases.then_some(scale.mean as f32);
        let pairs = self.batch.user.iter().zip(&self.batch.item);
        let known = |user: u32, item: u32| self.users.find(user).filter(|_| self.items.knows(item));
        let users: Vec<Option<usize>> = pairs.map(|(user, item)| known(*user, *item)).collect();
        self.known.clear();
        let items = users.iter().zip(&self.batch.item).filter(|(user, _)| user.is_some());
        self.known.extend(items.map(|(_, item)| u64::from(*item)));
        self.items.read(&self.known, &mut self.read)?;
        let mut item = 0;
        let predict = |user: Option<usize>| {
            let Some(user) = user else { return scale.mean as f32 };
            item += 1;
            sgd::predict(biases, &self.users.rows, user, &self.read, item - 1).clamp(scale.min, scale.max)
        };
        Ok(users.into_iter().map(predict).collect())
    }
}
