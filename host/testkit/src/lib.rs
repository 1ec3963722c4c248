//! A cluster in one thread: the state machines of servers and clients under random schedules, with a network that is
//! late, disorderly and repeats itself, and a judge who knows what every clause of the consistency contract asks for.
//!
//! A [`Plan`] follows from a seed; [`run`] plays it; what it returns names the clauses that did not hold. A [`Mutant`]
//! is a fault put in at the border of a state machine: each clause has one, to show that its check can fail.
//!
//! Nothing here sleeps or asks for the time: a failing seed replays exactly.

mod checker;
mod dice;
mod eager;
mod ledger;
mod mutant;
mod network;
mod plan;
mod port;
mod sim;
mod worker;

pub use checker::{Clause, Violation};
pub use dice::Dice;
pub use ledger::Ledger;
pub use mutant::Mutant;
pub use plan::{Op, Plan, Reading, Weather};
pub use sim::{Outcome, Restart, Tally, run};
