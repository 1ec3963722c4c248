//! The parameters of a job, with their defaults and bounds.

use schemars::JsonSchema;
use serde::Deserialize;
use slackline_guest::{Result, ensure};

/// How far a step goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// `learning_rate / (1 + decay · clock)`.
    #[default]
    Sgd,
    /// Grows the step by 5 % after a clock that made the training error smaller, halves it after one that did not.
    BoldDriver,
    /// `learning_rate / √(1 + Σ g²)`, for each coordinate.
    Adagrad,
}

/// The parameters of a factorisation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of factors of a user and of an item.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 4096))]
    pub rank: u32,
    /// Weight of the squares of everything that a rating touches.
    #[serde(default = "l2")]
    #[schemars(range(min = 0.0))]
    pub l2: f64,
    /// The first step size; 0.01, or 0.1 with adagrad, when it is not given.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// How far a step goes.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// How fast the steps of `sgd` shrink with the clock.
    #[serde(default = "l2")]
    #[schemars(range(min = 0.0))]
    pub decay: f64,
    /// Whether the mean rating and a bias of each user and item are part of the model.
    #[serde(default = "yes")]
    pub biases: bool,
    /// Whether factors stay at or above zero; biases are free.
    #[serde(default)]
    pub nonnegative: bool,
}

fn ten() -> u32 {
    10
}

fn l2() -> f64 {
    0.05
}

fn yes() -> bool {
    true
}

impl Params {
    /// Refuses what no factorisation can have, naming the parameter.
    pub fn check(&self) -> Result<()> {
        ensure!((1..=4096).contains(&self.rank), "rank must be between 1 and 4096, not {}", self.rank);
        let rate = self.first_rate();
        ensure!(rate.is_finite() && rate > 0.0, "learning_rate must be a positive number, not {rate}");
        ensure!(self.l2.is_finite() && self.l2 >= 0.0, "l2 must be a number from 0 up, not {}", self.l2);
        ensure!(self.decay.is_finite() && self.decay >= 0.0, "decay must be a number from 0 up, not {}", self.decay);
        Ok(())
    }

    /// The learning rate, given or not.
    pub fn first_rate(&self) -> f64 {
        self.learning_rate.unwrap_or(match self.optimizer {
            Optimizer::Sgd | Optimizer::BoldDriver => 0.01,
            Optimizer::Adagrad => 0.1,
        })
    }

    /// The mean of new factors: with biases the factors explain deviations and begin around zero, without them their
    /// product has to begin at the mean rating. Factors that may not be negative begin mostly above zero, since a pair
    /// of zeros never moves.
    pub fn first_factor(&self, mean_rating: f64) -> f64 {
        match (self.biases, self.nonnegative) {
            (false, _) => (mean_rating.max(0.0) / f64::from(self.rank)).sqrt(),
            (true, true) => FIRST_SD,
            (true, false) => 0.0,
        }
    }
}

/// Standard deviation of new factors.
pub const FIRST_SD: f64 = 0.1;
