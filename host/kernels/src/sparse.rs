//! Sparse by dense: `spmm` and `sddmm`.

use crate::blas1::dot_here;
use crate::exec::{Exec, simd};
use crate::real::Real;
use crate::rows::{own, prefetch_row};
use crate::shape;
use slackline_core::HostError;

/// Pairs asked of the cache ahead of the one at hand.
const AHEAD: usize = 8;

/// A matrix in CSR: row `i` has `columns[offsets[i]..offsets[i + 1]]` and the values at the same places.
#[derive(Clone, Copy)]
pub(crate) struct Csr<'a, T> {
    pub(crate) offsets: &'a [u32],
    pub(crate) columns: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<'a, T: Real> Csr<'a, T> {
    fn check(&self) -> Result<(), HostError> {
        shape::len("spmm", "values", self.values.len(), self.columns.len(), "as many as columns")?;
        shape::offsets("spmm", self.offsets, self.columns.len())
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The columns that the rows use; offsets may be a window of larger ones.
    fn used(&self) -> &'a [u32] {
        &self.columns[self.offsets[0] as usize..self.offsets[self.rows()] as usize]
    }

    /// Entries of a row.
    #[inline(always)]
    fn row(&self, i: usize) -> impl Iterator<Item = (&'a u32, &'a T)> {
        let at = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        self.columns[at.clone()].iter().zip(&self.values[at])
    }
}

pub(crate) fn spmm<T: Real>(
    exec: &Exec,
    transpose: bool,
    a: Csr<'_, T>,
    x: &[T],
    width: u32,
    y: &mut [T],
) -> Result<(), HostError> {
    let width = shape::width("spmm", width)?;
    a.check()?;
    let x_rows = shape::rows("spmm", "x", x.len(), width)?;
    let y_rows = shape::rows("spmm", "y", y.len(), width)?;
    let (name, outer) = if transpose { ("x", x.len()) } else { ("y", y.len()) };
    shape::len("spmm", name, outer, shape::product("spmm", name, a.rows(), width)?, "rows of a × width")?;
    let (inner, of) = if transpose { (y_rows, "y") } else { (x_rows, "x") };
    shape::bounded("spmm", "columns", a.used(), inner, of)?;
    let work = (a.used().len() as u64).saturating_mul(width as u64).saturating_add(y.len() as u64);
    if transpose {
        let piece = own(exec, work, y_rows, width);
        exec.each_piece(work, y, piece * width, |i, y| columns_piece(exec.arch, a, x, width, i * piece, y));
    } else {
        // Rows differ in length, so there are more pieces than threads. Each row stands for itself.
        let piece = a.rows().div_ceil(8 * exec.threads_for(work)).max(1);
        exec.each_piece(work, y, piece * width, |i, y| rows_piece(exec.arch, a, x, width, i * piece, y));
    }
    Ok(())
}

simd! {
    /// Each row of y in strips that stay in registers while the entries go by.
    fn rows_piece<'a, T: Real>(a: Csr<'a, T>, x: &'a [T], width: usize, first: usize, y: &'a mut [T]) -> () {
        for (i, y) in y.chunks_exact_mut(width).enumerate() {
            let mut at = 0;
            while at < width {
                at += match width - at {
                    32.. => strip::<T, 32>(a, first + i, x, at, y),
                    16.. => strip::<T, 16>(a, first + i, x, at, y),
                    8.. => strip::<T, 8>(a, first + i, x, at, y),
                    4.. => strip::<T, 4>(a, first + i, x, at, y),
                    2.. => strip::<T, 2>(a, first + i, x, at, y),
                    _ => strip::<T, 1>(a, first + i, x, at, y),
                };
            }
        }
    }
}

/// Columns `at..at + W` of row `i` of the product.
#[inline(always)]
fn strip<T: Real, const W: usize>(a: Csr<'_, T>, i: usize, x: &[T], at: usize, y: &mut [T]) -> usize {
    let mut sum = [T::ZERO; W];
    for (c, v) in a.row(i) {
        let x = &x[*c as usize * y.len() + at..][..W];
        for l in 0..W {
            sum[l] = sum[l] + *v * x[l];
        }
    }
    y[at..at + W].copy_from_slice(&sum);
    W
}

simd! {
    fn columns_piece<'a, T: Real>(a: Csr<'a, T>, x: &'a [T], width: usize, first: usize, y: &'a mut [T]) -> () {
        let owned = y.len() / width;
        for (i, x) in x.chunks_exact(width).enumerate() {
            for (c, v) in a.row(i) {
                let c = (*c as usize).wrapping_sub(first);
                if c < owned {
                    for (y, x) in y[c * width..][..width].iter_mut().zip(x) {
                        *y = *y + *v * *x;
                    }
                }
            }
        }
    }
}

/// The pairs of an sddmm and the two matrices that they point into.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a, T> {
    pub(crate) i: &'a [u32],
    pub(crate) j: &'a [u32],
    pub(crate) x: &'a [T],
    pub(crate) y: &'a [T],
}

pub(crate) fn sddmm<T: Real>(exec: &Exec, p: Pairs<'_, T>, width: u32, out: &mut [T]) -> Result<(), HostError> {
    const PIECE: usize = 4096;
    let width = shape::width("sddmm", width)?;
    let x_rows = shape::rows("sddmm", "x", p.x.len(), width)?;
    let y_rows = shape::rows("sddmm", "y", p.y.len(), width)?;
    shape::len("sddmm", "j", p.j.len(), p.i.len(), "as many as i")?;
    shape::len("sddmm", "out", out.len(), p.i.len(), "as many as i")?;
    shape::bounded("sddmm", "i", p.i, x_rows, "x")?;
    shape::bounded("sddmm", "j", p.j, y_rows, "y")?;
    let work = (out.len() as u64).saturating_mul(width as u64);
    exec.each_piece(work, out, PIECE, |piece, out| {
        let at = piece * PIECE..piece * PIECE + out.len();
        pairs_piece(exec.arch, Pairs { i: &p.i[at.clone()], j: &p.j[at], ..p }, width, out);
    });
    Ok(())
}

simd! {
    fn pairs_piece<'a, T: Real>(p: Pairs<'a, T>, width: usize, out: &'a mut [T]) -> () {
        for (e, ((i, j), out)) in p.i.iter().zip(p.j).zip(out).enumerate() {
            if let (Some(i), Some(j)) = (p.i.get(e + AHEAD), p.j.get(e + AHEAD)) {
                prefetch_row(p.x, *i as usize * width, width);
                prefetch_row(p.y, *j as usize * width, width);
            }
            let x = &p.x[*i as usize * width..][..width];
            let y = &p.y[*j as usize * width..][..width];
            *out = T::from_f64(dot_here(x, y));
        }
    }
}
