//! `output`: where `predict` puts its columns.

use super::{Fault, HeldBuffer, State, shown};
use crate::clock::Phase;
use crate::v0_1::slackline::plugin::output::Host;
use slackline_core::{Buffer, HostError};
use wasmtime::component::Resource;

impl Host for State {
    fn put(&mut self, column: String, values: Resource<HeldBuffer>) -> Result<(), Fault> {
        if self.phase != Phase::Predict {
            return Err(HostError::Denied(format!("output is for predict, and this is {}", self.phase)).into());
        }
        let promised = self.manifest.as_ref().map_or(&[][..], |m| &m.predicts);
        if !promised.contains(&column) {
            let message = format!("column {}, where the manifest promises {}", shown(&column), promised.join(", "));
            return Err(HostError::Invalid(message).into());
        }
        if self.outputs.iter().any(|(name, _)| *name == column) {
            return Err(HostError::Invalid(format!("column {} was put already", shown(&column))).into());
        }
        let source = &self.buffer(&values)?.buffer;
        let (len, rows, dtype) = (source.len(), self.batch_rows, source.dtype());
        if (rows == 0 && len != 0) || (rows != 0 && len % rows != 0) {
            let message = format!("column {} has {len} values for {rows} rows", shown(&column));
            return Err(HostError::Invalid(message).into());
        }
        let source = source.clone();
        let charge = self.ledger.charge(len as u64 * dtype.size() as u64)?;
        let buffer = Buffer::live(source.to_values());
        self.outputs.push((column, HeldBuffer { buffer, charge: Some(charge) }));
        Ok(())
    }
}
