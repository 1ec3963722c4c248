//! What the tests of the kernels share: numbers from a seed, and values of either type as f64.
#![allow(dead_code)]

use slackline_core::{Element, HostError};
use slackline_kernels::NativeKernels;

/// Kernels on `threads` threads.
pub fn kernels(threads: usize) -> NativeKernels {
    NativeKernels::new(threads).unwrap()
}

/// A stream of numbers (splitmix64): shapes come from proptest, which shrinks them; values need no shrinking.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between −2 and 2.
    pub fn value(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 51) as f64 - 2.0
    }

    pub fn values<T: Element>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::from_f64(self.value())).collect()
    }

    /// Below `bound`, which is not 0 unless `n` is.
    pub fn indices(&mut self, n: usize, bound: usize) -> Vec<u32> {
        (0..n).map(|_| (self.next() % bound as u64) as u32).collect()
    }

    /// Offsets of `rows` rows of up to `most` entries.
    pub fn offsets(&mut self, rows: usize, most: usize) -> Vec<u32> {
        let mut at = 0;
        let mut offsets = vec![0];
        for _ in 0..rows {
            at += (self.next() % (most as u64 + 1)) as u32;
            offsets.push(at);
        }
        offsets
    }
}

pub fn f64s<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// Σ x by Neumaier's compensated sum: a plain f64 loop over tens of thousands of terms errs more than the kernels do.
pub fn sum(x: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0f64, 0.0);
    for x in x {
        let next = total + x;
        lost += if total.abs() >= x.abs() { (total - next) + x } else { (x - next) + total };
        total = next;
    }
    total + lost
}

/// The rounding unit of T.
pub fn epsilon<T: Element>() -> f64 {
    if size_of::<T>() == 4 { f32::EPSILON as f64 } else { f64::EPSILON }
}

/// That `got` is within `ulps` rounding units of `want` at the given magnitudes of what was added up.
#[track_caller]
pub fn assert_close<T: Element>(got: &[T], want: &[f64], magnitude: &[f64], ulps: f64) {
    assert_eq!(got.len(), want.len());
    for (i, ((g, w), m)) in got.iter().zip(want).zip(magnitude).enumerate() {
        let bound = ulps * epsilon::<T>() * m.max(1e-30);
        assert!((g.to_f64() - w).abs() <= bound, "at {i}: {g:?} is not {w} ± {bound}");
    }
}

/// The words of a refusal.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(result: Result<T, HostError>) -> String {
    match result {
        Err(HostError::Invalid(why)) => why,
        other => panic!("not a refusal: {other:?}"),
    }
}
