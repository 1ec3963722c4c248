//! The parameters of a job.

use schemars::JsonSchema;
use serde::Deserialize;
use slackline_guest::{Result, ensure};

/// How steps are made of gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Stored residuals cancel the noise of mini-batches: constant steps end at the optimum.
    #[default]
    Saga,
    /// Plain mini-batch steps that shrink from clock to clock.
    Sgd,
    /// Each weight's steps shrink with the squares of its own gradients.
    Adagrad,
}

/// Parameters of the plugin.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of classes; when given, it must be what the training labels have.
    #[serde(default)]
    pub classes: Option<u32>,
    /// Strength of the penalty (l2/2)·‖W‖²; the intercept is not penalised.
    #[serde(default = "default_l2")]
    pub l2: f64,
    /// Step size: for saga (1 by default) and sgd (1) in units of 1/L, L being the curvature bound that the data gives;
    /// for adagrad (0.1) as it is.
    #[serde(default)]
    pub learning_rate: Option<f64>,
    /// How steps are made of gradients.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// Whether each class has an intercept.
    #[serde(default = "default_intercept")]
    pub intercept: bool,
    /// For sgd: steps of clock t are learning_rate/(1 + decay·t).
    #[serde(default = "default_decay")]
    pub decay: f64,
}

fn default_l2() -> f64 {
    1e-4
}

fn default_intercept() -> bool {
    true
}

fn default_decay() -> f64 {
    0.1
}

impl Params {
    /// Refuses numbers that make no sense, naming them.
    pub fn check(&self) -> Result<()> {
        let rate = self.learning_rate();
        ensure!(rate.is_finite() && rate > 0.0, "learning_rate = {rate}; it must be a positive number");
        ensure!(self.l2.is_finite() && self.l2 >= 0.0, "l2 = {}; it must be zero or a positive number", self.l2);
        ensure!(
            self.decay.is_finite() && self.decay >= 0.0,
            "decay = {}; it must be zero or a positive number",
            self.decay
        );
        Ok(())
    }

    /// The step size given, or the optimizer's own.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate.unwrap_or(match self.optimizer {
            Optimizer::Saga | Optimizer::Sgd => 1.0,
            Optimizer::Adagrad => 0.1,
        })
    }
}
