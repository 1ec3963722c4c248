//! Ratings of a low-rank model with biases, on distinct (user, item) pairs whose items follow a Zipf law.

use super::draw::{Draw, sums};
use super::{Folder, Generated, Parts, held_back, require};
use crate::error::DataError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;

/// `rating = clip(round₀.₅(3.5 + b_u + b_i + ⟨p_u, q_i⟩ + noise), 0.5, 5)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ratings {
    /// Users.
    pub users: usize,
    /// Items.
    pub items: usize,
    /// Ratings, all of distinct pairs.
    pub ratings: usize,
    /// Rank of the model.
    pub rank: usize,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Standard deviation of ⟨p, q⟩.
    pub scale: f64,
    /// Exponent of the items' popularity.
    pub zipf: f64,
    /// The last of every so many rows is a test row; 0: none is.
    pub test_every: u64,
    /// The seed.
    pub seed: u64,
}

impl Default for Ratings {
    fn default() -> Self {
        Self {
            users: 2000,
            items: 1000,
            ratings: 100_000,
            rank: 8,
            noise: 0.5,
            scale: 0.5,
            zipf: 1.0,
            test_every: 5,
            seed: 1,
        }
    }
}

impl Ratings {
    /// Writes `train.csv`, `test.csv` (user, item, rating, timestamp), the factors and `truth.json` into `folder`.
    pub fn write(&self, folder: &Path) -> Result<Generated, DataError> {
        require(&[
            (self.users > 0 && self.items > 0 && self.rank > 0, "users, items and rank are from 1 up"),
            (self.ratings > 0, "ratings is from 1 up"),
            (
                self.users.checked_mul(self.items).is_some_and(|pairs| self.ratings <= pairs / 4),
                "at most a quarter of all pairs can be rated (they are drawn until they are distinct)",
            ),
            (self.noise >= 0.0 && self.scale >= 0.0 && self.zipf >= 0.0, "noise, scale and zipf are not negative"),
        ])?;
        let mut d = Draw::new(self.seed, 0);
        let order = d.order(self.items);
        let popularity = sums(order.iter().map(|r| ((*r + 1) as f64).powf(-self.zipf)));
        let activity = sums((0..self.users).map(|_| d.normal().exp()));
        let mut d = Draw::new(self.seed, 1);
        let rank = self.rank as f64;
        let mut normals = |n: usize, sd: f64| (0..n).map(|_| d.normal() * sd).collect::<Vec<f64>>();
        let p = normals(self.users * self.rank, self.scale * rank.powf(-0.25));
        let q = normals(self.items * self.rank, rank.powf(-0.25));
        let (bu, bi) = (normals(self.users, 0.3), normals(self.items, 0.4));

        let mut folder = Folder::create(folder)?;
        let mut parts = Parts::create(&mut folder, self.test_every, "csv")?;
        let header = format_args!("user,item,rating,timestamp");
        parts.train.line(header)?;
        if let Some(test) = &mut parts.test {
            test.line(header)?;
        }
        let (mut pairs, mut noise) = (Draw::new(self.seed, 2), Draw::new(self.seed, 3));
        let mut seen = HashSet::with_capacity(self.ratings);
        let mut row = 0;
        let (mut oracle, mut tests) = (0.0, 0u64);
        while row < self.ratings as u64 {
            // A heavy user may have rated all that is popular: every tenth try is uniform, so that this ends.
            let uniform = pairs.below(10) == 0;
            let (u, i) = match uniform {
                true => (pairs.below(self.users), pairs.below(self.items)),
                false => (pairs.place(&activity), pairs.place(&popularity)),
            };
            if !seen.insert((u, i)) {
                continue;
            }
            let (pu, qi) = (&p[u * self.rank..][..self.rank], &q[i * self.rank..][..self.rank]);
            let raw = 3.5 + bu[u] + bi[i] + pu.iter().zip(qi).map(|(a, b)| a * b).sum::<f64>();
            let rating = ((raw + self.noise * noise.normal()) * 2.0).round().clamp(1.0, 10.0) / 2.0;
            let (out, _) = parts.of(row);
            out.line(format_args!("{u},{i},{rating:.1},{}", 1_000_000_000 + row))?;
            if held_back(row, self.test_every) {
                oracle += (raw.clamp(0.5, 5.0) - rating).powi(2);
                tests += 1;
            }
            row += 1;
        }
        parts.close()?;
        folder.matrix("truth.users.npy", self.rank, &p)?;
        folder.matrix("truth.items.npy", self.rank, &q)?;
        folder.finish(json!({
            "kind": "ratings",
            "options": self,
            "train": row - tests,
            "test": tests,
            "oracle_test_rmse": (tests > 0).then(|| (oracle / tests as f64).sqrt()),
        }))
    }
}
