//! The items: rows of tables, of which the instance keeps those that the clock at hand has touched.
//!
//! Nothing of a clock leaves a worker before its tick, so a row is read once a clock, at its first rating, changed in
//! place by every rating, and its delta goes out at the end of the clock. That is what a read and an increment in each
//! step would give, but for rows that other workers' ticks would have refreshed within the clock, which the contract
//! allows and does not promise. It costs a read and an increment for each *distinct* item of a clock.

use crate::params::{Optimizer, Params};
use crate::sgd::Rows;
use slackline_guest::{Result, Table, bail, ensure};

/// Bytes of rows above which they go out before the clock ends, and are read anew (read-my-writes makes them whole).
const KEEP_BYTES: usize = 64 << 20;

/// How strongly a rating pulls a row towards where its ratings want it: what deltas are damped by.
///
/// Workers who start a clock from the same row each go most of the way to its optimum, and the sum of their deltas goes
/// beyond it: with four workers and clocks of an epoch the popular rows of MovieLens diverge. n ratings of curvature h
/// at step size η leave e^{−nηh} of the distance. So where all W workers see such n, the serial pass covers
/// 1 − e^{−Wnηh}, the sum of deltas W·(1 − e^{−nηh}), and their ratio is the share of a delta that is sent: 1 for rare
/// rows and short clocks, 1/W for rows that converge within a clock, exactly 1 for one worker.
#[derive(Clone, Copy, Debug)]
pub struct Pull {
    /// Number of workers.
    pub workers: u32,
    /// Step size.
    pub rate: f32,
    /// Curvature along an item's factors: the mean of |p|² over the clock's users, and the penalty.
    pub factors: f32,
    /// Curvature along an item's bias.
    pub biases: f32,
}

impl Pull {
    /// The share of a delta of `count` ratings; `squares` is AdaGrad's sum, or 0.
    fn share(self, count: u32, curvature: f32, squares: f32) -> f32 {
        let pull = count as f32 * self.rate * curvature / (1.0 + squares).sqrt();
        let workers = self.workers as f32;
        if self.workers <= 1 || pull < 1e-6 {
            return 1.0;
        }
        (-(-workers * pull).exp_m1()) / (workers * -(-pull).exp_m1())
    }
}

/// The items' tables, and the rows at hand.
pub struct Items {
    factors: Table<f32>,
    biases: Option<Table<f32>>,
    squares: Option<Table<f32>>,
    nonnegative: bool,
    /// Place + 1 in `rows` by code; 0 for rows that are not at hand.
    places: Vec<u32>,
    /// The codes at hand.
    codes: Vec<u64>,
    /// As they are now.
    pub rows: Rows,
    /// As they were read.
    base: Rows,
    /// Ratings that touched each.
    counts: Vec<u32>,
    missing: Vec<u64>,
    values: Vec<f32>,
}

