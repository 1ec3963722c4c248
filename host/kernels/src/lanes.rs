//! Reductions over one block in a fixed number of lanes.
//!
//! A vector machine sums in as many lanes as its registers hold, which would make the result depend on the machine.
//! Here the number of lanes is part of the definition (four vectors of 64 bytes, enough to hide the latency of an
//! addition in AVX-512), so every machine takes the same sum. Blocks of [`BLOCK`] values are summed in the value's own
//! type, and blocks are added up in f64: the rounding error of an f32 sum stays that of a sum of about a hundred
//! values, however long it is.
//!
//! Loops here have constant bounds and arrays constant indices once unrolled: one variable index would put the lanes
//! on the stack.

use crate::real::Real;
use std::hint::black_box;

/// Values in a block.
pub(crate) const BLOCK: usize = 4096;

/// Lanes for what the vectors leave over, so that short rows are not summed one by one.
const TAIL: usize = 8;

/// A reduction: what it starts from, how it takes a value, how it joins two results.
pub(crate) trait Fold {
    fn start<T: Real>() -> T;
    fn take<T: Real>(so_far: T, x: T) -> T;
    fn join<T: Real>(a: T, b: T) -> T;
}

/// Σ x·y; the slices have one length. `W` values are a vector.
#[inline(always)]
pub(crate) fn dot<T: Real, const W: usize>(x: &[T], y: &[T]) -> T {
    let (xv, yv) = (x.as_chunks::<W>().0, y.as_chunks::<W>().0);
    let (xs, ys) = (xv.as_chunks::<4>().0, yv.as_chunks::<4>().0);
    let mut total = T::ZERO;
    if !xs.is_empty() {
        let [mut a, mut b, mut c, mut d] = [[T::ZERO; W]; 4];
        for (x, y) in xs.iter().zip(ys) {
            add_products(&mut a, &x[0], &y[0]);
            add_products(&mut b, &x[1], &y[1]);
            add_products(&mut c, &x[2], &y[2]);
            add_products(&mut d, &x[3], &y[3]);
        }
        // Hides the shape of the tree, from which the compiler would else derive vectors of two lanes for the loop.
        total = join_vectors::<T, Sum, W>(black_box([a, b, c, d]));
    }
    let done = xs.len() * 4 * W;
    let (xt, x) = x[done..].as_chunks::<TAIL>();
    let (yt, y) = y[done..].as_chunks::<TAIL>();
    if !xt.is_empty() {
        let mut acc = [T::ZERO; TAIL];
        for (x, y) in xt.iter().zip(yt) {
            add_products(&mut acc, x, y);
        }
        total = total + join_lanes::<T, Sum, TAIL>(acc);
    }
    for (a, b) in x.iter().zip(y) {
        total = total + *a * *b;
    }
    total
}

/// `F` over x.
#[inline(always)]
pub(crate) fn fold<T: Real, F: Fold, const W: usize>(x: &[T]) -> T {
    let xs = x.as_chunks::<W>().0.as_chunks::<4>().0;
    let mut total = F::start();
    if !xs.is_empty() {
        let [mut a, mut b, mut c, mut d] = [[F::start(); W]; 4];
        for x in xs {
            take_each::<T, F, W>(&mut a, &x[0]);
            take_each::<T, F, W>(&mut b, &x[1]);
            take_each::<T, F, W>(&mut c, &x[2]);
            take_each::<T, F, W>(&mut d, &x[3]);
        }
        total = join_vectors::<T, F, W>(black_box([a, b, c, d]));
    }
    let (xt, x) = x[xs.len() * 4 * W..].as_chunks::<TAIL>();
    if !xt.is_empty() {
        let mut acc = [F::start(); TAIL];
        for x in xt {
            take_each::<T, F, TAIL>(&mut acc, x);
        }
        total = F::join(total, join_lanes::<T, F, TAIL>(acc));
    }
    for x in x {
        total = F::take(total, *x);
    }
    total
}

/// The products first and as an array of their own, which the compiler then keeps as one vector.
#[inline(always)]
fn add_products<T: Real, const W: usize>(acc: &mut [T; W], x: &[T; W], y: &[T; W]) {
    let mut products = [T::ZERO; W];
    for l in 0..W {
        products[l] = x[l] * y[l];
    }
    for l in 0..W {
        acc[l] = acc[l] + products[l];
    }
}

#[inline(always)]
fn take_each<T: Real, F: Fold, const W: usize>(acc: &mut [T; W], x: &[T; W]) {
    for l in 0..W {
        acc[l] = F::take(acc[l], x[l]);
    }
}

#[inline(always)]
fn join_vectors<T: Real, F: Fold, const W: usize>(acc: [[T; W]; 4]) -> T {
    let mut lanes = acc[0];
    for l in 0..W {
        lanes[l] = F::join(F::join(acc[0][l], acc[1][l]), F::join(acc[2][l], acc[3][l]));
    }
    join_lanes::<T, F, W>(lanes)
}

/// Joins up to 16 lanes by halves: the same tree on every machine.
#[inline(always)]
fn join_lanes<T: Real, F: Fold, const W: usize>(mut acc: [T; W]) -> T {
    const { assert!(W == 16 || W == 8) };
    if W == 16 {
        for l in 0..W / 2 {
            acc[l] = F::join(acc[l], acc[l + W / 2]);
        }
    }
    let fours = [F::join(acc[0], acc[4]), F::join(acc[1], acc[5]), F::join(acc[2], acc[6]), F::join(acc[3], acc[7])];
    F::join(F::join(fours[0], fours[2]), F::join(fours[1], fours[3]))
}

/// Σ x.
pub(crate) struct Sum;

impl Fold for Sum {
    #[inline(always)]
    fn start<T: Real>() -> T {
        T::ZERO
    }
    #[inline(always)]
    fn take<T: Real>(so_far: T, x: T) -> T {
        so_far + x
    }
    #[inline(always)]
    fn join<T: Real>(a: T, b: T) -> T {
        a + b
    }
}
