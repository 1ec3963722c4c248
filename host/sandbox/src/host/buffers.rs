//! `buffers`: typed arrays in host memory that the guest holds by handle.

use super::{Fault, State};
use crate::limits::Charge;
use crate::v0_1::slackline::plugin::buffers::{Dtype, Host, HostBuffer};
use slackline_core::{Buffer, DType, Element, HostError, Limit, ValuesMut, ValuesRef, each_dtype};
use std::sync::Arc;
use wasmtime::component::Resource;

/// A buffer, and what its bytes are charged to; columns of a batch and local state are charged elsewhere.
#[derive(Clone)]
pub struct HeldBuffer {
    pub(crate) buffer: Buffer,
    pub(crate) charge: Option<Arc<Charge>>,
}

impl HeldBuffer {
    pub(crate) fn uncharged(buffer: Buffer) -> Self {
        Self { buffer, charge: None }
    }
}

pub(super) fn read_only() -> HostError {
    HostError::Denied("a column of a batch is read-only: copy it into a buffer of your own".into())
}

fn place(at: u64) -> Result<usize, HostError> {
    usize::try_from(at).map_err(|_| HostError::Invalid(format!("place {at} in a buffer")))
}

fn wrong_type(asked: DType, holds: DType) -> HostError {
    HostError::Invalid(format!("the buffer holds {holds}, not {asked}"))
}

fn beyond(at: u64, n: usize, len: usize) -> HostError {
    HostError::Invalid(format!("window {at}+{n} of a buffer of {len} values"))
}

fn read<T: Element>(state: &State, handle: &Resource<HeldBuffer>, at: u64, n: u32) -> Result<Vec<T>, Fault> {
    state.call_bytes(n.into(), T::DTYPE)?;
    let guard = state.buffer(handle)?.buffer.lock();
    let all = guard.values();
    let values = T::slice(all).ok_or_else(|| wrong_type(T::DTYPE, all.dtype()))?;
    let start = place(at)?;
    let window = start.checked_add(n as usize).and_then(|end| values.get(start..end));
    Ok(window.ok_or_else(|| beyond(at, n as usize, values.len()))?.to_vec())
}

fn write<T: Element>(state: &State, handle: &Resource<HeldBuffer>, at: u64, data: &[T]) -> Result<(), Fault> {
    let mut guard = state.buffer(handle)?.buffer.lock();
    let all = guard.values_mut().ok_or_else(read_only)?;
    let (holds, len) = (all.dtype(), all.len());
    let values = T::slice_mut(all).ok_or_else(|| wrong_type(T::DTYPE, holds))?;
    let start = place(at)?;
    let window = start.checked_add(data.len()).and_then(|end| values.get_mut(start..end));
    window.ok_or_else(|| beyond(at, data.len(), len))?.copy_from_slice(data);
    Ok(())
}

/// `target ← source`; both have the type and length, or it is refused.
fn copy(mut target: ValuesMut<'_>, source: ValuesRef<'_>) -> Result<(), HostError> {
    let (t, s) = ((target.dtype(), target.len()), (source.dtype(), source.len()));
    if t != s {
        return Err(HostError::Invalid(format!("copy of {} {} values into {} {}", s.1, s.0, t.1, t.0)));
    }
    fn typed<T: Element>(target: ValuesMut<'_>, source: &[T]) {
        if let Some(target) = T::slice_mut(target) {
            target.copy_from_slice(source);
        }
    }
    each_dtype!(ValuesRef, source, s => typed(target.reborrow(), s));
    Ok(())
}

fn fill(mut target: ValuesMut<'_>, value: f64) {
    fn typed<T: Element>(target: &mut [T], value: f64) {
        target.fill(T::from_f64(value));
    }
    each_dtype!(ValuesMut, target.reborrow(), t => typed(t, value));
}

macro_rules! windows {
    ($($read:ident $write:ident $ty:ty;)*) => {$(
        fn $read(&mut self, handle: Resource<HeldBuffer>, at: u64, n: u32) -> Result<Vec<$ty>, Fault> {
            read(self, &handle, at, n)
        }

        fn $write(&mut self, handle: Resource<HeldBuffer>, at: u64, data: Vec<$ty>) -> Result<(), Fault> {
            write(self, &handle, at, &data)
        }
    )*};
}

impl Host for State {}

impl HostBuffer for State {
    windows! {
        read_f32 write_f32 f32;
        read_f64 write_f64 f64;
        read_i32 write_i32 i32;
        read_i64 write_i64 i64;
        read_u32 write_u32 u32;
        read_u64 write_u64 u64;
        read_u8 write_u8 u8;
    }

    fn alloc(&mut self, of: Dtype, len: u64) -> Result<Resource<HeldBuffer>, Fault> {
        let dtype = DType::from(of);
        let bytes = len.checked_mul(dtype.size() as u64).ok_or(HostError::Limit(Limit::Memory))?;
        let charge = self.ledger.charge(bytes)?;
        let buffer = Buffer::zeros(dtype, place(len)?);
        self.hold(HeldBuffer { buffer, charge: Some(charge) })
    }

    fn len(&mut self, handle: Resource<HeldBuffer>) -> wasmtime::Result<u64> {
        Ok(self.resources.get(&handle)?.buffer.len() as u64)
    }

    fn dtype(&mut self, handle: Resource<HeldBuffer>) -> wasmtime::Result<Dtype> {
        Ok(self.resources.get(&handle)?.buffer.dtype().into())
    }

    fn fill(&mut self, handle: Resource<HeldBuffer>, value: f64) -> Result<(), Fault> {
        let mut guard = self.buffer(&handle)?.buffer.lock();
        fill(guard.values_mut().ok_or_else(read_only)?, value);
        Ok(())
    }

    fn slice(&mut self, handle: Resource<HeldBuffer>, at: u64, n: u64) -> Result<Resource<HeldBuffer>, Fault> {
        let whole = self.buffer(&handle)?;
        let part = HeldBuffer { buffer: whole.buffer.slice(place(at)?, place(n)?)?, charge: whole.charge.clone() };
        self.hold(part)
    }

    fn copy_from(&mut self, handle: Resource<HeldBuffer>, source: Resource<HeldBuffer>) -> Result<(), Fault> {
        let (target, source) = (&self.buffer(&handle)?.buffer, &self.buffer(&source)?.buffer);
        // Two windows of one array sit behind one lock, and may overlap.
        let apart = target.shares_storage(source).then(|| source.to_values());
        let guard = apart.is_none().then(|| source.lock());
        let from = match (&apart, &guard) {
            (Some(values), _) => values.as_ref(),
            (None, Some(guard)) => guard.values(),
            (None, None) => return Ok(()),
        };
        let mut into = target.lock();
        Ok(copy(into.values_mut().ok_or_else(read_only)?, from)?)
    }

    fn drop(&mut self, handle: Resource<HeldBuffer>) -> wasmtime::Result<()> {
        self.resources.delete(handle)?;
        Ok(())
    }
}
