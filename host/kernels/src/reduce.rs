//! Many values to one: `reduce`.

use crate::blas1::PIECE;
use crate::exec::{Exec, simd};
use crate::lanes::{BLOCK, Fold, Sum};
use crate::real::Real;
use crate::shape;
use slackline_core::HostError;

/// What `reduce` knows.
pub(crate) const OPS: [&str; 6] = ["sum", "min", "max", "sum-squares", "sum-abs", "max-abs"];

pub(crate) fn reduce<T: Real>(exec: &Exec, op: &str, x: &[T]) -> Result<f64, HostError> {
    Ok(match op {
        "sum" => total::<T, Sum>(exec, x),
        "sum-squares" => total::<T, SumSquares>(exec, x),
        "sum-abs" => total::<T, SumAbs>(exec, x),
        "min" => best::<T, Min>(exec, x),
        "max" => best::<T, Max>(exec, x),
        "max-abs" => best::<T, MaxAbs>(exec, x),
        _ => return Err(shape::invalid("reduce", shape::unknown(op, &OPS))),
    })
}

fn total<T: Real, M: Fold>(exec: &Exec, x: &[T]) -> f64 {
    let mut total = 0.0;
    let piece = |i: usize| sum_piece::<T, M>(exec.arch, &x[i * PIECE..x.len().min((i + 1) * PIECE)]);
    exec.fold(x.len() as u64, x.len().div_ceil(PIECE), piece, |part| total += part);
    total
}

fn best<T: Real, M: Fold>(exec: &Exec, x: &[T]) -> f64 {
    let mut best: T = M::start();
    let piece = |i: usize| extreme_piece::<T, M>(exec.arch, &x[i * PIECE..x.len().min((i + 1) * PIECE)]);
    exec.fold(x.len() as u64, x.len().div_ceil(PIECE), piece, |part| best = M::join(best, part));
    best.to_f64()
}

simd! {
    fn sum_piece<'a, T: Real, M: Fold>(x: &'a [T]) -> f64 {
        let mut total = 0.0;
        for x in x.chunks(BLOCK) {
            total += T::fold_block::<M>(x).to_f64();
        }
        total
    }
}

simd! {
    fn extreme_piece<'a, T: Real, M: Fold>(x: &'a [T]) -> T { T::fold_block::<M>(x) }
}

macro_rules! sum {
    ($name:ident, $x:ident => $term:expr) => {
        struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn start<T: Real>() -> T {
                T::ZERO
            }
            #[inline(always)]
            fn take<T: Real>(so_far: T, $x: T) -> T {
                so_far + $term
            }
            #[inline(always)]
            fn join<T: Real>(a: T, b: T) -> T {
                a + b
            }
        }
    };
}

sum!(SumSquares, x => x * x);
sum!(SumAbs, x => x.abs());

macro_rules! extreme {
    ($name:ident, $start:expr, $x:ident => $of:expr, $better:tt) => {
        pub(crate) struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn start<T: Real>() -> T {
                $start
            }
            #[inline(always)]
            fn take<T: Real>(so_far: T, $x: T) -> T {
                Self::join(so_far, $of)
            }
            /// The better, or the NaN: a NaN in `a` stays, since nothing is better than it.
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn join<T: Real>(a: T, b: T) -> T {
                if (b $better a) | (b != b) { b } else { a }
            }
        }
    };
}

extreme!(Min, T::INFINITY, x => x, <);
extreme!(Max, -T::INFINITY, x => x, >);
extreme!(MaxAbs, T::ZERO, x => x.abs(), >);
