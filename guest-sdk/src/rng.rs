//! Random numbers inside the guest.
//!
//! A call to the host per number would cost more than the number. [`Rng::from_host`] takes four words of the worker's
//! seeded stream and goes on with xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
//! ACM TOMS 2021). Make one at the start of each step: then a cut needs the host stream's position and nothing of the
//! guest, and a restored job draws the same numbers.

use crate::sys;

/// xoshiro256++.
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
    /// The second deviate of the last Box–Muller pair.
    spare: Option<f64>,
}

impl Rng {
    /// Seeded by the worker's stream, which moves on by four words.
    pub fn from_host() -> Self {
        let mut s = [0; 4];
        sys::random(&mut s);
        Self::from_state(s)
    }

    /// Seeded by a number, through SplitMix64; for streams that have to depend on a key of your own.
    pub fn from_seed(mut seed: u64) -> Self {
        let s = std::array::from_fn(|_| {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self::from_state(s)
    }

    fn from_state(s: [u64; 4]) -> Self {
        // The all-zero state is the one that the generator never leaves.
        let s = if s == [0; 4] { [1, 0, 0, 0] } else { s };
        Self { s, spare: None }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniform on [0, 1), 53 bits.
    #[inline]
    pub fn f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on [0, 1), 24 bits.
    #[inline]
    pub fn f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 * (1.0 / (1u32 << 24) as f32)
    }

    /// Uniform on 0..n without bias (Lemire, "Fast random integer generation in an interval", 2019); 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        let mut m = u64::from(self.next_u32()) * u64::from(n);
        if (m as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (m as u32) < threshold {
                m = u64::from(self.next_u32()) * u64::from(n);
            }
        }
        (m >> 32) as u32
    }

    /// A standard normal deviate (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(z) = self.spare.take() {
            return z;
        }
        let radius = (-2.0 * (1.0 - self.f64()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.f64()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Shuffles (Fisher and Yates). Slices longer than 2^32 are shuffled in their first 2^32 places.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len().min(u32::MAX as usize)).rev() {
            values.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_the_authors_reference() {
        // First outputs of the published C code from the state {1, 2, 3, 4}.
        let mut r = Rng::from_state([1, 2, 3, 4]);
        let got: Vec<u64> = (0..4).map(|_| r.next_u64()).collect();
        assert_eq!(got, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn moments_of_uniform_and_normal_deviates_hold() {
        let mut r = Rng::from_seed(7);
        let n = 100_000;
        let (mut u, mut z, mut zz) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            u += r.f64();
            let x = r.normal();
            z += x;
            zz += x * x;
        }
        let n = f64::from(n);
        // Standard errors: 0.0009, 0.0032, 0.0045.
        assert!((u / n - 0.5).abs() < 0.005 && (z / n).abs() < 0.015 && (zz / n - 1.0).abs() < 0.02);
    }

    #[test]
    fn below_covers_its_range_evenly_and_takes_zero() {
        let mut r = Rng::from_seed(3);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[r.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert_eq!(r.below(0), 0);
        assert_eq!(r.below(1), 0);
    }

    #[test]
    fn shuffling_keeps_every_value() {
        let mut v: Vec<u32> = (0..100).collect();
        Rng::from_seed(1).shuffle(&mut v);
        assert_ne!(v, (0..100).collect::<Vec<_>>());
        v.sort_unstable();
        assert_eq!(v, (0..100).collect::<Vec<_>>());
    }
}
