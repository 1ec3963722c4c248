//! `local-state`: partition-local buffers that outlive the instance.

use super::{Fault, HeldBuffer, State, shown};
use crate::v0_1::slackline::plugin::local_state::{Dtype, Host};
use slackline_core::{DType, HostError, Limit};
use wasmtime::component::Resource;

/// Bytes of a name.
const MAX_NAME: usize = 128;

impl Host for State {
    fn open(&mut self, name: String, of: Dtype, len: u64) -> Result<Resource<HeldBuffer>, Fault> {
        let dtype = DType::from(of);
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(HostError::Invalid(format!(
                "local state {} needs a name of 1 to {MAX_NAME} bytes",
                shown(&name)
            ))
            .into());
        }
        if !self.local_names.contains(&name) && self.local_names.len() >= self.limits.local_names {
            return Err(HostError::Limit(Limit::Handles).into());
        }
        let bytes = len.checked_mul(dtype.size() as u64).ok_or(HostError::Limit(Limit::Memory))?;
        self.ledger.may_grow_local(bytes.saturating_sub(self.worker.local.bytes_of(&name)))?;
        let len = usize::try_from(len).map_err(|_| HostError::Limit(Limit::Memory))?;
        let buffer = self.worker.local.open(&name, dtype, len)?;
        self.ledger.set_local(self.worker.local.bytes());
        self.local_names.insert(name);
        self.hold(HeldBuffer::uncharged(buffer))
    }
}
