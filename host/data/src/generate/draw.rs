//! Random variates from a seeded stream.

use slackline_core::RandomStream;
use slackline_core::random::unit;

pub(super) struct Draw {
    stream: RandomStream,
    spare: Option<f64>,
}

impl Draw {
    /// The stream `stream` of `seed`; different parts of a set draw from different streams, so that changing the size
    /// of one leaves the others as they were.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self { stream: RandomStream::new(seed, stream), spare: None }
    }

    /// In [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        unit(self.stream.next_u64())
    }

    /// In (0, 1).
    fn open_unit(&mut self) -> f64 {
        (self.unit() + f64::EPSILON / 2.0).min(1.0 - f64::EPSILON)
    }

    /// In [low, high).
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.stream.next_u64()) * n as u128) >> 64) as usize
    }

    /// Standard normal, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        if let Some(v) = self.spare.take() {
            return v;
        }
        let radius = (-2.0 * self.open_unit().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.unit()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Standard Gumbel: the maximum of scores with such noise is a draw from their softmax.
    pub(super) fn gumbel(&mut self) -> f64 {
        -(-self.open_unit().ln()).ln()
    }

    /// Gamma of this shape and scale 1, by Marsaglia and Tsang (2000).
    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // G(a) = G(a + 1) · U^(1/a).
            return self.gamma(shape + 1.0) * self.open_unit().powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.open_unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// A point of the simplex. Where every gamma underflows, a corner.
    pub(super) fn dirichlet(&mut self, shapes: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut v: Vec<f64> = shapes.map(|a| self.gamma(a)).collect();
        let sum: f64 = v.iter().sum();
        if sum > 0.0 {
            v.iter_mut().for_each(|x| *x /= sum);
        } else {
            let corner = self.below(v.len());
            v[corner] = 1.0;
        }
        v
    }

    /// Poisson, by counting exponential waits.
    pub(super) fn poisson(&mut self, mean: f64) -> u64 {
        let (mut waited, mut n) = (0.0, 0);
        loop {
            waited -= self.open_unit().ln();
            if waited > mean {
                return n;
            }
            n += 1;
        }
    }

    /// A place drawn by weight, given the weights' running sums.
    pub(super) fn place(&mut self, sums: &[f64]) -> usize {
        let total = sums.last().copied().unwrap_or(0.0);
        let at = self.unit() * total;
        sums.partition_point(|s| *s <= at).min(sums.len().saturating_sub(1))
    }

    /// `k` distinct places below `n`, ascending, by Floyd's method.
    pub(super) fn distinct(&mut self, n: usize, k: usize) -> Vec<usize> {
        let mut chosen = std::collections::BTreeSet::new();
        for top in n - k..n {
            let v = self.below(top + 1);
            if !chosen.insert(v) {
                chosen.insert(top);
            }
        }
        chosen.into_iter().collect()
    }

    /// A random order of 0..n.
    pub(super) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// Running sums.
pub(super) fn sums(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    weights
        .scan(0.0, |sum, w| {
            *sum += w;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of 200,000 draws; both within five standard errors of a variate with these.
    fn check(name: &str, mean: f64, variance: f64, mut draw: impl FnMut(&mut Draw) -> f64) {
        const N: usize = 200_000;
        let mut d = Draw::new(7, 0);
        let v: Vec<f64> = (0..N).map(|_| draw(&mut d)).collect();
        let m = v.iter().sum::<f64>() / N as f64;
        let s = v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / N as f64;
        let error = (variance / N as f64).sqrt();
        assert!((m - mean).abs() < 5.0 * error, "{name}: mean {m}, not {mean}");
        assert!((s / variance - 1.0).abs() < 0.05, "{name}: variance {s}, not {variance}");
    }

    #[test]
    fn variates_have_their_mean_and_variance() {
        check("normal", 0.0, 1.0, Draw::normal);
        check("gumbel", 0.577_215_664_9, std::f64::consts::PI.powi(2) / 6.0, Draw::gumbel);
        check("gamma 0.1", 0.1, 0.1, |d| d.gamma(0.1));
        check("gamma 3", 3.0, 3.0, |d| d.gamma(3.0));
        check("poisson 20", 20.0, 20.0, |d| d.poisson(20.0) as f64);
        check("below 10", 4.5, 8.25, |d| d.below(10) as f64);
        check("place", 0.75, 0.1875, |d| d.place(&[1.0, 4.0]) as f64);
    }

    #[test]
    fn distinct_places_are_distinct() {
        let mut d = Draw::new(1, 1);
        for (n, k) in [(10, 10), (100, 3), (5, 0)] {
            let v = d.distinct(n, k);
            assert_eq!(v.len(), k);
            assert!(v.windows(2).all(|w| w[0] < w[1]) && v.iter().all(|x| *x < n));
        }
    }
}
