//! Consistency models: what a reader may see, and what it must wait for (DESIGN §3, C2, C7).

use crate::ids::Clock;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A consistency model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Bulk synchronous: staleness 0, batches applied in worker order (C13).
    Bsp,
    /// Stale synchronous parallel (C2).
    Ssp,
    /// Eager SSP: changed rows are pushed as clocks advance (C5).
    Essp,
    /// No gate (C7).
    Async,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Bsp => "bsp",
            Model::Ssp => "ssp",
            Model::Essp => "essp",
            Model::Async => "async",
        })
    }
}

/// A model and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consistency {
    /// The model.
    pub model: Model,
    /// How many clocks a reader may run ahead of what it sees; 0 under BSP, unused under async.
    pub staleness: u32,
}

impl Consistency {
    /// BSP.
    pub const BSP: Self = Self { model: Model::Bsp, staleness: 0 };

    /// The min clock that a shard must have reached before a worker at clock `t` may read it.
    ///
    /// C2: a reader at `t` needs every update stamped ≤ t − s − 1, and a shard whose min clock is m has applied every
    /// update stamped ≤ m − 1 (C1), so m ≥ t − s.
    pub fn needs(self, t: Clock) -> Clock {
        match self.model {
            Model::Bsp => t,
            Model::Ssp | Model::Essp => t.saturating_sub(self.staleness),
            Model::Async => 0,
        }
    }

    /// Whether a shard applies the batches of a clock only when all have arrived, in worker order (C13).
    pub fn ordered(self) -> bool {
        self.model == Model::Bsp
    }

    /// Whether shards push changed rows to subscribers. Not under SSP, whose readers ask again when a row is too old;
    /// under async no row is ever too old, so that without pushes a cached row would stay as it was first read.
    pub fn pushes(self) -> bool {
        self.model != Model::Ssp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_follow_c2_for_every_model() {
        let c = |model, staleness| Consistency { model, staleness };
        for (consistency, t, want) in [
            (Consistency::BSP, 5, 5),
            (c(Model::Ssp, 0), 5, 5),
            (c(Model::Ssp, 3), 5, 2),
            (c(Model::Essp, 3), 2, 0),
            (c(Model::Async, 0), 1000, 0),
        ] {
            assert_eq!(consistency.needs(t), want, "{consistency:?} at {t}");
        }
    }
}
