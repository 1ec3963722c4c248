//! Runs plugins: WebAssembly components that may compute and reach what the contract grants, and nothing else.
//!
//! This is the only crate that knows wasmtime. It gives the driver the ports `Plugin` and `Program` of `slackline-core`
//! and sees workers, tables and telemetry only through that crate's other ports. [`Engine::load`] takes bytes and gives
//! a [`Component`]; that makes an [`Instance`] for each worker.
//!
//! What holds here, whatever a plugin does (DESIGN §6): it gets no clock, file, socket or environment; its memory, tables
//! of references, host buffers and local state together stay under one limit; what it asks of the host is bounded before
//! it is allocated; and after it failed its store is gone. A plugin that will not end is ended by one of two means, see
//! [`Interrupt`]. Instances run on their caller's thread, whose stack must exceed [`GUEST_STACK`].

mod cache;
mod clock;
mod component;
mod contract;
mod engine;
mod host;
mod limits;
mod manifest;
mod program;
mod schema;
mod signature;
mod trap;
#[allow(missing_docs)]
mod v0_1;
mod watchdog;

pub use clock::{Overrun, Phase, StepClock};
pub use component::{Component, Inspection};
pub use engine::{Allocation, Engine, EngineConfig, EngineError, GUEST_STACK, Interrupt};
pub use host::Stats;
pub use limits::Limits;
pub use program::Instance;
pub use watchdog::{OnOverrun, Watchdog};
