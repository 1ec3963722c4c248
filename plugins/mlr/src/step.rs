//! A training step: read the weights that the batch touches once, move them, add the move once.

use crate::linear::{self, Entries};
use crate::moves::Moves;
use crate::rows::Rows;
use crate::{Features, Optimizer, Params};
use slackline_guest::{
    Batch, Buffer, Error, Init, LocalState, Result, Table, TableSpec, ensure, kernels, partition_rows, run,
};

/// The share of a batch in the running mean of the curvature.
const MEMORY: f64 = 0.05;

/// Keeps √ in adagrad's denominator from zero.
const TINY: f32 = 1e-10;

/// A table of one constant: the number of training rows over all workers, which an instance cannot know otherwise.
pub(crate) fn total_rows(rows: u64) -> TableSpec {
    TableSpec::dense::<f64>("rows", 1, 1).init(Init::Constant { value: rows as f64 })
}

/// One worker's part in training.
pub(crate) struct Trainer {
    classes: usize,
    features: Features,
    /// Rows of this worker's partition.
    partition: usize,
    workers: u32,
    /// How many rows of the partition have each feature; in every cut.
    frequency: Buffer<u32>,
    /// The curvature at the end of the last clock, 0 before the first; in every cut.
    curvature: Buffer<f64>,
    /// Read from the two above at an instance's first step.
    survey: Option<Survey>,
    rule: Rule,
    moves: Moves,
    work: Work,
}

/// What this worker knows of its rows.
struct Survey {
    /// 1 ÷ the share of rows that have a feature.
    rarity: Vec<f32>,
    /// A running bound on the curvature of the mean loss, 0 before the first step.
    curvature: f64,
}

/// What the optimizers need beside the weights.
enum Rule {
    Saga(Box<Saga>),
    Sgd,
    Adagrad { squares: Table<f32>, read: Vec<f32>, add: Vec<f32> },
}

struct Saga {
    /// (1/n) Σ residualᵢ·xᵢ of the residuals stored.
    gradient: Table<f32>,
    /// Each row's residual when it was last visited; in every cut.
    residuals: Buffer<f32>,
    total: Table<f64>,
    inverse_rows: Option<f32>,
    ids: Buffer<u32>,
    picked: Buffer<f32>,
    /// What is sent to and read from the host, in rows of `classes`.
    tight: Vec<f32>,
    old: Vec<f32>,
    narrow: Vec<u32>,
}

/// Vectors reused from step to step.
#[derive(Default)]
struct Work {
    labels: Vec<u32>,
    tight: Vec<f32>,
    weights: Vec<f32>,
    residuals: Vec<f32>,
    gradient: Vec<f32>,
    slots: Vec<u32>,
    bends: Vec<f32>,
}

impl Trainer {
    pub fn open(params: &Params, features: Features, classes: usize) -> Result<Self> {
        let partition = usize::try_from(partition_rows("train"))?;
        let rule = match params.optimizer {
            Optimizer::Saga => Rule::Saga(Box::new(Saga::open(partition, classes)?)),
            Optimizer::Sgd => Rule::Sgd,
            Optimizer::Adagrad => Rule::Adagrad { squares: Table::open("squares")?, read: Vec::new(), add: Vec::new() },
        };
        let table_rows = features.count + usize::from(features.intercept);
        Ok(Self {
            classes,
            features,
            partition,
            workers: run::workers().max(1),
            frequency: LocalState::open("frequency", features.count)?,
            curvature: LocalState::open("curvature", 1)?,
            survey: None,
            rule,
            moves: Moves::new(table_rows, linear::padded(classes)),
            work: Work::default(),
        })
    }

    /// Counts the features of a batch of the partition, before training.
    pub fn survey(&mut self, rows: &Rows) -> Result<()> {
        let mut frequency = self.frequency.to_vec()?;
        rows.features.iter().for_each(|f| frequency[*f as usize] += 1);
        self.frequency.write(0, &frequency)
    }

