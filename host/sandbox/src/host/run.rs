//! `run`: where the worker stands, and its seeded random stream.

use super::{State, lock, refuse};
use crate::v0_1::slackline::plugin::run::Host;
use slackline_core::PluginErrorKind;
use std::sync::atomic::Ordering;

/// Words of one `random-u64`, by the contract.
const MAX_WORDS: u32 = 65_536;

impl Host for State {
    fn worker(&mut self) -> wasmtime::Result<u32> {
        Ok(self.worker.run.worker)
    }

    fn workers(&mut self) -> wasmtime::Result<u32> {
        Ok(self.worker.run.workers)
    }

    fn now(&mut self) -> wasmtime::Result<u32> {
        Ok(self.worker.run.clock.load(Ordering::Relaxed))
    }

    fn random_u64(&mut self, n: u32) -> wasmtime::Result<Vec<u64>> {
        if n > MAX_WORDS {
            let message = format!("asked for {n} random words in one call, where {MAX_WORDS} is the most");
            return refuse(PluginErrorKind::Limit, message);
        }
        let mut words = vec![0; n as usize];
        lock(&self.worker.random).fill(&mut words);
        Ok(words)
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.worker.run.cancelled.load(Ordering::Relaxed))
    }
}
