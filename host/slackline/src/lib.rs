//! The parts of the `slackline` binary, as a library so that benches and tests can wire the same engine.
//!
//! [`config`] turns what was typed into a [`job::Job`]; the [`engine`] runs a job and tells [`events`]; [`sinks`], the
//! [`report`] and [`export`] turn those into what people and programs read. Each command is a file under [`commands`],
//! and whatever goes wrong in one ends as a [`failure::Failure`]. A run can be
//! asked things over a socket ([`live`]), also to swap its plugin for one of the [`candidates`].

pub mod atomic;
pub mod candidates;
pub mod cli;
pub mod commands;
pub mod config;
pub mod engine;
pub mod events;
pub mod export;
pub mod failure;
pub mod interrupt;
pub mod job;
pub mod live;
pub mod memory;
pub mod report;
pub mod serve;
pub mod session;
pub mod sinks;
pub mod toolchain;
pub mod train;
