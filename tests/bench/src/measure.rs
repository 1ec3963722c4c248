//! Competitors that take turns, so that whatever else the machine does falls on all of them.

use anyhow::Result;

/// What one competitor measured, a value a round.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// The middle value.
    pub fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Half of the distance between the quartiles, as a share of the median.
    pub fn spread(&self) -> f64 {
        (self.at(0.75) - self.at(0.25)) / 2.0 / self.median().abs().max(f64::MIN_POSITIVE)
    }

    /// These over those, round by round.
    pub fn over(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }

    /// Each value through `f`.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Samples {
        Samples(self.0.iter().map(|v| f(*v)).collect())
    }

    /// The quantile `q`, between neighbours by the line through them.
    fn at(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = q * sorted.len().saturating_sub(1) as f64;
        let below = place.floor() as usize;
        let (Some(a), Some(b)) = (sorted.get(below), sorted.get(place.ceil() as usize)) else { return f64::NAN };
        a + (b - a) * (place - below as f64)
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Runs every competitor once a round, each round beginning with another. A competitor answers `N` measurements; the
/// first round warms up and does not count.
pub fn turns<const N: usize>(
    rounds: usize,
    competitors: &mut [Box<dyn FnMut() -> Result<[f64; N]> + '_>],
) -> Result<Vec<[Samples; N]>> {
    let n = competitors.len();
    let mut all: Vec<[Samples; N]> = (0..n).map(|_| std::array::from_fn(|_| Samples::default())).collect();
    for round in 0..=rounds {
        for turn in 0..n {
            let who = (round + turn) % n;
            let measured = competitors[who]()?;
            if round > 0 {
                all[who].iter_mut().zip(measured).for_each(|(samples, v)| samples.0.push(v));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_quartiles_lie_between_neighbours() {
        let samples: Samples = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!(samples.median(), 2.5);
        assert_eq!(samples.spread(), (3.25 - 1.75) / 2.0 / 2.5);
        assert_eq!(samples.over(&samples).median(), 1.0);
    }

    #[test]
    fn everyone_has_a_turn_in_every_round_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut all: Vec<Box<dyn FnMut() -> Result<[f64; 1]> + '_>> = Vec::new();
        for who in 0..2 {
            let order = &order;
            all.push(Box::new(move || {
                order.borrow_mut().push(who);
                Ok([order.borrow().len() as f64])
            }));
        }
        let samples = turns(2, &mut all).unwrap();
        assert_eq!(*order.borrow(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(samples[0][0].0, [4.0, 5.0]);
        assert_eq!(samples[1][0].0, [3.0, 6.0]);
    }
}
