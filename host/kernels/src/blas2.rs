//! Matrix by vector: `gemv`.
//!
//! Plain, each value of y is the dot product of a row. Transposed, y is a sum of rows, and rows are taken in fixed
//! groups whose sums are then added in order, so that the bits do not depend on who took which group.

use crate::blas1::dot_here;
use crate::exec::{Exec, simd};
use crate::real::Real;
use crate::shape;
use slackline_core::HostError;

/// A gemv, its shape checked.
pub(crate) struct Gemv<'a, T> {
    a: &'a [T],
    x: &'a [T],
    n: usize,
    alpha: f64,
    beta: f64,
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn gemv<T: Real>(
    exec: &Exec,
    transpose: bool,
    m: u32,
    n: u32,
    alpha: f64,
    a: &[T],
    x: &[T],
    beta: f64,
    y: &mut [T],
) -> Result<(), HostError> {
    let (m, n) = (m as usize, n as usize);
    shape::len("gemv", "a", a.len(), shape::product("gemv", "a", m, n)?, "m × n")?;
    let (inner, outer) = if transpose { (m, n) } else { (n, m) };
    shape::len("gemv", "x", x.len(), inner, if transpose { "m, a being transposed" } else { "n" })?;
    shape::len("gemv", "y", y.len(), outer, if transpose { "n, a being transposed" } else { "m" })?;
    if alpha == 0.0 || inner == 0 {
        scale_or_zero(beta, y);
        return Ok(());
    }
    let call = Gemv { a, x, n, alpha, beta };
    if transpose {
        call.transposed(exec, m, y)
    } else {
        call.plain(exec, y)
    }
    Ok(())
}

/// y ← β·y, where β = 0 does not read y: what BLAS does, so that fresh memory with NaN in it is no trap.
pub(crate) fn scale_or_zero<T: Real>(beta: f64, y: &mut [T]) {
    if beta == 0.0 {
        y.fill(T::ZERO);
    } else if beta != 1.0 {
        let beta = T::from_f64(beta);
        y.iter_mut().for_each(|y| *y = beta * *y);
    }
}

impl<T: Real> Gemv<'_, T> {
    fn plain(&self, exec: &Exec, y: &mut [T]) {
        // Any split gives the same bits: each value stands for itself.
        let rows = (65_536 / self.n).max(1);
        exec.each_piece(self.a.len() as u64, y, rows, |i, y| {
            let a = &self.a[i * rows * self.n..][..y.len() * self.n];
            rows_by_x(exec.arch, a, self.x, self.alpha, self.beta, y);
        });
    }

    fn transposed(&self, exec: &Exec, m: usize, y: &mut [T]) {
        if self.n == 0 {
            return;
        }
        // At least 64 rows a group, so that the partial sums take at most a sixty-fourth of the matrix's memory.
        let rows = (65_536 / self.n).max(64);
        let group = |i: usize| {
            let at = i * rows..m.min((i + 1) * rows);
            let mut sum = vec![T::ZERO; self.n];
            sum_of_rows(exec.arch, &self.a[at.start * self.n..at.end * self.n], &self.x[at], &mut sum);
            sum
        };
        scale_or_zero(self.beta, y);
        let alpha = T::from_f64(self.alpha);
        exec.fold(self.a.len() as u64, m.div_ceil(rows), group, |sum| {
            y.iter_mut().zip(sum).for_each(|(y, s)| *y = alpha * s + *y);
        });
    }
}

simd! {
    fn rows_by_x<'a, T: Real>(a: &'a [T], x: &'a [T], alpha: f64, beta: f64, y: &'a mut [T]) -> () {
        for (row, y) in a.chunks_exact(x.len()).zip(y) {
            let product = alpha * dot_here(row, x);
            *y = T::from_f64(if beta == 0.0 { product } else { product + beta * y.to_f64() });
        }
    }
}

simd! {
    /// sum ← sum + Σ x_i · row i, four rows a pass.
    fn sum_of_rows<'a, T: Real>(a: &'a [T], x: &'a [T], sum: &'a mut [T]) -> () {
        let n = sum.len();
        let (xs, rest) = x.as_chunks::<4>();
        let done = xs.len() * 4 * n;
        for (rows, x) in a.chunks_exact(4 * n).zip(xs) {
            let (r0, rows) = rows.split_at(n);
            let (r1, rows) = rows.split_at(n);
            let (r2, r3) = rows.split_at(n);
            for ((((s, a0), a1), a2), a3) in sum.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                *s = (((*s + x[0] * *a0) + x[1] * *a1) + x[2] * *a2) + x[3] * *a3;
            }
        }
        for (row, x) in a[done..].chunks_exact(n).zip(rest) {
            for (s, a) in sum.iter_mut().zip(row) {
                *s = *s + *x * *a;
            }
        }
    }
}