impl Items {
    /// Opens the tables of the plan.
    pub fn open(params: &Params) -> Result<Self> {
        let adagrad = params.optimizer == Optimizer::Adagrad;
        let rank = params.rank;
        let factors = Table::open_with_width("items", rank)?;
        let places = vec![0; factors.rows() as usize];
        Ok(Self {
            factors,
            biases: params.biases.then(|| Table::open_with_width("item_biases", 1)).transpose()?,
            squares: adagrad.then(|| Table::open_with_width("item_squares", rank + 1)).transpose()?,
            nonnegative: params.nonnegative,
            places,
            codes: Vec::new(),
            rows: Rows::new(rank as usize),
            base: Rows::new(rank as usize),
            counts: Vec::new(),
            missing: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Whether training has the item.
    pub fn knows(&self, code: u32) -> bool {
        (code as usize) < self.places.len()
    }

    /// Whether the rows at hand have outgrown their room, so that they have to be sent.
    pub fn is_full(&self) -> bool {
        let row_bytes = self.rows.chunks * 16 * if self.squares.is_some() { 4 } else { 2 };
        self.codes.len() * row_bytes > KEEP_BYTES
    }

    /// The places in `rows` of `codes`, to be changed; reads the rows that are not at hand.
    pub fn touch(&mut self, codes: &[u32], out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        self.missing.clear();
        let first = self.codes.len();
        for &code in codes {
            let place = self.places.get_mut(code as usize);
            let Some(place) = place else { bail!("a training row has an item that training lacks") };
            if *place == 0 {
                self.missing.push(u64::from(code));
                *place = (first + self.missing.len()) as u32;
                self.counts.push(0);
            }
            self.counts[*place as usize - 1] += 1;
            out.push(*place - 1);
        }
        if self.missing.is_empty() {
            return Ok(());
        }
        self.codes.extend_from_slice(&self.missing);
        let (n, adagrad) = (self.codes.len(), self.squares.is_some());
        for rows in [&mut self.rows, &mut self.base] {
            rows.resize(n, adagrad);
        }
        fetch(&self.factors, &self.missing, &mut self.values, |i, row| {
            self.base.row_mut(first + i)[..row.len()].copy_from_slice(row);
        })?;
        if let Some(biases) = &self.biases {
            fetch(biases, &self.missing, &mut self.values, |i, row| self.base.biases[first + i] = row[0])?;
        }
        if let Some(squares) = &self.squares {
            let chunks = self.base.chunks;
            fetch(squares, &self.missing, &mut self.values, |i, row| {
                let at = (first + i) * chunks;
                let (factors, bias) = row.split_at(row.len() - 1);
                let place = self.base.squares[at..at + chunks].as_flattened_mut();
                place[..factors.len()].copy_from_slice(factors);
                self.base.bias_squares[first + i] = bias[0];
            })?;
        }
        self.rows.copy_from(&self.base, first);
        if self.nonnegative {
            // Where deltas of several workers add up to less than zero, the model is the projection.
            let at = first * self.rows.chunks;
            self.rows.factors[at..].as_flattened_mut().iter_mut().for_each(|x| *x = x.max(0.0));
        }
        Ok(())
    }

    /// Sends the deltas of the rows at hand, and forgets the rows.
    pub fn send(&mut self, pull: Pull) -> Result<()> {
        if self.codes.is_empty() {
            return Ok(());
        }
        let (rank, chunks) = (self.factors.width(), self.rows.chunks);
        let adagrad = self.squares.is_some();
        self.values.clear();
        for (i, count) in self.counts.iter().enumerate() {
            let (now, then) = (&self.rows.row(i)[..rank], &self.base.row(i)[..rank]);
            let share = pull.share(*count, pull.factors, 0.0);
            if adagrad && pull.workers > 1 {
                let squares = &self.rows.squares[i * chunks..][..chunks].as_flattened()[..rank];
                let moved = now.iter().zip(then).zip(squares);
                self.values.extend(moved.map(|((now, then), g)| pull.share(*count, pull.factors, *g) * (now - then)));
            } else {
                self.values.extend(now.iter().zip(then).map(|(now, then)| share * (now - then)));
            }
        }
        self.factors.inc(&self.codes, &self.values)?;
        if let Some(biases) = &self.biases {
            self.values.clear();
            for (i, count) in self.counts.iter().enumerate() {
                let share = pull.share(*count, pull.biases, self.rows.bias_squares.get(i).copied().unwrap_or(0.0));
                self.values.push(share * (self.rows.biases[i] - self.base.biases[i]));
            }
            biases.inc(&self.codes, &self.values)?;
        }
        if let Some(squares) = &self.squares {
            self.values.clear();
            for i in 0..self.codes.len() {
                let [now, then] =
                    [&self.rows, &self.base].map(|rows| rows.squares[i * chunks..][..chunks].as_flattened());
                self.values.extend(now.iter().zip(then).take(rank).map(|(now, then)| now - then));
                self.values.push(self.rows.bias_squares[i] - self.base.bias_squares[i]);
            }
            squares.inc(&self.codes, &self.values)?;
        }
        for code in self.codes.drain(..) {
            self.places[code as usize] = 0;
        }
        self.rows.clear();
        self.base.clear();
        self.counts.clear();
        Ok(())
    }

    /// Rows of `codes` as the tables have them now, one for each code, for reading.
    pub fn read(&mut self, codes: &[u64], out: &mut Rows) -> Result<()> {
        out.clear();
        out.resize(codes.len(), false);
        fetch(&self.factors, codes, &mut self.values, |i, row| {
            let place = &mut out.row_mut(i)[..row.len()];
            place.copy_from_slice(row);
            if self.nonnegative {
                place.iter_mut().for_each(|x| *x = x.max(0.0));
            }
        })?;
        if let Some(biases) = &self.biases {
            fetch(biases, codes, &mut self.values, |i, row| out.biases[i] = row[0])?;
        }
        Ok(())
    }
}

/// Reads rows of a table and shows them one by one.
fn fetch(table: &Table<f32>, codes: &[u64], values: &mut Vec<f32>, mut each: impl FnMut(usize, &[f32])) -> Result<()> {
    table.get(codes, values)?;
    ensure!(values.len() == codes.len() * table.width(), "table {:?} gave {} values", table.name(), values.len());
    values.chunks_exact(table.width()).enumerate().for_each(|(i, row)| each(i, row));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_concurrent_deltas_cover_what_a_serial_pass_would() {
        let share = |workers, count| Pull { workers, rate: 0.01, factors: 2.0, biases: 1.0 }.share(count, 2.0, 0.0);
        assert_eq!(share(1, 1_000_000), 1.0);
        assert!((share(4, 1) - 1.0).abs() < 0.05 && (share(4, 1_000_000) - 0.25).abs() < 1e-6);
        for count in [1, 10, 40, 200] {
            let covered = 1.0 - (-0.02 * count as f32).exp();
            let serial = 1.0 - (-0.08 * count as f32).exp();
            assert!((4.0 * share(4, count) * covered - serial).abs() < 1e-5, "{count} ratings");
        }
    }
}
