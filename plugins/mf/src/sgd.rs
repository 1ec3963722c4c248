//! The updates themselves: pure loops over rows of factors in memory.
//!
//! A row is padded with zeros to whole groups of four values, which the compiler turns into vector instructions (SSE and
//! wasm's simd128 alike); a padded place has a gradient of zero and stays zero. Up to 32 factors the length is known to
//! the compiler, so that a user's and an item's factors stay in registers between prediction and update.

/// Values that move together.
pub type Lanes = [f32; 4];

/// Rows of parameters: one for each user, or item, at hand.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Groups in a row.
    pub chunks: usize,
    /// Factors, `chunks` groups a row.
    pub factors: Vec<Lanes>,
    /// A bias a row.
    pub biases: Vec<f32>,
    /// With AdaGrad, the sums of squared gradients of the factors.
    pub squares: Vec<Lanes>,
    /// With AdaGrad, those of the biases.
    pub bias_squares: Vec<f32>,
}

impl Rows {
    /// No rows of `rank` factors.
    pub fn new(rank: usize) -> Self {
        Self { chunks: rank.div_ceil(4), ..Self::default() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.biases.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row of zeros; one with sums of squares when `squares`.
    pub fn push(&mut self, squares: bool) {
        let n = self.len() + 1;
        self.resize(n, squares);
    }

    /// Makes it `n` rows, new ones of zeros.
    pub fn resize(&mut self, n: usize, squares: bool) {
        self.factors.resize(n * self.chunks, [0.0; 4]);
        self.biases.resize(n, 0.0);
        if squares {
            self.squares.resize(n * self.chunks, [0.0; 4]);
            self.bias_squares.resize(n, 0.0);
        }
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.factors.clear();
        self.biases.clear();
        self.squares.clear();
        self.bias_squares.clear();
    }

    /// Takes over the rows from `first` on; both have as many rows.
    pub fn copy_from(&mut self, other: &Self, first: usize) {
        let at = first * self.chunks;
        self.factors[at..].copy_from_slice(&other.factors[at..]);
        self.biases[first..].copy_from_slice(&other.biases[first..]);
        if !self.squares.is_empty() {
            self.squares[at..].copy_from_slice(&other.squares[at..]);
            self.bias_squares[first..].copy_from_slice(&other.bias_squares[first..]);
        }
    }

    /// The factors of row `i`, padding included.
    pub fn row(&self, i: usize) -> &[f32] {
        self.factors[i * self.chunks..][..self.chunks].as_flattened()
    }

    /// The same, to change.
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        self.factors[i * self.chunks..][..self.chunks].as_flattened_mut()
    }
}

/// A rating by the places of its user and item in their [`Rows`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Row of the user.
    pub user: u32,
    /// Row of the item.
    pub item: u32,
    /// The rating.
    pub value: f32,
}

/// What is the same for all ratings of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Step size.
    pub rate: f32,
    /// Weight of the penalty.
    pub l2: f32,
    /// The mean rating when there are biases.
    pub biases: Option<f32>,
    /// Whether factors stay at or above zero.
    pub nonnegative: bool,
    /// Whether steps shrink by the sums of squared gradients.
    pub adagrad: bool,
}

/// One step of SGD for each rating, one after the other. Answers the sum of the squared errors that the steps met.
pub fn pass(rule: &Rule, ratings: &[Rating], users: &mut Rows, items: &mut Rows) -> f64 {
    macro_rules! by_length {
        ($($n:literal)*) => {
            match (rule.adagrad, users.chunks) {
                $((false, $n) => plain::<$n>(rule, ratings, users, items),)*
                $((true, $n) => adaptive::<$n>(rule, ratings, users, items),)*
                (false, _) => plain::<0>(rule, ratings, users, items),
                (true, _) => adaptive::<0>(rule, ratings, users, items),
            }
        };
    }
    by_length!(1 2 3 4 5 6 7 8)
}

/// `row(values, i)` with `C` groups, or `chunks` when `C` is 0: a slice whose length the compiler knows where it can.
#[inline(always)]
fn row<const C: usize>(values: &mut [Lanes], i: u32, chunks: usize) -> &mut [Lanes] {
    let n = if C == 0 { chunks } else { C };
    &mut values[i as usize * n..][..n]
}

