//! What a guest can reach: the state behind one instance, and one file for each interface of the contract.
//!
//! Every number and name from the guest is checked here before anything is allocated or passed on. A mistake that the
//! contract gives an answer for goes back to the guest as a [`HostError`]; one that it has no answer for ends the call.

mod buffers;
mod input;
mod kernels;
mod local_state;
mod nothing;
mod output;
mod run;
mod tables;
mod telemetry;

pub use buffers::HeldBuffer;
pub use input::BatchView;
pub(crate) use nothing::throwaway_worker;
pub use tables::OpenTable;
pub(crate) use tables::link_dense_reads;

use crate::clock::{Phase, StepClock};
use crate::limits::{Ledger, Limits};
use crate::v0_1::slackline::plugin::types;
use slackline_core::ports::WorkerHost;
use slackline_core::{Buffer, DType, HostError, Limit, Manifest, PluginErrorKind};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime::component::{Resource, ResourceTable, ResourceTableError};

/// How a host function fails.
pub enum Fault {
    /// The guest is told.
    Guest(HostError),
    /// The call ends.
    Trap(wasmtime::Error),
}

impl From<HostError> for Fault {
    fn from(e: HostError) -> Self {
        Fault::Guest(e)
    }
}

impl From<wasmtime::Error> for Fault {
    fn from(e: wasmtime::Error) -> Self {
        Fault::Trap(e)
    }
}

impl From<ResourceTableError> for Fault {
    fn from(e: ResourceTableError) -> Self {
        match e {
            ResourceTableError::Full => Fault::Guest(HostError::Limit(Limit::Handles)),
            e => Fault::Trap(e.into()),
        }
    }
}

/// Ends a call with a message of the host's own, where the contract gives the guest no answer.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub kind: PluginErrorKind,
    pub message: String,
}

pub(crate) fn refuse<T>(kind: PluginErrorKind, message: String) -> wasmtime::Result<T> {
    Err(wasmtime::Error::new(Refusal { kind, message }))
}

/// Time and traffic of an instance's host calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bulk calls: rows read and added to, and kernels.
    pub calls: u64,
    /// Nanoseconds inside them, waiting at the gate included.
    pub nanos: u64,
    /// Bytes of rows that came in.
    pub bytes_read: u64,
    /// Bytes of deltas that went out.
    pub bytes_added: u64,
}

/// The state behind one instance.
pub(crate) struct State {
    pub plugin: Arc<str>,
    /// Absent only while the plugin is asked to describe itself.
    pub manifest: Option<Arc<Manifest>>,
    pub worker: WorkerHost,
    pub limits: Limits,
    pub ledger: Ledger,
    pub resources: ResourceTable,
    pub clock: Arc<StepClock>,
    pub phase: Phase,
    pub stats: Stats,
    pub scratch: tables::Scratch,
    pub log: telemetry::LogGate,
    /// Names of local state that this instance has opened.
    pub local_names: BTreeSet<String>,
    /// Rows of the batch at hand.
    pub batch_rows: usize,
    /// What `predict` has put, and what its bytes are charged to.
    pub outputs: Vec<(String, HeldBuffer)>,
    /// Why the epoch callback ended the call.
    pub interrupted: Option<PluginErrorKind>,
}

impl State {
    pub fn new(
        plugin: Arc<str>,
        manifest: Option<Arc<Manifest>>,
        worker: WorkerHost,
        limits: Limits,
        clock: Arc<StepClock>,
    ) -> Self {
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(limits.handles);
        let ledger = Ledger::new(limits.memory, worker.local.bytes());
        Self {
            plugin,
            manifest,
            worker,
            ledger,
            resources,
            clock,
            phase: Phase::Describe,
            stats: Stats::default(),
            scratch: tables::Scratch::default(),
            log: telemetry::LogGate::new(&limits),
            local_names: BTreeSet::new(),
            batch_rows: 0,
            outputs: Vec::new(),
            interrupted: None,
            limits,
        }
    }

    fn buffer(&self, handle: &Resource<HeldBuffer>) -> Result<&HeldBuffer, Fault> {
        Ok(self.resources.get(handle)?)
    }