    pub fn step(&mut self, batch: &Batch, rows: &mut Rows, weights: &Table<f32>, params: &Params) -> Result<()> {
        let (n, width) = (rows.len(), linear::padded(self.classes));
        if n == 0 {
            return Ok(());
        }
        rows.locate();
        let work = &mut self.work;
        batch.read_column("label", &mut work.labels)?;
        ensure!(
            work.labels.iter().all(|l| (*l as usize) < self.classes),
            "column \"label\" of the training data has a class beyond the {} of the table",
            self.classes
        );
        weights.get(&rows.needed, &mut work.tight)?;
        linear::repad(&work.tight, self.classes, width, &mut work.weights);
        let x =
            Entries { offsets: &rows.offsets, places: &rows.features, values: &rows.values, intercept: rows.intercept };
        work.residuals.resize(n * width, 0.0);
        linear::scores(x, &work.weights, width, &mut work.residuals);
        linear::residuals(&mut work.residuals, width, self.classes, &work.labels, &mut work.bends);

        let fresh = self.moves.touch(&rows.needed, &mut work.slots);
        if let Rule::Saga(saga) = &mut self.rule {
            saga.exchange(batch, &mut work.residuals, self.classes)?;
            saga.read_mean(&mut self.moves, fresh, self.classes)?;
        }
        work.gradient.resize(rows.needed.len() * width, 0.0);
        linear::gradient(x, &work.residuals, width, &mut work.gradient);

        let survey = match &mut self.survey {
            Some(survey) => survey,
            none => none.insert(Survey::read(&self.frequency, &self.curvature, self.partition)?),
        };
        let curvature = survey.meet(rows.mean_square(&work.bends))?;
        self.rule.apply(
            &Step { rows, survey, curvature, params, features: self.features, width },
            &mut self.moves,
            work,
        )?;
        linear::repad(&work.weights, width, self.classes, &mut work.tight);
        weights.inc(&rows.needed, &work.tight)
    }

    /// Turns the way of this clock into this worker's share of the average.
    pub fn end_clock(&mut self, weights: &Table<f32>) -> Result<()> {
        let width = linear::padded(self.classes);
        if self.workers > 1 {
            let back = 1.0 / self.workers as f32 - 1.0;
            self.moves.moved.iter_mut().for_each(|m| *m *= back);
            linear::repad(&self.moves.moved, width, self.classes, &mut self.work.tight);
            weights.inc(&self.moves.rows, &self.work.tight)?;
        }
        if let Rule::Saga(saga) = &self.rule {
            linear::repad(&self.moves.change, width, self.classes, &mut self.work.tight);
            saga.gradient.inc(&self.moves.rows, &self.work.tight)?;
        }
        self.moves.clear();
        match &self.survey {
            Some(survey) => self.curvature.write(0, &[survey.curvature]),
            None => Ok(()),
        }
    }
}

impl Survey {
    fn read(frequency: &Buffer<u32>, curvature: &Buffer<f64>, rows: usize) -> Result<Self> {
        let rarity = frequency.to_vec()?.into_iter().map(|n| rows as f32 / n.max(1) as f32).collect();
        Ok(Self { rarity, curvature: curvature.to_vec()?[0] })
    }

    /// Takes in the curvature of a batch. The step may count on the larger of it and of the running mean.
    fn meet(&mut self, batch: f64) -> Result<f64> {
        ensure!(batch.is_finite(), "a feature or a weight is not a finite number: scale the features, or learn slower");
        self.curvature = if self.curvature > 0.0 { self.curvature + MEMORY * (batch - self.curvature) } else { batch };
        Ok(self.curvature.max(batch))
    }
}

impl Saga {
    fn open(partition: usize, classes: usize) -> Result<Self> {
        Ok(Self {
            gradient: Table::open("gradient")?,
            residuals: LocalState::open("residuals", partition * classes)?,
            total: Table::open("rows")?,
            inverse_rows: None,
            ids: Buffer::zeros(0)?,
            picked: Buffer::zeros(0)?,
            tight: Vec::new(),
            old: Vec::new(),
            narrow: Vec::new(),
        })
    }

    /// Stores the batch's residuals and leaves in their place what changed since each row was last visited.
    fn exchange(&mut self, batch: &Batch, residuals: &mut [f32], classes: usize) -> Result<()> {
        self.narrow.clear();
        for id in batch.ids() {
            self.narrow.push(u32::try_from(id).map_err(|_| Error::invalid("a partition of more than 2^32 rows"))?);
        }
        if self.ids.len() != self.narrow.len() {
            self.ids = Buffer::zeros(self.narrow.len())?;
            self.picked = Buffer::zeros(self.narrow.len() * classes)?;
        }
        let width = linear::padded(classes);
        self.ids.write(0, &self.narrow)?;
        kernels::gather(&self.ids, &self.residuals, classes as u32, &self.picked)?;
        self.picked.read(0, self.picked.len(), &mut self.tight)?;
        linear::repad(&self.tight, classes, width, &mut self.old);
        residuals.iter_mut().zip(&self.old).for_each(|(new, old)| *new -= old);
        linear::repad(residuals, width, classes, &mut self.tight);
        self.picked.write(0, &self.tight)?;
        kernels::scatter_add(&self.ids, &self.picked, classes as u32, &self.residuals)
    }

