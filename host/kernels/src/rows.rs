//! Rows at given places: `gather`, `scatter_add`.

use crate::exec::{Exec, prefetch, simd};
use crate::real::Real;
use crate::shape;
use slackline_core::HostError;

/// Rows asked of the cache ahead of the one at hand.
const AHEAD: usize = 16;

pub(crate) fn gather<T: Real>(exec: &Exec, rows: &[u32], x: &[T], width: u32, out: &mut [T]) -> Result<(), HostError> {
    let width = shape::width("gather", width)?;
    let have = shape::rows("gather", "x", x.len(), width)?;
    let want = shape::product("gather", "out", rows.len(), width)?;
    shape::len("gather", "out", out.len(), want, "rows × width")?;
    shape::bounded("gather", "rows", rows, have, "x")?;
    let piece = (32_768 / width).max(1);
    exec.each_piece(out.len() as u64, out, piece * width, |i, out| {
        let rows = &rows[i * piece..][..out.len() / width];
        match width {
            1 => gather_fixed::<T, 1>(rows, x, out),
            2 => gather_fixed::<T, 2>(rows, x, out),
            4 => gather_fixed::<T, 4>(rows, x, out),
            8 => gather_fixed::<T, 8>(rows, x, out),
            16 => gather_fixed::<T, 16>(rows, x, out),
            32 => gather_fixed::<T, 32>(rows, x, out),
            _ => gather_any(rows, x, width, out),
        }
    });
    Ok(())
}

/// A width known to the compiler turns the copy of a row into a few moves.
fn gather_fixed<T: Real, const W: usize>(rows: &[u32], x: &[T], out: &mut [T]) {
    let (table, _) = x.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    for (e, (row, out)) in rows.iter().zip(out).enumerate() {
        if let Some(next) = rows.get(e + AHEAD) {
            prefetch_row(x, *next as usize * W, W);
        }
        *out = table[*row as usize];
    }
}

fn gather_any<T: Real>(rows: &[u32], x: &[T], width: usize, out: &mut [T]) {
    for (e, (row, out)) in rows.iter().zip(out.chunks_exact_mut(width)).enumerate() {
        if let Some(next) = rows.get(e + AHEAD) {
            prefetch_row(x, *next as usize * width, width);
        }
        out.copy_from_slice(&x[*row as usize * width..][..width]);
    }
}

/// The first lines of a row; the machine's own prefetcher follows a longer one.
#[inline(always)]
pub(crate) fn prefetch_row<T: Real>(x: &[T], at: usize, width: usize) {
    let line = 64 / size_of::<T>();
    for l in 0..width.div_ceil(line).min(4) {
        prefetch(x, at + l * line);
    }
}

pub(crate) fn scatter_add<T: Real>(
    exec: &Exec,
    rows: &[u32],
    x: &[T],
    width: u32,
    y: &mut [T],
) -> Result<(), HostError> {
    let width = shape::width("scatter_add", width)?;
    let have = shape::rows("scatter_add", "y", y.len(), width)?;
    let want = shape::product("scatter_add", "x", rows.len(), width)?;
    shape::len("scatter_add", "x", x.len(), want, "rows × width")?;
    shape::bounded("scatter_add", "rows", rows, have, "y")?;
    let work = x.len() as u64;
    let piece = own(exec, work, have, width);
    exec.each_piece(work, y, piece * width, |i, y| scatter_piece(exec.arch, rows, x, width, i * piece, y));
    Ok(())
}

/// Rows of the target that one task owns. Every task reads all entries and adds those that fall to it, so that each row
/// receives its terms in their order: the bits depend on no split. Whether an entry falls to a task cannot be predicted,
/// which with narrow rows costs more than adding them, so one task does it.
pub(crate) fn own(exec: &Exec, work: u64, rows: usize, width: usize) -> usize {
    let tasks = if width < 64 { 1 } else { exec.threads_for(work) };
    rows.div_ceil(tasks).max(1)
}

simd! {
    fn scatter_piece<'a, T: Real>(rows: &'a [u32], x: &'a [T], width: usize, first: usize, y: &'a mut [T]) -> () {
        let owned = y.len() / width;
        for (row, x) in rows.iter().zip(x.chunks_exact(width)) {
            let row = (*row as usize).wrapping_sub(first);
            if row < owned {
                for (y, x) in y[row * width..][..width].iter_mut().zip(x) {
                    *y = *y + *x;
                }
            }
        }
    }
}
