//! Faults put in at the borders of the state machines, one for each clause, to show that the checks can fail.

use crate::checker::Clause;
use slackline_core::messages::{ToShard, ToWorker};
use slackline_core::{Consistency, Model, PartKey, SealedPart, ShardId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Workers hear of a min clock before the parts that make it so are applied.
    ClockBeforeData,
    /// Workers read with a bound one clock laxer.
    LaxerGate,
    /// Shards say that they have more of the reader's own updates than they have.
    WatermarkAhead,
    /// Parts apply in the order in which they arrive.
    ArrivalOrder,
    /// Pushes leave a changed row out.
    RowLeftOut,
    /// Workers of an async job wait for one another.
    AsyncWaits,
    /// A part that is sent again is applied again.
    RepeatsApplied,
    /// Cuts are taken while newer parts apply.
    CutWithoutHolding,
    /// Shards under BSP apply parts as they come.
    AppliedAtOnce,
}

impl Mutant {
    /// The clause that it breaks.
    pub fn breaks(self) -> Clause {
        match self {
            Mutant::ClockBeforeData => Clause::C1,
            Mutant::LaxerGate => Clause::C2,
            Mutant::WatermarkAhead => Clause::C3,
            Mutant::ArrivalOrder => Clause::C4,
            Mutant::RowLeftOut => Clause::C5,
            Mutant::AsyncWaits => Clause::C7,
            Mutant::RepeatsApplied => Clause::C10,
            Mutant::CutWithoutHolding => Clause::C11,
            Mutant::AppliedAtOnce => Clause::C13,
        }
    }

    /// The model that workers go by.
    pub fn of_workers(this: Option<Self>, true_one: Consistency) -> Consistency {
        match (this, true_one.model) {
            (Some(Mutant::LaxerGate), Model::Bsp) => Consistency { model: Model::Essp, staleness: 1 },
            (Some(Mutant::LaxerGate), _) => Consistency { staleness: true_one.staleness + 1, ..true_one },
            (Some(Mutant::AsyncWaits), _) => Consistency { model: Model::Ssp, staleness: 0 },
            _ => true_one,
        }
    }

    /// The model that shards go by.
    pub fn of_shards(this: Option<Self>, true_one: Consistency) -> Consistency {
        match this {
            Some(Mutant::AppliedAtOnce) => Consistency { model: Model::Essp, staleness: 0 },
            _ => true_one,
        }
    }

    /// What [`Mutant::WatermarkAhead`] makes of a watermark.
    pub fn watermark(this: Option<Self>, key: PartKey) -> PartKey {
        match this {
            Some(Mutant::WatermarkAhead) => PartKey::start_of(key.clock + 1),
            _ => key,
        }
    }

    /// What becomes of a message on its way out of a shard.
    pub fn outgoing(this: Option<Self>, message: &mut ToWorker) {
        match (this, message) {
            (Some(Mutant::WatermarkAhead), ToWorker::Rows(at)) => at.included = Self::watermark(this, at.included),
            (Some(Mutant::RowLeftOut), ToWorker::Push { changed, .. }) => drop(changed.pop()),
            _ => {}
        }
    }
}

/// The door of the shards: where parts come in, and where faults of order and dedup sit.
pub struct Door {
    mutant: Option<Mutant>,
    next: BTreeMap<(WorkerId, ShardId), PartKey>,
    seen: BTreeSet<(WorkerId, ShardId, PartKey)>,
}

impl Door {
    /// With the faults of `mutant`.
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self { mutant, next: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// What the shard gets to see of a message, if anything.
    pub fn enter(&mut self, from: WorkerId, at: ShardId, message: ToShard) -> Option<ToShard> {
        let ToShard::Part(part) = message else { return Some(message) };
        let part = match self.mutant {
            Some(Mutant::ArrivalOrder) => {
                let new = self.seen.insert((from, at, part.key));
                new.then(|| self.renumbered(at, part))?
            }
            Some(Mutant::RepeatsApplied) => {
                let new = self.seen.insert((from, at, part.key));
                // A repeat must not end a clock again, or clocks would run away and hide what is tested.
                let last = part.last && new;
                self.renumbered(at, SealedPart { last, ..part })
            }
            _ => part,
        };
        Some(ToShard::Part(part))
    }

    fn renumbered(&mut self, at: ShardId, part: SealedPart) -> SealedPart {
        let next = self.next.entry((part.worker, at)).or_default();
        let key = std::mem::replace(next, next.after(part.last));
        SealedPart { key, ..part }
    }
}
