//! Probabilities and metrics, in double precision: the objective is compared to reference optima.

use crate::rows::Rows;
use slackline_guest::{Result, Table, telemetry, warn};

/// Rows of the table that are read at a time for ‖W‖².
const WINDOW: u64 = 4096;

/// Log-probabilities of a batch, in rows of `classes`.
pub(crate) struct Probabilities {
    classes: usize,
    logs: Vec<f64>,
}

impl Probabilities {
    /// The most probable class of each row; the first of equals.
    pub fn best(&self) -> Vec<u32> {
        self.logs.chunks_exact(self.classes).map(|row| best(row) as u32).collect()
    }

    /// Probabilities, row by row.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.logs.iter().map(|l| l.exp())
    }
}

/// The model's probabilities for the rows, which are located on the way.
pub(crate) fn probabilities(rows: &mut Rows, weights: &Table<f32>) -> Result<Probabilities> {
    rows.locate();
    let classes = weights.width();
    let mut w = Vec::new();
    weights.get(&rows.needed, &mut w)?;
    let bias = if rows.intercept { &w[w.len() - classes..] } else { &[] };
    let mut logs = vec![0.0; rows.len() * classes];
    for (i, row) in logs.chunks_exact_mut(classes).enumerate() {
        row.iter_mut().zip(bias).for_each(|(s, b)| *s = f64::from(*b));
        for e in rows.offsets[i] as usize..rows.offsets[i + 1] as usize {
            let (place, value) = (rows.features[e] as usize, f64::from(rows.values[e]));
            let w = &w[place * classes..(place + 1) * classes];
            row.iter_mut().zip(w).for_each(|(s, w)| *s += value * f64::from(*w));
        }
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = top + row.iter().map(|s| (s - top).exp()).sum::<f64>().ln();
        row.iter_mut().for_each(|s| *s -= log_sum);
    }
    Ok(Probabilities { classes, logs })
}

/// Reports a batch's metrics: of the training data when there is a penalty, of the test data when not.
pub(crate) fn report(labels: &[u32], probabilities: &Probabilities, penalty: Option<f64>) -> Result<()> {
    let (mut loss, mut errors, mut unknown) = (0.0, 0.0, 0.0);
    for (row, label) in probabilities.logs.chunks_exact(probabilities.classes).zip(labels) {
        match row.get(*label as usize) {
            Some(log) => {
                loss -= log;
                errors += f64::from(u8::from(best(row) != *label as usize));
            }
            None => {
                errors += 1.0;
                unknown += 1.0;
            }
        }
    }
    let rows = labels.len() as f64;
    let known = rows - unknown;
    if unknown > 0.0 {
        warn!("{unknown} rows have a label that training lacks: errors, and left out of the loss");
    }
    let (loss_name, error_name) = match penalty {
        Some(_) => ("train_loss", "train_error"),
        None => ("test_loss", "test_error"),
    };
    if known > 0.0 {
        telemetry::metric(loss_name, loss / known, known);
        if let Some(penalty) = penalty {
            telemetry::metric("train_objective", loss / known + penalty, known);
        }
    }
    if rows > 0.0 {
        telemetry::metric(error_name, errors / rows, rows);
    }
    Ok(())
}

/// (l2/2)·‖W‖² of the model at hand, read once between two steps.
#[derive(Default)]
pub(crate) struct Penalty {
    known: Option<f64>,
}

impl Penalty {
    /// The model is about to change.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Of the first `features` rows.
    pub fn of(&mut self, weights: &Table<f32>, features: usize, l2: f64) -> Result<f64> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let (mut sum, mut values) = (0.0, Vec::new());
        let end = features as u64;
        for start in (0..end).step_by(WINDOW as usize) {
            let rows: Vec<u64> = (start..end.min(start + WINDOW)).collect();
            weights.get(&rows, &mut values)?;
            sum += values.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>();
        }
        Ok(*self.known.insert(0.5 * l2 * sum))
    }
}

fn best(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best })
}