    fn hold(&mut self, buffer: HeldBuffer) -> Result<Resource<HeldBuffer>, Fault> {
        Ok(self.resources.push(buffer)?)
    }

    /// Bytes of `n` values, when one call may move them.
    fn call_bytes(&self, n: u64, dtype: DType) -> Result<u64, HostError> {
        let bound = self.limits.per_call();
        match n.checked_mul(dtype.size() as u64) {
            Some(bytes) if bytes <= bound => Ok(bytes),
            _ => Err(HostError::Invalid(format!(
                "{n} values of {dtype} in one call, where one call moves at most {bound} bytes: ask for fewer rows at once"
            ))),
        }
    }
}

/// A worker and its instance share a thread, and a poisoned lock is no reason to fail another's.
fn lock<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guest's name, short enough for a message.
fn shown(name: &str) -> String {
    match name.char_indices().nth(64) {
        None => format!("{name:?}"),
        Some((at, _)) => format!("{:?}…", &name[..at]),
    }
}

impl types::Host for State {
    fn convert_error(&mut self, fault: Fault) -> wasmtime::Result<types::Error> {
        match fault {
            Fault::Trap(e) => Err(e),
            Fault::Guest(e) => Ok(e.into()),
        }
    }
}

impl From<HostError> for types::Error {
    fn from(e: HostError) -> Self {
        match e {
            HostError::Denied(m) => types::Error::Denied(m),
            HostError::Limit(l) => types::Error::LimitExceeded(match l {
                Limit::Memory => types::Limit::Memory,
                Limit::Handles => types::Limit::Handles,
                Limit::Cpu => types::Limit::Cpu,
                Limit::Bandwidth => types::Limit::Bandwidth,
                Limit::Rows => types::Limit::Rows,
                Limit::Log => types::Limit::Log,
            }),
            HostError::NotFound(m) => types::Error::NotFound(m),
            HostError::Invalid(m) => types::Error::Invalid(m),
            HostError::Cancelled => types::Error::Cancelled,
            HostError::Unavailable(m) => types::Error::Unavailable(m),
            HostError::Other(m) => types::Error::Other(m),
        }
    }
}

impl From<types::Error> for HostError {
    fn from(e: types::Error) -> Self {
        match e {
            types::Error::Denied(m) => HostError::Denied(m),
            types::Error::LimitExceeded(l) => HostError::Limit(match l {
                types::Limit::Memory => Limit::Memory,
                types::Limit::Handles => Limit::Handles,
                types::Limit::Cpu => Limit::Cpu,
                types::Limit::Bandwidth => Limit::Bandwidth,
                types::Limit::Rows => Limit::Rows,
                types::Limit::Log => Limit::Log,
            }),
            types::Error::NotFound(m) => HostError::NotFound(m),
            types::Error::Invalid(m) => HostError::Invalid(m),
            types::Error::Cancelled => HostError::Cancelled,
            types::Error::Unavailable(m) => HostError::Unavailable(m),
            types::Error::Other(m) => HostError::Other(m),
        }
    }
}

impl From<types::Dtype> for DType {
    fn from(d: types::Dtype) -> Self {
        match d {
            types::Dtype::F32 => DType::F32,
            types::Dtype::F64 => DType::F64,
            types::Dtype::I32 => DType::I32,
            types::Dtype::I64 => DType::I64,
            types::Dtype::U32 => DType::U32,
            types::Dtype::U64 => DType::U64,
            types::Dtype::U8 => DType::U8,
        }
    }
}

impl From<DType> for types::Dtype {
    fn from(d: DType) -> Self {
        match d {
            DType::F32 => types::Dtype::F32,
            DType::F64 => types::Dtype::F64,
            DType::I32 => types::Dtype::I32,
            DType::I64 => types::Dtype::I64,
            DType::U32 => types::Dtype::U32,
            DType::U64 => types::Dtype::U64,
            DType::U8 => types::Dtype::U8,
        }
    }
}

/// What `predict` put, for the driver.
pub(crate) fn take_outputs(state: &mut State) -> Vec<(String, Buffer)> {
    state.outputs.drain(..).map(|(name, held)| (name, held.buffer)).collect()
}
