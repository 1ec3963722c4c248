//! Vector by vector: `axpy`, `scale`, `dot`.

use crate::exec::{Exec, simd};
use crate::lanes::BLOCK;
use crate::real::Real;
use crate::shape;
use slackline_core::HostError;

/// Values that one task takes. Reductions are taken piece by piece on any number of threads.
pub(crate) const PIECE: usize = 16 * BLOCK;

pub(crate) fn axpy<T: Real>(exec: &Exec, a: f64, x: &[T], y: &mut [T]) -> Result<(), HostError> {
    shape::len("axpy", "x", x.len(), y.len(), "as many as y")?;
    let a = T::from_f64(a);
    exec.each_piece(y.len() as u64, y, PIECE, |i, y| axpy_piece(exec.arch, a, &x[i * PIECE..][..y.len()], y));
    Ok(())
}

pub(crate) fn scale<T: Real>(exec: &Exec, a: f64, x: &mut [T]) {
    let a = T::from_f64(a);
    exec.each_piece(x.len() as u64, x, PIECE, |_, x| scale_piece(exec.arch, a, x));
}

pub(crate) fn dot<T: Real>(exec: &Exec, x: &[T], y: &[T]) -> Result<f64, HostError> {
    shape::len("dot", "y", y.len(), x.len(), "as many as x")?;
    let mut total = 0.0;
    let piece = |i: usize| {
        let at = i * PIECE..x.len().min((i + 1) * PIECE);
        dot_piece(exec.arch, &x[at.clone()], &y[at])
    };
    exec.fold(x.len() as u64, x.len().div_ceil(PIECE), piece, |part| total += part);
    Ok(total)
}

/// Σ x·y of slices of one length on this thread: blocks in T, added up in f64.
#[inline(always)]
pub(crate) fn dot_here<T: Real>(x: &[T], y: &[T]) -> f64 {
    let mut total = 0.0;
    for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
        total += T::dot_block(x, y).to_f64();
    }
    total
}

simd! {
    fn axpy_piece<'a, T: Real>(a: T, x: &'a [T], y: &'a mut [T]) -> () {
        for (y, x) in y.iter_mut().zip(x) {
            *y = a * *x + *y;
        }
    }
}

simd! {
    fn scale_piece<'a, T: Real>(a: T, x: &'a mut [T]) -> () {
        for x in x {
            *x = a * *x;
        }
    }
}

simd! {
    fn dot_piece<'a, T: Real>(x: &'a [T], y: &'a [T]) -> f64 { dot_here(x, y) }
}
