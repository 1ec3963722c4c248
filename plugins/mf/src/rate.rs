//! The step size of a clock.
//!
//! The bold driver needs the training error of the whole clock, and a worker sees its own part. So workers add what
//! their steps met to a table of one row, and each drives by the mean of what has come in since it last looked: under
//! BSP all take the same decision.

use crate::params::{Optimizer, Params};
use slackline_guest::{Buffer, LocalState, Result, Table, run};

/// What the bold driver does after a good clock (Gemulla et al. 2011, §6.1).
const GROW: f64 = 1.05;
/// What it does after a bad one.
const SHRINK: f64 = 0.5;

/// The step size.
pub struct Rate {
    first: f64,
    decay: f64,
    driver: Option<Driver>,
    /// That of the clock at hand, once a step has asked.
    current: Option<f64>,
}

struct Driver {
    /// Sum of squared errors and number of ratings of all workers' steps so far.
    progress: Table<f64>,
    /// Step size, error of the last clock (0: none yet), and what `progress` was then.
    state: Buffer<f64>,
    squares: f64,
    ratings: f64,
}

/// The step size after a clock with `error`, where the one before had `last`.
pub fn bold(rate: f64, last: f64, error: f64) -> f64 {
    if error < last { rate * GROW } else { rate * SHRINK }
}

impl Rate {
    /// The optimizer's.
    pub fn open(params: &Params) -> Result<Self> {
        let decay = if params.optimizer == Optimizer::Sgd { params.decay } else { 0.0 };
        let driver = match params.optimizer {
            Optimizer::BoldDriver => Some(Driver {
                progress: Table::open_with_width("progress", 2)?,
                state: LocalState::open("driver", 4)?,
                squares: 0.0,
                ratings: 0.0,
            }),
            Optimizer::Sgd | Optimizer::Adagrad => None,
        };
        Ok(Self { first: params.first_rate(), decay, driver, current: None })
    }

    /// The step size of the clock at hand.
    pub fn now(&mut self) -> Result<f64> {
        if let Some(rate) = self.current {
            return Ok(rate);
        }
        let rate = match &self.driver {
            Some(driver) => driver.decide(self.first)?,
            None => self.first / (1.0 + self.decay * f64::from(run::clock())),
        };
        self.current = Some(rate);
        Ok(rate)
    }

    /// What a step met.
    pub fn met(&mut self, squares: f64, ratings: usize) {
        if let Some(driver) = &mut self.driver {
            driver.squares += squares;
            driver.ratings += ratings as f64;
        }
    }

    /// The clock is over.
    pub fn end_clock(&mut self) -> Result<()> {
        self.current = None;
        if let Some(driver) = &mut self.driver {
            driver.progress.inc(&[0], &[driver.squares, driver.ratings])?;
            (driver.squares, driver.ratings) = (0.0, 0.0);
        }
        Ok(())
    }
}

impl Driver {
    fn decide(&self, first: f64) -> Result<f64> {
        let (mut state, mut progress) = (Vec::new(), Vec::new());
        self.state.read(0, 4, &mut state)?;
        self.progress.get(&[0], &mut progress)?;
        let [rate, last, squares, ratings] = state[..] else { unreachable!("four were read") };
        let rate = if rate == 0.0 { first } else { rate };
        let new = progress[1] - ratings;
        if new <= 0.0 {
            return Ok(rate);
        }
        let error = (progress[0] - squares) / new;
        let rate = if last == 0.0 { rate } else { bold(rate, last, error) };
        self.state.write(0, &[rate, error, progress[0], progress[1]])?;
        Ok(rate)
    }
}
