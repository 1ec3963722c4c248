//! The native core: the numerics that plugins call through handles instead of looping inside the sandbox.
//!
//! [`NativeKernels`] implements [`slackline_core::ports::Kernels`], which documents each kernel's formula. This page
//! says what holds for all of them.
//!
//! # Shapes
//! Matrices are row-major and packed. Lengths are counted in values, never bytes. A `width` is the number of values in a
//! row, at least 1. Scalars come as f64 and are rounded to the type of the call's arrays. Index arguments (`rows`, `i`,
//! `j`, `offsets`, `columns`) are u32, all others f32 or f64, one type a call. CSR offsets are ascending and end inside
//! `columns`; they may be a window of larger ones, so that a batch can pass a part of its rows.
//!
//! # Errors
//! All are [`HostError::Invalid`](slackline_core::HostError::Invalid), name the kernel and the argument, and are found
//! before anything is written: a wrong length, a wrong or mixed type, a width of 0, a size that overflows, offsets that
//! descend or leave `columns`, an index beyond the rows it points into, an unknown operation, a negative or NaN
//! threshold. Empty arguments of the right shape are fine: sums of nothing are 0, `min` is +∞, `max` −∞, `max-abs` 0.
//!
//! # The same bits
//! On any thread count a call gives the same bits: arrays are cut by their length alone, and partial sums are added in
//! order. Apart from `gemm` (see `blas3`), they are also the same on any instruction set. Sums of f32 are f32 within
//! 4,096 values and f64 beyond; a product of two f32 that overflows f32 is infinite.
//!
//! # NaN and infinities
//! IEEE 754 holds: nothing is skipped because a factor is 0 (0·∞ is NaN), with two exceptions that BLAS makes too:
//! β = 0 overwrites without reading, and α = 0 does not read A, B or x. `min`, `max`, `max-abs` and `relu` give NaN when
//! they meet one. A row of `softmax_rows` with a NaN, a +∞, or nothing but −∞ becomes NaN; −∞ among finite values
//! becomes 0. `sigmoid` may give 0 where the true value is below the smallest normal number.
//!
//! # Threads
//! The pool is built once, in [`NativeKernels::new`], and belongs to this value alone. Calls of less than about
//! half a million loop turns run on the caller's thread and never touch it; with one thread there is none.

mod blas1;
mod blas2;
mod blas3;
mod elementary;
mod exec;
mod lanes;
mod maps;
mod native;
mod real;
mod reduce;
mod rows;
mod shape;
mod sparse;

/// The kernels of this machine. Share one among all instances of a tenant: it is its CPU share.
#[derive(Debug)]
pub struct NativeKernels {
    exec: exec::Exec,
}

/// The operating system would not start the pool's threads.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} kernel threads; ask for fewer: {source}")]
pub struct PoolError {
    threads: usize,
    source: rayon::ThreadPoolBuildError,
}

impl NativeKernels {
    /// On `threads` threads; 0 or 1 spawns nothing and runs on the caller's.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        let exec = exec::Exec::new(threads).map_err(|source| PoolError { threads, source })?;
        Ok(Self { exec })
    }

    /// Threads that a large call uses.
    pub fn threads(&self) -> usize {
        self.exec.threads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_core::ports::Kernels;
    use slackline_core::{ValuesMut, ValuesRef};

    #[test]
    fn the_instruction_set_does_not_change_the_bits() {
        let mut baseline = NativeKernels::new(1).unwrap();
        baseline.exec.arch = pulp::Arch::Scalar;
        let best = NativeKernels::new(1).unwrap();
        let x: Vec<f32> = (0..9973u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 4e6 - 2.0).collect();
        let run = |k: &NativeKernels| {
            let dot = k.dot(ValuesRef::F32(&x), ValuesRef::F32(&x)).unwrap();
            let mut bits: Vec<u64> = vec![dot.to_bits(), k.reduce("sum", ValuesRef::F32(&x)).unwrap().to_bits()];
            let mut keep = |x: &[f32]| bits.extend(x.iter().map(|x| u64::from(x.to_bits())));
            for op in ["exp", "tanh", "sigmoid"] {
                let mut out = x.clone();
                k.map(op, ValuesMut::F32(&mut out)).unwrap();
                keep(&out);
            }
            for transpose in [false, true] {
                let mut y = vec![0.5; 99];
                let (a, v) = (ValuesRef::F32(&x[..99 * 99]), ValuesRef::F32(&x[..99]));
                k.gemv(transpose, 99, 99, 0.3, a, v, 0.7, ValuesMut::F32(&mut y)).unwrap();
                keep(&y);
            }
            let mut out = x[..9970].to_vec();
            k.softmax_rows(ValuesMut::F32(&mut out), 10).unwrap();
            keep(&out);
            bits
        };
        assert!(run(&baseline) == run(&best));
    }
}