/// p·q; four partial sums, so that the order of additions is the same at any vector width.
#[inline(always)]
fn dot(p: &[Lanes], q: &[Lanes]) -> f32 {
    let mut sums = [0.0f32; 4];
    for (p, q) in p.iter().zip(q) {
        for l in 0..4 {
            sums[l] += p[l] * q[l];
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// What the model says, without clipping.
#[inline(always)]
fn score(p: &[Lanes], q: &[Lanes], biases: Option<f32>, user: f32, item: f32) -> f32 {
    match biases {
        Some(mean) => mean + user + item + dot(p, q),
        None => dot(p, q),
    }
}

/// What the model says of a pair, without clipping.
pub fn predict(biases: Option<f32>, users: &Rows, user: usize, items: &Rows, item: usize) -> f32 {
    let n = users.chunks;
    let (p, q) = (&users.factors[user * n..][..n], &items.factors[item * n..][..n]);
    score(p, q, biases, users.biases[user], items.biases[item])
}

fn plain<const C: usize>(rule: &Rule, ratings: &[Rating], users: &mut Rows, items: &mut Rows) -> f64 {
    let chunks = users.chunks;
    let keep = 1.0 - rule.rate * rule.l2;
    let floor = if rule.nonnegative { 0.0 } else { f32::NEG_INFINITY };
    let mut squares = 0.0;
    for r in ratings {
        let p = row::<C>(&mut users.factors, r.user, chunks);
        let q = row::<C>(&mut items.factors, r.item, chunks);
        let (bu, bi) = (&mut users.biases[r.user as usize], &mut items.biases[r.item as usize]);
        let error = r.value - score(p, q, rule.biases, *bu, *bi);
        squares += f64::from(error * error);
        let gain = rule.rate * error;
        if rule.biases.is_some() {
            *bu = keep * *bu + gain;
            *bi = keep * *bi + gain;
        }
        for (p, q) in p.iter_mut().zip(q) {
            for l in 0..4 {
                let (a, b) = (keep * p[l] + gain * q[l], keep * q[l] + gain * p[l]);
                // Not f32::max: where a model diverges, its NaN must reach the metrics.
                p[l] = if a < floor { floor } else { a };
                q[l] = if b < floor { floor } else { b };
            }
        }
    }
    squares
}

/// Moves `x` against its gradient −`g`, and adds to its sum of squares.
#[inline(always)]
fn adapt(rate: f32, x: f32, g: f32, sum: &mut f32) -> f32 {
    *sum += g * g;
    x + rate * g / (1.0 + *sum).sqrt()
}

fn adaptive<const C: usize>(rule: &Rule, ratings: &[Rating], users: &mut Rows, items: &mut Rows) -> f64 {
    let chunks = users.chunks;
    let (rate, l2) = (rule.rate, rule.l2);
    let floor = if rule.nonnegative { 0.0 } else { f32::NEG_INFINITY };
    let mut squares = 0.0;
    for r in ratings {
        let (u, i) = (r.user as usize, r.item as usize);
        let p = row::<C>(&mut users.factors, r.user, chunks);
        let q = row::<C>(&mut items.factors, r.item, chunks);
        let (bu, bi) = (&mut users.biases[u], &mut items.biases[i]);
        let error = r.value - score(p, q, rule.biases, *bu, *bi);
        squares += f64::from(error * error);
        if rule.biases.is_some() {
            *bu = adapt(rate, *bu, error - l2 * *bu, &mut users.bias_squares[u]);
            *bi = adapt(rate, *bi, error - l2 * *bi, &mut items.bias_squares[i]);
        }
        let gp = row::<C>(&mut users.squares, r.user, chunks);
        let gq = row::<C>(&mut items.squares, r.item, chunks);
        for ((p, q), (gp, gq)) in p.iter_mut().zip(q).zip(gp.iter_mut().zip(gq)) {
            for l in 0..4 {
                let (a, b) = (error * q[l] - l2 * p[l], error * p[l] - l2 * q[l]);
                let (a, b) = (adapt(rate, p[l], a, &mut gp[l]), adapt(rate, q[l], b, &mut gq[l]));
                p[l] = if a < floor { floor } else { a };
                q[l] = if b < floor { floor } else { b };
            }
        }
    }
    squares
}
