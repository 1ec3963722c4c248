//! Documents against fixed topics: proportions by a fixed-point iteration, and the perplexity of document completion.
//!
//! With φ_kw = (n_wk + β) / (n_k + Vβ) held, the proportions of a document start uniform and take [`STEPS`] steps of
//!
//! ```text
//! θ_k ← (α + Σ_w n_w · φ_kw θ_k / Σ_j φ_jw θ_j) / (Kα + Σ_w n_w)
//! ```
//!
//! For the perplexity, a document's tokens lie in ascending order of their words; those in even places are observed, and
//! those in odd places are scored by Σ ln Σ_k θ_k φ_kw.

/// Steps of the fixed point.
pub const STEPS: usize = 100;

/// f64 values summed side by side.
const LANES: usize = 4;

/// The topics of a model, and the documents that are held against them.
pub struct FoldIn {
    topics: usize,
    alpha: f64,
    beta: f64,
    /// 1 / (n_k + Vβ).
    scale: Vec<f64>,
    /// θ.
    theta: Vec<f64>,
    /// φ of the document's words, a row of topics a word; rows are padded with zeros to whole lanes.
    phi: Vec<f64>,
    /// Σ_w n_w φ_kw / Σ_j φ_jw θ_j.
    gathered: Vec<f64>,
}

impl FoldIn {
    /// For topics with these totals over a vocabulary of `words`. A total below zero, as stale reads may show it, counts
    /// as zero.
    pub fn new(totals: &[i64], words: u64, alpha: f64, beta: f64) -> Self {
        let scale = totals.iter().map(|&n| 1.0 / (n.max(0) as f64 + beta * words as f64)).collect();
        let padded = totals.len().next_multiple_of(LANES);
        let (theta, gathered) = (vec![0.0; padded], vec![0.0; padded]);
        Self { topics: totals.len(), alpha, beta, scale, theta, phi: Vec::new(), gathered }
    }

    /// The proportions of the topics in a document. `entries` are (row, count), `rows` has the words' topic counts.
    pub fn proportions(&mut self, entries: &[(u32, u32)], rows: &[i32]) -> &[f64] {
        let padded = self.theta.len();
        self.phi.clear();
        self.phi.resize(entries.len() * padded, 0.0);
        for (phi, &(row, _)) in self.phi.chunks_exact_mut(padded).zip(entries) {
            let counts = &rows[row as usize * self.topics..][..self.topics];
            for ((phi, &n), scale) in phi.iter_mut().zip(counts).zip(&self.scale) {
                *phi = (f64::from(n.max(0)) + self.beta) * scale;
            }
        }
        let tokens: f64 = entries.iter().map(|&(_, count)| f64::from(count)).sum();
        let normal = 1.0 / (self.alpha * self.topics as f64 + tokens);
        self.theta.fill(0.0);
        self.theta[..self.topics].fill(1.0 / self.topics as f64);
        for _ in 0..STEPS {
            self.gathered.fill(0.0);
            for (phi, &(_, count)) in self.phi.chunks_exact(padded).zip(entries) {
                let part = f64::from(count) / dot(phi, &self.theta);
                for (g, p) in self.gathered.iter_mut().zip(phi) {
                    *g += part * p;
                }
            }
            for (theta, gathered) in self.theta[..self.topics].iter_mut().zip(&self.gathered) {
                *theta = (self.alpha + *theta * gathered) * normal;
            }
        }
        &self.theta[..self.topics]
    }

    /// The log-likelihood of a document's scored tokens and their number. `entries` are (row, count) in ascending order
    /// of words; documents of fewer than two tokens have nothing to score.
    pub fn complete(&mut self, entries: &[(u32, u32)], rows: &[i32]) -> (f64, u64) {
        let mut observed = Vec::with_capacity(entries.len());
        let mut scored = Vec::with_capacity(entries.len());
        let mut place = 0u64;
        for &(row, count) in entries {
            // Of the places place..place + count, those that are even.
            let end = place + u64::from(count);
            let even = (end.div_ceil(2) - place.div_ceil(2)) as u32;
            observed.push((row, even));
            scored.push((row, count - even));
            place = end;
        }
        if place < 2 {
            return (0.0, 0);
        }
        observed.retain(|&(_, n)| n > 0);
        scored.retain(|&(_, n)| n > 0);
        self.proportions(&observed, rows);
        let mut sum = 0.0;
        for &(row, count) in &scored {
            let counts = &rows[row as usize * self.topics..][..self.topics];
            let topics = counts.iter().zip(&self.scale).zip(&self.theta);
            let p: f64 = topics.map(|((&n, scale), theta)| (f64::from(n.max(0)) + self.beta) * scale * theta).sum();
            sum += f64::from(count) * p.ln();
        }
        (sum, place / 2)
    }
}

/// The inner product of two rows of whole lanes.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}
