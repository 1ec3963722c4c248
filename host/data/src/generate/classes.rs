//! Multinomial classes over sparse features: labels are drawn from the softmax of a linear score.

use super::draw::Draw;
use super::{Folder, Generated, Parts, require};
use crate::error::DataError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// `label ~ softmax(x·W)`, x with a few standard normal values, W normal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Classes {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: usize,
    /// Classes, from 0.
    pub classes: usize,
    /// Values other than zero in each row.
    pub row_values: usize,
    /// Standard deviation of a score.
    pub signal: f64,
    /// The last of every so many rows is a test row; 0: none is.
    pub test_every: u64,
    /// The seed.
    pub seed: u64,
}

impl Default for Classes {
    fn default() -> Self {
        Self { rows: 10_000, columns: 1000, classes: 10, row_values: 50, signal: 3.0, test_every: 5, seed: 1 }
    }
}

impl Classes {
    /// Writes `train.libsvm`, `test.libsvm`, the weights (columns × classes) and `truth.json` into `folder`.
    pub fn write(&self, folder: &Path) -> Result<Generated, DataError> {
        require(&[
            (self.rows > 0 && self.columns > 0, "rows and columns are from 1 up"),
            (self.classes > 1, "there are two classes or more"),
            ((1..=self.columns).contains(&self.row_values), "row_values is between 1 and columns"),
            (self.signal >= 0.0, "signal is not negative"),
        ])?;
        let mut d = Draw::new(self.seed, 0);
        let sd = self.signal / (self.row_values as f64).sqrt();
        let weights: Vec<f64> = (0..self.columns * self.classes).map(|_| d.normal() * sd).collect();
        let largest =
            |scores: &[f64]| scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);

        let mut folder = Folder::create(folder)?;
        let mut parts = Parts::create(&mut folder, self.test_every, "libsvm")?;
        let mut d = Draw::new(self.seed, 1);
        let (mut right, mut tests) = (0u64, 0u64);
        for row in 0..self.rows {
            let mut scores = vec![0.0; self.classes];
            let mut text = String::new();
            for column in d.distinct(self.columns, self.row_values) {
                // Rounded first: the scores are those of what the file says.
                let v = (d.normal() * 1e5).round() / 1e5;
                text.push_str(&format!(" {}:{v}", column + 1));
                let w = &weights[column * self.classes..][..self.classes];
                scores.iter_mut().zip(w).for_each(|(s, w)| *s += v * w);
            }
            let best = largest(&scores);
            scores.iter_mut().for_each(|s| *s += d.gumbel());
            let label = largest(&scores);
            let (out, is_test) = parts.of(row);
            out.line(format_args!("{label}{text}"))?;
            tests += u64::from(is_test);
            right += u64::from(is_test && label == best);
        }
        parts.close()?;
        folder.matrix("truth.weights.npy", self.classes, &weights)?;
        folder.finish(json!({
            "kind": "classes",
            "options": self,
            "train": self.rows - tests,
            "test": tests,
            "bayes_test_error": (tests > 0).then(|| 1.0 - right as f64 / tests as f64),
        }))
    }
}
