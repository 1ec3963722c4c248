//! Seeded randomness whose whole state is a position, so that a cut can hold it.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A worker's stream of random words: ChaCha8 keyed by (seed, stream), with a position that can be saved and restored.
#[derive(Clone, Debug)]
pub struct RandomStream {
    rng: ChaCha8Rng,
}

impl RandomStream {
    /// The stream `stream` of `seed`, at its beginning.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self { rng }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Fills `out`.
    pub fn fill(&mut self, out: &mut [u64]) {
        for v in out {
            *v = self.rng.next_u64();
        }
    }

    /// 32-bit words taken so far.
    pub fn position(&self) -> u128 {
        self.rng.get_word_pos()
    }

    /// Goes to a position that [`RandomStream::position`] gave.
    pub fn seek(&mut self, position: u128) {
        self.rng.set_word_pos(position);
    }
}

/// A bijection of u64 that scatters its bits (the finaliser of SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A double in [0, 1) from the upper 53 bits.
#[inline]
pub fn unit(x: u64) -> f64 {
    (x >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeking_to_a_saved_position_repeats_the_stream() {
        let mut a = RandomStream::new(1, 2);
        a.fill(&mut [0; 37]);
        let at = a.position();
        let next = a.next_u64();
        let mut b = RandomStream::new(1, 2);
        b.seek(at);
        assert_eq!(b.next_u64(), next);
        assert_ne!(RandomStream::new(1, 3).next_u64(), RandomStream::new(1, 2).next_u64());
    }
}
