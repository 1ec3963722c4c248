//! `kernels`: the native core on buffers. Shapes are checked by the kernels themselves; this locks the arrays, and keeps
//! a lock from being taken twice.

use super::buffers::read_only;
use super::{Fault, HeldBuffer, State, shown};
use crate::v0_1::slackline::plugin::kernels::Host;
use slackline_core::buffer::BufferGuard;
use slackline_core::ports::Kernels;
use slackline_core::{Buffer, HostError, Values, ValuesMut, ValuesRef};
use std::sync::Arc;
use wasmtime::component::Resource;

type Handle = Resource<HeldBuffer>;

/// An input: locked, or copied where an earlier input is a window of the same array, which one lock guards.
enum Input<'a> {
    Locked(BufferGuard<'a>),
    Copied(Values),
}

impl Input<'_> {
    fn values(&self) -> ValuesRef<'_> {
        match self {
            Input::Locked(guard) => guard.values(),
            Input::Copied(values) => values.as_ref(),
        }
    }
}

impl State {
    /// Runs `kernel` on the values of `inputs` and `output`.
    fn kernel<const N: usize, R>(
        &mut self,
        inputs: [&Handle; N],
        output: Option<&Handle>,
        kernel: impl FnOnce(&dyn Kernels, [ValuesRef<'_>; N], Option<ValuesMut<'_>>) -> Result<R, HostError>,
    ) -> Result<R, Fault> {
        let began = std::time::Instant::now();
        let mut buffers: Vec<&Buffer> = Vec::with_capacity(N);
        for handle in inputs {
            buffers.push(&self.buffer(handle)?.buffer);
        }
        let target = output.map(|handle| self.buffer(handle)).transpose()?.map(|held| &held.buffer);
        if target.is_some_and(|t| buffers.iter().any(|b| b.shares_storage(t))) {
            return Err(HostError::Invalid("the output shares its array with an input".into()).into());
        }
        // Copies first: taking one needs the lock that an earlier input is about to hold.
        let shared = |i: usize| buffers[..i].iter().any(|b| b.shares_storage(buffers[i]));
        let copies: Vec<Option<Values>> = (0..N).map(|i| shared(i).then(|| buffers[i].to_values())).collect();
        let locked: Vec<Input<'_>> = copies
            .into_iter()
            .zip(buffers)
            .map(|(copy, b)| copy.map_or_else(|| Input::Locked(b.lock()), Input::Copied))
            .collect();
        let values: [ValuesRef<'_>; N] = std::array::from_fn(|i| locked[i].values());
        let mut guard = target.map(Buffer::lock);
        let out = match &mut guard {
            Some(guard) => Some(guard.values_mut().ok_or_else(read_only)?),
            None => None,
        };
        let kernels = Arc::clone(&self.worker.kernels);
        let result = kernel(&*kernels, values, out)?;
        drop((locked, guard));
        self.stats.calls += 1;
        self.stats.nanos += u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(result)
    }

    /// [`State::kernel`] with an output.
    fn kernel_into<const N: usize>(
        &mut self,
        inputs: [&Handle; N],
        output: &Handle,
        kernel: impl FnOnce(&dyn Kernels, [ValuesRef<'_>; N], ValuesMut<'_>) -> Result<(), HostError>,
    ) -> Result<(), Fault> {
        self.kernel(inputs, Some(output), |k, inputs, out| match out {
            Some(out) => kernel(k, inputs, out),
            None => Ok(()),
        })
    }
}

impl Host for State {
    fn axpy(&mut self, a: f64, x: Handle, y: Handle) -> Result<(), Fault> {
        self.kernel_into([&x], &y, |k, [x], y| k.axpy(a, x, y))
    }

    fn scale(&mut self, a: f64, x: Handle) -> Result<(), Fault> {
        self.kernel_into([], &x, |k, [], x| k.scale(a, x))
    }

    fn dot(&mut self, x: Handle, y: Handle) -> Result<f64, Fault> {
        self.kernel([&x, &y], None, |k, [x, y], _| k.dot(x, y))
    }

    fn gemv(
        &mut self,
        transpose: bool,
        m: u32,
        n: u32,
        alpha: f64,
        a: Handle,
        x: Handle,
        beta: f64,
        y: Handle,
    ) -> Result<(), Fault> {
        self.kernel_into([&a, &x], &y, |k, [a, x], y| k.gemv(transpose, m, n, alpha, a, x, beta, y))
    }

    fn gemm(
        &mut self,
        ta: bool,
        tb: bool,
        m: u32,
        n: u32,
        k: u32,
        alpha: f64,
        a: Handle,
        b: Handle,
        beta: f64,
        c: Handle,
    ) -> Result<(), Fault> {
        self.kernel_into([&a, &b], &c, |core, [a, b], c| core.gemm(ta, tb, m, n, k, alpha, a, b, beta, c))
    }

    fn spmm(
        &mut self,
        transpose: bool,
        offsets: Handle,
        columns: Handle,
        values: Handle,
        x: Handle,
        width: u32,
        y: Handle,
    ) -> Result<(), Fault> {
        self.kernel_into([&offsets, &columns, &values, &x], &y, |k, [offsets, columns, values, x], y| {
            k.spmm(transpose, offsets, columns, values, x, width, y)
        })
    }

    fn sddmm(&mut self, i: Handle, j: Handle, x: Handle, y: Handle, width: u32, out: Handle) -> Result<(), Fault> {
        self.kernel_into([&i, &j, &x, &y], &out, |k, [i, j, x, y], out| k.sddmm(i, j, x, y, width, out))
    }

    fn gather(&mut self, rows: Handle, x: Handle, width: u32, out: Handle) -> Result<(), Fault> {
        self.kernel_into([&rows, &x], &out, |k, [rows, x], out| k.gather(rows, x, width, out))
    }

    fn scatter_add(&mut self, rows: Handle, x: Handle, width: u32, y: Handle) -> Result<(), Fault> {
        self.kernel_into([&rows, &x], &y, |k, [rows, x], y| k.scatter_add(rows, x, width, y))
    }

    fn softmax_rows(&mut self, x: Handle, width: u32) -> Result<(), Fault> {
        self.kernel_into([], &x, |k, [], x| k.softmax_rows(x, width))
    }

    fn soft_threshold(&mut self, x: Handle, t: f64) -> Result<(), Fault> {
        self.kernel_into([], &x, |k, [], x| k.soft_threshold(x, t))
    }

    fn map(&mut self, op: String, x: Handle) -> Result<(), Fault> {
        let op = short(&op)?;
        self.kernel_into([], &x, |k, [], x| k.map(op, x))
    }

    fn reduce(&mut self, op: String, x: Handle) -> Result<f64, Fault> {
        let op = short(&op)?;
        self.kernel([&x], None, |k, [x], _| k.reduce(op, x))
    }
}

/// An operation's name; long ones are no operation, and must not travel on in messages.
fn short(op: &str) -> Result<&str, HostError> {
    if op.len() > 32 {
        return Err(HostError::Invalid(format!("operation {}", shown(op))));
    }
    Ok(op)
}
