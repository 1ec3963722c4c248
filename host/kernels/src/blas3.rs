//! Matrix by matrix: `gemm`, by the `gemm` crate.
//!
//! That crate blocks by the shape it is given, so a split by thread count would change the bits. C is cut into tiles by
//! its own shape alone, and the pool hands out tiles; one thread walks the same tiles. Unlike the other kernels, gemm
//! uses fused multiply-add and cache sizes of the machine: its bits are the same on any thread count of one machine
//! type, not across machine types.

use crate::blas2::scale_or_zero;
use crate::exec::Exec;
use crate::real::Real;
use crate::shape;
use slackline_core::HostError;

/// Values along each side of a tile of C: large enough that packing the operands anew for each tile does not show.
const TILE: usize = 512;
/// Below this many multiplications a product is one tile.
const ONE_TILE: u64 = 1 << 22;

/// The operands of C ← α·op(A)·op(B) + β·C, their shapes checked. A step is (to the next row, to the next column).
struct Gemm<T> {
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    beta: T,
    a: *const T,
    a_step: (usize, usize),
    b: *const T,
    b_step: (usize, usize),
    c: *mut T,
}

// SAFETY: tasks read A and B, and each writes its own tile of C (see `tile`); the borrows behind the pointers outlive
// the call that holds the `Gemm`.
unsafe impl<T: Sync> Sync for Gemm<T> {}

#[allow(clippy::too_many_arguments)]
pub(crate) fn gemm<T: Real>(
    exec: &Exec,
    ta: bool,
    tb: bool,
    m: u32,
    n: u32,
    k: u32,
    alpha: f64,
    a: &[T],
    b: &[T],
    beta: f64,
    c: &mut [T],
) -> Result<(), HostError> {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    shape::len("gemm", "a", a.len(), shape::product("gemm", "a", m, k)?, "m × k")?;
    shape::len("gemm", "b", b.len(), shape::product("gemm", "b", k, n)?, "k × n")?;
    shape::len("gemm", "c", c.len(), shape::product("gemm", "c", m, n)?, "m × n")?;
    if alpha == 0.0 || k == 0 || c.is_empty() {
        scale_or_zero(beta, c);
        return Ok(());
    }
    let call = Gemm {
        m,
        n,
        k,
        alpha: T::from_f64(alpha),
        beta: T::from_f64(beta),
        a: a.as_ptr(),
        a_step: if ta { (1, m) } else { (k, 1) },
        b: b.as_ptr(),
        b_step: if tb { (1, k) } else { (n, 1) },
        c: c.as_mut_ptr(),
    };
    let work = (m as u64).saturating_mul(n as u64).saturating_mul(k as u64);
    let side = if work < ONE_TILE { usize::MAX } else { TILE };
    let (down, across) = (m.div_ceil(side), n.div_ceil(side));
    // A vector unit does several multiplications in the time of one loop turn.
    exec.each(work / 4, down * across, |t| call.tile(t / across, t % across, side));
    Ok(())
}

impl<T: Real> Gemm<T> {
    fn tile(&self, down: usize, across: usize, side: usize) {
        let (row, column) = (down * side, across * side);
        let (m, n) = ((self.m - row).min(side), (self.n - column).min(side));
        // SAFETY: `gemm` above checked that A, B and C hold m × k, k × n and m × n values, so every element of the tile
        // m × n at (row, column), and of the rows and columns that it needs, lies inside its slice; steps and offsets
        // are below those lengths, hence fit isize. C is borrowed mutably, so it overlaps neither A nor B, and tiles
        // with different (down, across) are disjoint. With β = 0 C is not read.
        unsafe {
            gemm::gemm(
                m,
                n,
                self.k,
                self.c.add(row * self.n + column),
                1,
                self.n as isize,
                self.beta != T::ZERO,
                self.a.add(row * self.a_step.0),
                self.a_step.1 as isize,
                self.a_step.0 as isize,
                self.b.add(column * self.b_step.1),
                self.b_step.1 as isize,
                self.b_step.0 as isize,
                self.beta,
                self.alpha,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}
