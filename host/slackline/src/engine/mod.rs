//! The embedded engine: every role of a job in this process, driven by threads.
//!
//! The machines are in `server` and `client`; here are the threads that feed them. A thread per worker runs its instance;
//! the worker that ticks applies its own updates at the shards ([`shards`]); clocks and metrics come together on the
//! [`board`]; one thread writes cuts ([`cuts`]); the caller's thread passes news on to the sink ([`mod@run`]).
//!
//! A run can be asked things while it runs ([`asks`]), above all to swap its version ([`swap`]): a candidate must [`fit`],
//! pass a [`rehearsal`], and wait its [`turns`]; what ran from which clock on is in [`versions`].

pub mod asks;
pub mod board;
pub mod cuts;
pub mod error;
pub mod fit;
pub mod rehearsal;
pub mod resume;
pub mod run;
#[cfg(test)]
mod schedules;
pub mod shards;
mod summary;
pub mod swap;
pub mod telemetry;
pub mod turns;
pub mod versions;
pub mod views;
pub mod worker;

pub use error::RunError;
pub use run::{RunInput, run};
