//! `input`: the batch at hand. Its columns are shared with the host, never copied unless read.

use super::{Fault, HeldBuffer, State, shown};
use crate::v0_1::slackline::plugin::input::{Host, HostBatch};
use slackline_core::{Batch, Buffer, Column, HostError, Values};
use wasmtime::component::Resource;

/// A batch that a call lends to the guest.
pub struct BatchView(pub(crate) Batch);

impl BatchView {
    fn find(&self, name: &str) -> Result<&Column, HostError> {
        self.0.columns.get(name).ok_or_else(|| {
            let has: Vec<&str> = self.0.columns.keys().map(String::as_str).collect();
            HostError::NotFound(format!("column {} of {:?}, which has {}", shown(name), self.0.dataset, has.join(", ")))
        })
    }
}

impl Host for State {
    fn partition_rows(&mut self, dataset: String) -> wasmtime::Result<u64> {
        Ok(self.worker.run.partition_rows.get(&dataset).copied().unwrap_or(0))
    }
}

impl HostBatch for State {
    fn rows(&mut self, handle: Resource<BatchView>) -> wasmtime::Result<u32> {
        Ok(u32::try_from(self.resources.get(&handle)?.0.rows())?)
    }

    fn dataset(&mut self, handle: Resource<BatchView>) -> wasmtime::Result<String> {
        Ok(self.resources.get(&handle)?.0.dataset.to_string())
    }

    fn ids(&mut self, handle: Resource<BatchView>) -> wasmtime::Result<Vec<u64>> {
        match &*self.resources.get(&handle)?.0.ids {
            Values::U64(ids) => Ok(ids.clone()),
            other => Err(wasmtime::Error::msg(format!("the host made row ids of {}", other.dtype()))),
        }
    }

    fn has(&mut self, handle: Resource<BatchView>, column: String) -> wasmtime::Result<bool> {
        Ok(self.resources.get(&handle)?.0.columns.contains_key(&column))
    }

    fn column(&mut self, handle: Resource<BatchView>, name: String) -> Result<Resource<HeldBuffer>, Fault> {
        let values = self.resources.get(&handle)?.find(&name)?.values.clone();
        self.hold(HeldBuffer::uncharged(Buffer::frozen(values)))
    }

    fn offsets(&mut self, handle: Resource<BatchView>, name: String) -> Result<Resource<HeldBuffer>, Fault> {
        let offsets = self.resources.get(&handle)?.find(&name)?.offsets.clone();
        let offsets = offsets
            .ok_or_else(|| HostError::Invalid(format!("column {} has a value a row, so no offsets", shown(&name))))?;
        self.hold(HeldBuffer::uncharged(Buffer::frozen(offsets)))
    }

    fn drop(&mut self, handle: Resource<BatchView>) -> wasmtime::Result<()> {
        self.resources.delete(handle)?;
        Ok(())
    }
}
