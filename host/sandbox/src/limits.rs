//! What one instance may use: the numbers, and the ledger that holds an instance to them.
//!
//! The ledger sums everything that a guest makes the host keep for it: linear memories, tables of references, buffers
//! in host memory and partition-local state. wasmtime asks it before a memory or table grows; the host interfaces ask it
//! before they allocate.

use slackline_core::{HostError, Limit};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// Bytes that a reference in a wasm table costs the host.
const TABLE_ELEMENT_BYTES: u64 = 16;

/// What one instance may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of guest memory, tables, host buffers and local state together.
    pub memory: u64,
    /// Bytes that one host call may move in either direction; never more than `memory`.
    pub call_bytes: u64,
    /// Live handles (buffers, tables, batches).
    pub handles: usize,
    /// Names of partition-local state that one instance may open.
    pub local_names: usize,
    /// Bytes of one log line.
    pub log_line_bytes: usize,
    /// Log lines of one call into the plugin.
    pub log_lines: u32,
    /// Log bytes of one call into the plugin.
    pub log_bytes: usize,
    /// Bytes of what `save` gives.
    pub saved_bytes: usize,
    /// How long a call into the plugin may run, waiting inside host calls not counted.
    pub step_deadline: Duration,
    /// How long a cancelled call may go on before epoch checks interrupt it.
    pub cancel_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            call_bytes: 256 << 20,
            handles: 4096,
            local_names: 1024,
            log_line_bytes: 4096,
            log_lines: 256,
            log_bytes: 64 << 10,
            saved_bytes: 16 << 20,
            step_deadline: Duration::from_secs(600),
            cancel_grace: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// For a throwaway instance that only describes and plans.
    pub(crate) fn throwaway(&self) -> Self {
        Self {
            memory: self.memory.min(64 << 20),
            call_bytes: 4 << 20,
            handles: 64,
            step_deadline: self.step_deadline.min(Duration::from_secs(10)),
            ..self.clone()
        }
    }

    /// The bound on one host call.
    pub(crate) fn per_call(&self) -> u64 {
        self.call_bytes.min(self.memory)
    }
}

/// A number of bytes, for people.
pub(crate) struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b >= 1 << 30 => write!(f, "{:.1} GiB", b as f64 / f64::from(1 << 30)),
            b if b >= 1 << 20 => write!(f, "{:.1} MiB", b as f64 / f64::from(1 << 20)),
            b if b >= 1 << 10 => write!(f, "{:.1} KiB", b as f64 / f64::from(1 << 10)),
            b => write!(f, "{b} bytes"),
        }
    }
}

/// Bytes of host memory that a guest holds by handle; given back when the last handle to them goes.
#[derive(Debug)]
pub(crate) struct Charge {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What one instance has.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: u64,
    memories: u64,
    tables: u64,
    /// Shared with the charges, which may outlive a borrow of the ledger.
    buffers: Arc<AtomicU64>,
    local: u64,
    /// The last growth granted, so that it can be taken back when the system then fails it.
    granted: (u64, u64),
    /// The first refusal since it was last cleared: what a trap that follows is probably about.
    refused: Option<u64>,
}

impl Ledger {
    pub(crate) fn new(limit: u64, local: u64) -> Self {
        let buffers = Arc::new(AtomicU64::new(0));
        Self { limit, memories: 0, tables: 0, buffers, local, granted: (0, 0), refused: None }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Everything in use.
    pub(crate) fn in_use(&self) -> u64 {
        self.memories + self.tables + self.local + self.buffers.load(Ordering::Relaxed)
    }

    /// Linear memory, tables and buffers: what goes when the instance goes.
    pub(crate) fn instance_bytes(&self) -> u64 {
        self.in_use() - self.local
    }

    /// Takes the total that was asked for when memory was refused, if it was.
    pub(crate) fn take_refused(&mut self) -> Option<u64> {
        self.refused.take()
    }

    fn admit(&mut self, more: u64) -> bool {
        match self.in_use().checked_add(more) {
            Some(total) if total <= self.limit => true,
            total => {
                self.refused.get_or_insert(total.unwrap_or(u64::MAX));
                false
            }
        }
    }

    /// Charges for a buffer of `bytes`.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<Arc<Charge>, HostError> {
        if !self.admit(bytes) {
            return Err(HostError::Limit(Limit::Memory));
        }
        self.buffers.fetch_add(bytes, Ordering::Relaxed);
        Ok(Arc::new(Charge { held: self.buffers.clone(), bytes }))
    }

    /// Whether local state may grow by `more` bytes.
    pub(crate) fn may_grow_local(&mut self, more: u64) -> Result<(), HostError> {
        if self.admit(more) { Ok(()) } else { Err(HostError::Limit(Limit::Memory)) }
    }

    /// What local state holds now.
    pub(crate) fn set_local(&mut self, bytes: u64) {
        self.local = bytes;
    }
}

impl ResourceLimiter for Ledger {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let ok = self.admit(more);
        self.granted = (if ok { more } else { 0 }, 0);
        self.memories += self.granted.0;
        Ok(ok)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.memories -= std::mem::take(&mut self.granted.0);
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = (desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT_BYTES);
        let ok = self.admit(more);
        self.granted = (0, if ok { more } else { 0 });
        self.tables += self.granted.1;
        Ok(ok)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.tables -= std::mem::take(&mut self.granted.1);
        Ok(())
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_tables_buffers_and_local_state_share_one_limit() {
        let mut l = Ledger::new(1000, 100);
        assert!(l.memory_growing(0, 400, None).unwrap());
        assert!(l.table_growing(0, 10, None).unwrap());
        let held = l.charge(300).unwrap();
        assert_eq!(l.in_use(), 960);
        assert!(!l.memory_growing(400, 441, None).unwrap());
        assert_eq!(l.take_refused(), Some(1001));
        drop(held);
        assert!(l.memory_growing(400, 441, None).unwrap());
        assert_eq!(l.may_grow_local(u64::MAX), Err(HostError::Limit(Limit::Memory)));
    }

    #[test]
    fn growth_that_the_system_fails_is_given_back() {
        let mut l = Ledger::new(1000, 0);
        assert!(l.memory_growing(0, 900, None).unwrap());
        l.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        assert_eq!(l.in_use(), 0);
    }
}
