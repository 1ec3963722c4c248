//! Seeded choices: everything random in a schedule comes from here, so that a seed is the whole schedule.

use slackline_core::random::{mix, unit};

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The stream `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.bits() % (high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// One of `choices`, which are not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.bits() % choices.len() as u64) as usize]
    }

    /// A float in [-1, 1).
    pub fn float(&mut self) -> f32 {
        (2.0 * unit(self.bits()) - 1.0) as f32
    }
}
