//! The users of this worker: their parameters live in local state, and the instance works on a copy.
//!
//! Ratings are partitioned by user, so nobody else has these rows. A call to the host for each user of a batch would
//! cost more than its updates. So the instance reads everything once in its life, works in its own memory, and writes
//! what changed when a clock ends: local state is whole at every tick, which is all that a cut or a new instance needs.
//! Rows are numbered by first appearance, so a worker holds its own users and not those of others.

use crate::params::{FIRST_SD, Optimizer, Params};
use crate::sgd::Rows;
use slackline_guest::{Buffer, LocalState, Result, Rng, ensure};

/// The users of this worker.
pub struct Users {
    adagrad: bool,
    rank: usize,
    /// Row + 1 by code; 0 where this worker has met no rating of the user.
    rows_of: Vec<u32>,
    /// Their parameters.
    pub rows: Rows,
    /// Which rows the clock at hand has touched, as flags and as a list.
    touched: Vec<bool>,
    dirty: Vec<u32>,
    /// Codes of the users that the clock at hand has added.
    added: Vec<u32>,
}

impl Users {
    /// What the clocks before this instance left.
    pub fn open(params: &Params) -> Result<Self> {
        let adagrad = params.optimizer == Optimizer::Adagrad;
        let rank = params.rank as usize;
        let mut rows = Rows::new(rank);
        rows.biases = LocalState::open::<f32>("user_biases", 0)?.to_vec()?;
        let count = rows.len();
        let groups = count * rows.chunks;
        rows.factors = grouped(&LocalState::open("users", 0)?, groups)?;
        if adagrad {
            rows.squares = grouped(&LocalState::open("user_squares", 0)?, groups)?;
            rows.bias_squares = LocalState::open("user_bias_squares", 0)?.to_vec()?;
            ensure!(rows.bias_squares.len() == count, "local state \"user_bias_squares\" is not of this job");
        }
        let rows_of: Vec<u32> = LocalState::open("user_rows", 0)?.to_vec()?;
        ensure!(rows_of.iter().all(|r| *r as usize <= count), "local state \"user_rows\" is not of this job");
        let touched = vec![false; count];
        Ok(Self { adagrad, rank, rows_of, rows, touched, dirty: Vec::new(), added: Vec::new() })
    }

    /// The row of a user that this worker has met in training.
    pub fn find(&self, code: u32) -> Option<usize> {
        self.rows_of.get(code as usize).and_then(|r| (*r as usize).checked_sub(1))
    }

    /// The rows of `codes`, to be changed; new users begin with normal deviates around `first`.
    pub fn touch(&mut self, codes: &[u32], first: f64, nonnegative: bool, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        let mut rng = None;
        for &code in codes {
            let row = match self.find(code) {
                Some(row) => row,
                None => {
                    ensure!(code != u32::MAX, "a training row has a user that training lacks");
                    let rng = rng.get_or_insert_with(Rng::from_host);
                    self.add(code, || {
                        let x = (first + FIRST_SD * rng.normal()) as f32;
                        if nonnegative { x.max(0.0) } else { x }
                    })
                }
            };
            if !self.touched[row] {
                self.touched[row] = true;
                self.dirty.push(row as u32);
            }
            out.push(row as u32);
        }
        Ok(())
    }

    fn add(&mut self, code: u32, mut draw: impl FnMut() -> f32) -> usize {
        let row = self.rows.len();
        self.rows.push(self.adagrad);
        let rank = self.rank;
        self.rows.row_mut(row)[..rank].iter_mut().for_each(|x| *x = draw());
        if self.rows_of.len() <= code as usize {
            self.rows_of.resize(code as usize + 1, 0);
        }
        self.rows_of[code as usize] = row as u32 + 1;
        self.touched.push(false);
        self.added.push(code);
        row
    }

    /// The mean of |p|² over the users that the clock has touched.
    pub fn mean_square(&self) -> f32 {
        let norm = |row: &u32| self.rows.row(*row as usize).iter().map(|x| x * x).sum::<f32>();
        self.dirty.iter().map(norm).sum::<f32>() / self.dirty.len().max(1) as f32
    }

    /// Writes what the clock changed.
    pub fn save(&mut self) -> Result<()> {
        let (n, width) = (self.rows.len(), self.rows.chunks * 4);
        if !self.added.is_empty() {
            let rows_of = LocalState::open("user_rows", self.rows_of.len())?;
            for code in self.added.drain(..) {
                rows_of.write(code as usize, &[self.rows_of[code as usize]])?;
            }
        }
        let factors = self.rows.factors.as_flattened();
        self.write("users", n, width, factors)?;
        self.write("user_biases", n, 1, &self.rows.biases)?;
        if self.adagrad {
            self.write("user_squares", n, width, self.rows.squares.as_flattened())?;
            self.write("user_bias_squares", n, 1, &self.rows.bias_squares)?;
        }
        for row in self.dirty.drain(..) {
            self.touched[row as usize] = false;
        }
        Ok(())
    }

    /// The dirty rows one by one when they are few; everything in one call when they are many.
    fn write(&self, name: &str, rows: usize, width: usize, values: &[f32]) -> Result<()> {
        /// A call to the host costs about as much as copying this many values.
        const CALL: usize = 1024;
        let buffer = LocalState::open(name, rows * width)?;
        if self.dirty.len() * CALL.max(width) >= values.len() {
            return buffer.write(0, values);
        }
        for row in &self.dirty {
            let at = *row as usize * width;
            buffer.write(at, &values[at..at + width])?;
        }
        Ok(())
    }
}

fn grouped(buffer: &Buffer<f32>, groups: usize) -> Result<Vec<[f32; 4]>> {
    let values = buffer.to_vec()?;
    ensure!(values.len() == groups * 4, "local state has {} values of users, not {}", values.len(), groups * 4);
    Ok(values.as_chunks().0.to_vec())
}
