//! The collapsed Gibbs sampler: the hot loop of the plugin.
//!
//! The conditional of a token's topic, with the token itself taken out of all counts (Griffiths and Steyvers, "Finding
//! scientific topics", PNAS 2004, equation 5), is
//!
//! ```text
//! p(z = k) ∝ (n_dk + α) · (n_wk + β) / (n_k + Vβ)
//! ```
//!
//! All topics are scanned, in [`LANES`] lanes. Topic k lies in lane k mod LANES; each lane keeps the running sum of its
//! own weights, so the scan is loads, multiplications and additions side by side, without a sum across lanes. A draw
//! picks a lane by the lanes' totals, then a topic by that lane's running sums: inversion of the same distribution, with
//! the topics in another order. The document's factor (n_dk + α) / (n_k + Vβ) is kept as one array, which a token
//! changes in two places at most, so the scan itself divides nothing.
//!
//! The loops are written so that compilers make vector code of them for SSE2 and WebAssembly alike, and so that a draw
//! has no branch on what it drew: at tens of topics, mispredicted branches and chains of dependent operations cost more
//! than weighing topics that turn out to be unlikely.
//!
//! Counts are kept as f32, which holds integers exactly up to 2^24; totals as f64.

use slackline_guest::Rng;

/// Topics that the scan weighs side by side: two registers of SSE2, NEON and WebAssembly, one of AVX2.
pub const LANES: usize = 8;

/// Draws just below one: scaled by this, a positive number gets smaller by at least one step.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

/// The number of topics rounded up to whole vectors of lanes: the stride of rows of word counts.
pub fn stride(topics: usize) -> usize {
    topics.div_ceil(LANES) * LANES
}

/// A token that went from one topic to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Place of its word's row among the rows at hand.
    pub row: u32,
    /// The topic it left.
    pub from: u32,
    /// The topic it has now.
    pub to: u32,
}

/// Samples topics, document by document, against rows of word counts.
pub struct Sampler {
    topics: usize,
    alpha: f32,
    beta: f32,
    /// Vβ.
    beta_sum: f64,
    /// n_k, never below zero.
    totals: Vec<f64>,
    /// n_dk of the document at hand.
    document: Vec<f32>,
    /// (n_dk + α) / (n_k + Vβ); zero beyond the last topic, so that padding weighs nothing.
    factor: Vec<f32>,
    /// Each lane's running sums.
    running: Vec<[f32; LANES]>,
}

impl Sampler {
    /// For `topics` topics over `words` words.
    pub fn new(topics: usize, words: u64, alpha: f64, beta: f64) -> Self {
        let stride = stride(topics);
        Self {
            topics,
            alpha: alpha as f32,
            beta: beta as f32,
            beta_sum: beta * words as f64,
            totals: vec![0.0; topics],
            document: vec![0.0; topics],
            factor: vec![0.0; stride],
            running: vec![[0.0; LANES]; stride / LANES],
        }
    }

    /// Takes over the topics' totals. One below zero, as stale reads may show it, counts as zero.
    pub fn set_totals(&mut self, totals: &[i64]) {
        for (to, &from) in self.totals.iter_mut().zip(totals) {
            *to = from.max(0) as f64;
        }
    }

    /// Draws a new topic for every token of a document.
    ///
    /// `entries` are the document's words as (row, count); `assignments` has a topic a token, in the same order. `rows`
    /// has [`stride`] counts a row; they, the totals and the assignments follow every draw, and `moves` gets the tokens
    /// that changed.
    pub fn sample(
        &mut self,
        entries: &[(u32, u32)],
        assignments: &mut [u32],
        rows: &mut [f32],
        rng: &mut Rng,
        moves: &mut Vec<Move>,
    ) {
        self.open_document(assignments);
        let stride = self.factor.len();
        // Room for a move a token: writing one that is then overwritten costs less than a branch that cannot be foretold.
        let first = moves.len();
        moves.resize(first + assignments.len(), Move { row: 0, from: 0, to: 0 });
        let mut end = first;
        let mut tokens = assignments.iter_mut();
        for &(row, count) in entries {
            let at = row as usize * stride;
            let counts = &mut rows[at..at + stride];
            for assignment in tokens.by_ref().take(count as usize) {
                let from = *assignment as usize;
                // A row that was below zero shows fewer tokens than there are.
                let others = counts[from] - 1.0;
                counts[from] = if others > 0.0 { others } else { 0.0 };
                self.shift(from, -1.0);
                let to = self.draw(counts, uniform(rng));
                counts[to] += 1.0;
                self.shift(to, 1.0);
                *assignment = to as u32;
                moves[end] = Move { row, from: from as u32, to: to as u32 };
                end += usize::from(to != from);
            }
        }
        moves.truncate(end);
    }

    /// Counts a document's topics and its factor of the weights.
    fn open_document(&mut self, assignments: &[u32]) {
        self.document.fill(0.0);
        for &topic in assignments {
            self.document[topic as usize] += 1.0;
        }
        let (alpha, beta_sum) = (self.alpha, self.beta_sum);
        for ((factor, &n), &total) in self.factor.iter_mut().zip(&self.document).zip(&self.totals) {
            *factor = (n + alpha) / (total + beta_sum) as f32;
        }
    }

    /// Adds one token to a topic, or takes one out.
    #[inline(always)]
    fn shift(&mut self, topic: usize, by: f32) {
        let n = self.document[topic] + by;
        let total = self.totals[topic] + f64::from(by);
        let total = if total > 0.0 { total } else { 0.0 };
        self.document[topic] = n;
        self.totals[topic] = total;
        self.factor[topic] = (n + self.alpha) / (total + self.beta_sum) as f32;
    }

    /// The topic where the running sum of the weights passes `uniform` (in [0, 1)) of the whole.
    #[inline(always)]
    fn draw(&mut self, counts: &[f32], uniform: f32) -> usize {
        let mut sums = [0.0f32; LANES];
        let factors = self.factor.as_chunks::<LANES>().0;
        let counts = counts.as_chunks::<LANES>().0;
        for ((running, factor), count) in self.running.iter_mut().zip(factors).zip(counts) {
            for lane in 0..LANES {
                sums[lane] += (count[lane] + self.beta) * factor[lane];
            }
            *running = sums;
        }
        // From memory again: a sum across `sums` would make compilers shuffle lanes inside the loop above.
        let s = *self.running.last().unwrap_or(&[0.0; LANES]);
        let (s01, s23, s45, s67) = (s[0] + s[1], s[2] + s[3], s[4] + s[5], s[6] + s[7]);
        let s03 = s01 + s23;
        let s05 = s03 + s45;
        let starts = [0.0, s[0], s01, s01 + s[2], s03, s03 + s[4], s05, s05 + s[6]];
        let place = uniform * (s03 + (s45 + s67));
        let lane = starts[1..].iter().map(|&start| usize::from(start <= place)).sum::<usize>() % LANES;
        // The subtraction rounds: hold the place below the lane's whole, so that a topic with weight is found.
        let (place, most) = (place - starts[lane], s[lane] * BELOW_ONE);
        let place = if place < most { place } else { most };
        let group = self.running.iter().map(|running| usize::from(running[lane] <= place)).sum::<usize>();
        (group * LANES + lane).min(self.topics - 1)
    }
}

/// Uniform on [0, 1), 24 bits; through i32, whose conversion is one instruction everywhere.
#[inline(always)]
fn uniform(rng: &mut Rng) -> f32 {
    (rng.next_u32() >> 8) as i32 as f32 * (1.0 / (1u32 << 24) as f32)
}
