//! What a table is: its rows' type and shape, and how rows begin.

use crate::random::{mix, unit};
use crate::values::{DType, Element, Values};
use serde::{Deserialize, Serialize};

/// How a row holds its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Every row holds `width` values.
    Dense,
    /// A row holds a value for some of `width` possible columns; the others are zero.
    Sparse,
}

/// How rows begin. Values depend on (seed, table, row, column) alone, never on who touches a row first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Init {
    /// All zeros.
    #[default]
    Zero,
    /// All the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Independent and uniform on [low, high).
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Independent normal deviates.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
}

/// A table of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its name, unique within the job.
    pub name: String,
    /// Type of its values: f32, f64, i32 or i64.
    pub dtype: DType,
    /// Dense or sparse rows.
    #[serde(default = "dense")]
    pub layout: Layout,
    /// Number of rows; row ids are 0..rows.
    pub rows: u64,
    /// Values in a row (dense), or columns that a row may have (sparse).
    pub width: u32,
    /// How rows begin; sparse rows always begin empty.
    #[serde(default)]
    pub init: Init,
}

fn dense() -> Layout {
    Layout::Dense
}

impl TableSpec {
    /// Bytes of its values when every one is present; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.rows.checked_mul(u64::from(self.width))?.checked_mul(self.dtype.size() as u64)
    }

    /// The first values of rows `first..first + rows`, concatenated.
    pub fn initial(&self, seed: u64, first: u64, rows: usize) -> Values {
        let n = rows * self.width as usize;
        let key = mix(seed ^ hash_name(&self.name));
        match self.dtype {
            DType::F64 => f64::wrap(fill(self.init, key, first * u64::from(self.width), n)),
            DType::I32 => i32::wrap(fill(self.init, key, first * u64::from(self.width), n)),
            DType::I64 => i64::wrap(fill(self.init, key, first * u64::from(self.width), n)),
            _ => f32::wrap(fill(self.init, key, first * u64::from(self.width), n)),
        }
    }
}

fn hash_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn fill<T: Element>(init: Init, key: u64, start: u64, n: usize) -> Vec<T> {
    let draw = |i: usize, salt: u64| unit(mix(key ^ mix(start.wrapping_add(i as u64)).wrapping_add(salt)));
    match init {
        Init::Zero => vec![T::default(); n],
        Init::Constant { value } => vec![T::from_f64(value); n],
        Init::Uniform { low, high } => (0..n).map(|i| T::from_f64(low + (high - low) * draw(i, 1))).collect(),
        Init::Normal { mean, sd } => (0..n)
            .map(|i| {
                // Box–Muller, one deviate per cell, so that a cell depends on its own index alone.
                let radius = (-2.0 * (1.0 - draw(i, 1)).ln()).sqrt();
                T::from_f64(mean + sd * radius * (std::f64::consts::TAU * draw(i, 2)).cos())
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(init: Init) -> TableSpec {
        TableSpec { name: "t".into(), dtype: DType::F64, layout: Layout::Dense, rows: 1000, width: 8, init }
    }

    #[test]
    fn a_row_begins_the_same_whoever_asks_first() {
        let s = spec(Init::Normal { mean: 1.0, sd: 2.0 });
        let Values::F64(all) = s.initial(7, 0, 1000) else { panic!() };
        let Values::F64(some) = s.initial(7, 500, 3) else { panic!() };
        assert_eq!(&all[500 * 8..503 * 8], &some[..]);
        assert_ne!(s.initial(8, 500, 3), Values::F64(some));
    }

    #[test]
    fn moments_agree_with_the_declared_distribution() {
        let Values::F64(v) = spec(Init::Normal { mean: 1.0, sd: 2.0 }).initial(3, 0, 1000) else { panic!() };
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        let var = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64;
        // 8000 draws: the mean's standard error is 0.022, the variance's 0.063.
        assert!((mean - 1.0).abs() < 0.1 && (var - 4.0).abs() < 0.3, "{mean} {var}");
        let Values::F64(u) = spec(Init::Uniform { low: -1.0, high: 3.0 }).initial(3, 0, 1000) else { panic!() };
        assert!(u.iter().all(|x| (-1.0..3.0).contains(x)));
    }
}
