//! The rows of a batch in one form, whichever columns they came in, and the weights that they touch.

use crate::Features;
use slackline_guest::{Batch, Result, ensure};

/// Rows as entries (feature, value). The vectors are reused from batch to batch.
#[derive(Default)]
pub(crate) struct Rows {
    /// Row `i` owns the entries `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<u32>,
    /// A feature an entry. After [`Rows::locate`], the entry's place in `needed` instead.
    pub features: Vec<u32>,
    /// A value an entry.
    pub values: Vec<f32>,
    /// Rows of the table that the entries touch, each once, the intercept last.
    pub needed: Vec<u64>,
    /// How many of the batch's rows touch each of `needed`.
    pub counts: Vec<u32>,
    /// Whether `needed` ends with the intercept.
    pub intercept: bool,
    /// What `offsets` must be for the column of values too.
    value_offsets: Vec<u32>,
    /// Features of the table.
    count: usize,
    /// Feature → place in `needed` while locating; all `NOWHERE` in between.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Takes the rows of a batch. Features that training lacks are left out.
    pub fn read(&mut self, batch: &Batch, features: Features) -> Result<()> {
        (self.count, self.intercept) = (features.count, features.intercept);
        if batch.has("x") {
            batch.read_column("x", &mut self.values)?;
            read_offsets(batch, "x", &mut self.offsets)?;
            self.number_dense_entries();
        } else {
            batch.read_column("index", &mut self.features)?;
            batch.read_column("value", &mut self.values)?;
            read_offsets(batch, "index", &mut self.offsets)?;
            read_offsets(batch, "value", &mut self.value_offsets)?;
            ensure!(
                self.offsets == self.value_offsets,
                "columns \"index\" and \"value\" have lists of different lengths"
            );
        }
        self.drop_unknown_features();
        Ok(())
    }

    /// The mean over the rows of weightᵢ·‖xᵢ‖², with the intercept's 1 in ‖x‖².
    pub fn mean_square(&self, weights: &[f32]) -> f64 {
        let start = if self.intercept { 1.0 } else { 0.0 };
        let mut sum = 0.0;
        for (row, weight) in self.offsets.windows(2).zip(weights) {
            let square = self.values[row[0] as usize..row[1] as usize].iter().fold(start, |sum, v| sum + v * v);
            sum += f64::from(*weight) * f64::from(square);
        }
        sum / self.len().max(1) as f64
    }

    /// Finds `needed` and `counts`, and turns features into places in `needed`.
    pub fn locate(&mut self) {
        self.places.resize(self.count, NOWHERE);
        self.needed.clear();
        self.counts.clear();
        for feature in &mut self.features {
            let place = &mut self.places[*feature as usize];
            if *place == NOWHERE {
                *place = self.needed.len() as u32;
                self.needed.push(u64::from(*feature));
                self.counts.push(0);
            }
            self.counts[*place as usize] += 1;
            *feature = *place;
        }
        for feature in &self.needed {
            self.places[*feature as usize] = NOWHERE;
        }
        if self.intercept {
            self.needed.push(self.count as u64);
            self.counts.push(self.len() as u32);
        }
    }

    fn number_dense_entries(&mut self) {
        self.features.clear();
        for row in self.offsets.windows(2) {
            self.features.extend(0..row[1] - row[0]);
        }
    }

    fn drop_unknown_features(&mut self) {
        let count = self.count;
        let known = |f: &u32| (*f as usize) < count;
        if self.features.iter().all(known) {
            return;
        }
        let (mut kept, mut start) = (0, 0);
        for end in &mut self.offsets[1..] {
            for e in start..*end as usize {
                if known(&self.features[e]) {
                    (self.features[kept], self.values[kept]) = (self.features[e], self.values[e]);
                    kept += 1;
                }
            }
            start = *end as usize;
            *end = kept as u32;
        }
        self.features.truncate(kept);
        self.values.truncate(kept);
    }
}

fn read_offsets(batch: &Batch, column: &str, out: &mut Vec<u32>) -> Result<()> {
    let buffer = batch.offsets_buffer(column)?;
    buffer.read(0, buffer.len(), out)
}