    /// Reads the mean gradient of the rows from slot `fresh` on.
    fn read_mean(&mut self, moves: &mut Moves, fresh: usize, classes: usize) -> Result<()> {
        if fresh == moves.rows.len() {
            return Ok(());
        }
        let width = linear::padded(classes);
        self.gradient.get(&moves.rows[fresh..], &mut self.tight)?;
        linear::repad(&self.tight, classes, width, &mut self.old);
        moves.mean[fresh * width..].copy_from_slice(&self.old);
        Ok(())
    }

    fn inverse_rows(&mut self) -> Result<f32> {
        if let Some(known) = self.inverse_rows {
            return Ok(known);
        }
        let mut total = Vec::new();
        self.total.get(&[0], &mut total)?;
        Ok(*self.inverse_rows.insert(1.0 / total[0].max(1.0) as f32))
    }
}

/// What a rule needs to know of the step.
struct Step<'a> {
    rows: &'a Rows,
    survey: &'a Survey,
    curvature: f64,
    params: &'a Params,
    features: Features,
    width: usize,
}

impl Step<'_> {
    /// The weight of what concerns all rows (penalty, mean gradient) at each of the rows needed, and the penalty there.
    /// A feature that few rows have gets its rows' share of it when one of them comes by, so that an epoch adds up to
    /// the same as touching every feature in every step.
    fn shares(&self) -> impl Iterator<Item = (f32, f32)> + '_ {
        let inverse = 1.0 / self.rows.len() as f32;
        let penalty = self.params.l2 as f32;
        self.rows.needed.iter().zip(&self.rows.counts).map(move |(row, count)| {
            match self.survey.rarity.get(*row as usize) {
                Some(rarity) if (*row as usize) < self.features.count => (*count as f32 * inverse * rarity, penalty),
                _ => (1.0, 0.0),
            }
        })
    }

    /// learning_rate/L.
    fn rate(&self) -> f64 {
        self.params.learning_rate() / (self.curvature + self.params.l2).max(f64::MIN_POSITIVE)
    }
}

impl Rule {
    /// Turns `work.weights` into the step's moves, given the gradient sum over the batch.
    fn apply(&mut self, step: &Step<'_>, moves: &mut Moves, work: &mut Work) -> Result<()> {
        let width = step.width;
        let inverse = 1.0 / step.rows.len() as f32;
        let Work { weights, gradient, slots, .. } = work;
        let at_rows = weights.chunks_exact_mut(width).zip(gradient.chunks_exact(width)).zip(slots.iter());
        match self {
            Rule::Saga(saga) => {
                let rate = step.rate() as f32;
                let inverse_rows = saga.inverse_rows()?;
                for (((w, g), slot), (share, l2)) in at_rows.zip(step.shares()) {
                    let at = moves.range(*slot);
                    let by = -rate / (1.0 + rate * share * l2);
                    let (mean, change) = (&moves.mean[at.clone()], &mut moves.change[at.clone()]);
                    let moved = &mut moves.moved[at];
                    for k in 0..width {
                        w[k] = by * (g[k] * inverse + share * (mean[k] + l2 * w[k]));
                        change[k] += g[k] * inverse_rows;
                        moved[k] += w[k];
                    }
                }
            }
            Rule::Sgd => {
                let rate = (step.rate() / (1.0 + step.params.decay * f64::from(run::clock()))) as f32;
                for (((w, g), slot), (share, l2)) in at_rows.zip(step.shares()) {
                    let by = -rate / (1.0 + rate * share * l2);
                    let at = moves.range(*slot);
                    let moved = &mut moves.moved[at];
                    for k in 0..width {
                        w[k] = by * (g[k] * inverse + share * l2 * w[k]);
                        moved[k] += w[k];
                    }
                }
            }
            Rule::Adagrad { squares, read, add } => {
                let classes = squares.width();
                let rate = step.params.learning_rate() as f32;
                squares.get(&step.rows.needed, read)?;
                add.clear();
                let rows = at_rows.zip(step.shares()).zip(read.chunks_exact(classes));
                for ((((w, g), slot), (share, l2)), read) in rows {
                    let at = moves.range(*slot);
                    let moved = &mut moves.moved[at];
                    for k in 0..classes {
                        let slope = g[k] * inverse + share * l2 * w[k];
                        w[k] = -rate * slope / (read[k] + slope * slope + TINY).sqrt();
                        moved[k] += w[k];
                        add.push(slope * slope);
                    }
                }
                squares.inc(&step.rows.needed, add)?;
            }
        }
        Ok(())
    }
}
