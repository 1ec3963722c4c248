//! Sparse linear regression with strongly correlated neighbours, after the lasso experiments of STRADS
//! (arXiv 1406.4580): many columns, few of which matter.

use super::draw::Draw;
use super::{Folder, Generated, Parts, require};
use crate::error::DataError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// `y = X·β + noise`; X's columns have unit norm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Regression {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Values other than zero in each column.
    pub column_values: usize,
    /// Columns that matter.
    pub support: usize,
    /// Probability that a column sits on its left neighbour's rows and shares its values.
    pub correlated: f64,
    /// What share of a correlated column is its neighbour.
    pub mix: f64,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Size of the coefficients: ± between once and twice this.
    pub signal: f64,
    /// The last of every so many rows is a test row; 0: none is.
    pub test_every: u64,
    /// The seed.
    pub seed: u64,
}

impl Default for Regression {
    fn default() -> Self {
        Self {
            rows: 5000,
            columns: 10_000,
            column_values: 25,
            support: 50,
            correlated: 0.9,
            mix: 0.5,
            noise: 0.1,
            signal: 10.0,
            test_every: 0,
            seed: 1,
        }
    }
}

impl Regression {
    /// Writes `train.libsvm` (and `test.libsvm`) and `truth.json` with the coefficients into `folder`.
    pub fn write(&self, folder: &Path) -> Result<Generated, DataError> {
        require(&[
            (self.rows > 0 && self.columns > 0, "rows and columns are from 1 up"),
            ((1..=self.rows).contains(&self.column_values), "column_values is between 1 and rows"),
            (self.support <= self.columns, "support is at most columns"),
            ((0.0..=1.0).contains(&self.correlated), "correlated is between 0 and 1"),
            ((0.0..1.0).contains(&self.mix), "mix is between 0 and 1"),
            (self.noise >= 0.0 && self.signal.is_finite(), "noise is not negative and signal is finite"),
        ])?;
        let mut d = Draw::new(self.seed, 0);
        let support = d.distinct(self.columns, self.support);
        let mut sign = || if d.below(2) == 0 { -1.0 } else { 1.0 };
        let signs: Vec<f64> = support.iter().map(|_| sign()).collect();
        let beta: Vec<f64> = signs.iter().map(|s| s * d.between(1.0, 2.0) * self.signal).collect();

        let mut d = Draw::new(self.seed, 1);
        let mut table: Vec<Vec<(u32, f32)>> = vec![Vec::new(); self.rows];
        let mut y = vec![0.0; self.rows];
        let (mut at, mut values): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut next = 0;
        for column in 0..self.columns {
            let linked = column > 0 && d.unit() < self.correlated;
            if linked {
                values.iter_mut().for_each(|v| *v = self.mix * *v + (1.0 - self.mix) * d.between(-1.0, 1.0));
            } else {
                at = d.distinct(self.rows, self.column_values);
                values = at.iter().map(|_| d.between(-1.0, 1.0)).collect();
            }
            let norm = values.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            values.iter_mut().for_each(|v| *v /= norm);
            let coefficient = if support.get(next) == Some(&column) {
                next += 1;
                beta[next - 1]
            } else {
                0.0
            };
            for (row, v) in at.iter().zip(&values) {
                table[*row].push((column as u32 + 1, *v as f32));
                y[*row] += coefficient * f64::from(*v as f32);
            }
        }
        let mean = y.iter().sum::<f64>() / self.rows as f64;
        let signal_variance = y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / self.rows as f64;
        let mut noise = Draw::new(self.seed, 2);

        let mut folder = Folder::create(folder)?;
        let mut parts = Parts::create(&mut folder, self.test_every, "libsvm")?;
        let mut tests = 0;
        for (row, (entries, clean)) in table.iter().zip(&y).enumerate() {
            let (out, is_test) = parts.of(row as u64);
            tests += u64::from(is_test);
            let label = clean + self.noise * noise.normal();
            out.write(format!("{label:.7}").as_bytes())?;
            for (index, v) in entries {
                out.write(format!(" {index}:{v}").as_bytes())?;
            }
            out.line(format_args!(""))?;
        }
        parts.close()?;
        folder.finish(json!({
            "kind": "regression",
            "options": self,
            "train": self.rows as u64 - tests,
            "test": tests,
            "noise_variance": self.noise.powi(2),
            "signal_variance": signal_variance,
            "support": support,
            "beta": beta,
        }))
    }
}
