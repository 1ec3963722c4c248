//! Value by value: `map`, `soft_threshold`; and row by row: `softmax_rows`.

use crate::blas1::PIECE;
use crate::exec::{Exec, simd};
use crate::lanes::Sum;
use crate::real::Real;
use crate::reduce::Max;
use crate::shape;
use slackline_core::HostError;

/// What `map` knows.
pub(crate) const OPS: [&str; 10] = ["exp", "ln", "sqrt", "abs", "neg", "recip", "square", "sigmoid", "tanh", "relu"];

/// How many loop turns an elementary function is worth.
const ELEMENTARY: u64 = 4;

pub(crate) fn map<T: Real>(exec: &Exec, op: &str, x: &mut [T]) -> Result<(), HostError> {
    match op {
        "exp" => each::<T, Exp>(exec, ELEMENTARY, x),
        "ln" => each::<T, Ln>(exec, ELEMENTARY, x),
        "sqrt" => each::<T, Sqrt>(exec, 1, x),
        "abs" => each::<T, Abs>(exec, 1, x),
        "neg" => each::<T, Negate>(exec, 1, x),
        "recip" => each::<T, Recip>(exec, 1, x),
        "square" => each::<T, Square>(exec, 1, x),
        "sigmoid" => each::<T, Sigmoid>(exec, ELEMENTARY, x),
        "tanh" => each::<T, Tanh>(exec, ELEMENTARY, x),
        "relu" => each::<T, Relu>(exec, 1, x),
        _ => return Err(shape::invalid("map", shape::unknown(op, &OPS))),
    }
    Ok(())
}

trait Map {
    fn map<T: Real>(x: T) -> T;
}

fn each<T: Real, M: Map>(exec: &Exec, weight: u64, x: &mut [T]) {
    exec.each_piece(weight * x.len() as u64, x, PIECE, |_, x| map_piece::<T, M>(exec.arch, x));
}

simd! {
    fn map_piece<'a, T: Real, M: Map>(x: &'a mut [T]) -> () {
        for x in x {
            *x = M::map(*x);
        }
    }
}

macro_rules! map {
    ($name:ident, $x:ident => $map:expr) => {
        struct $name;
        impl Map for $name {
            #[inline(always)]
            fn map<T: Real>($x: T) -> T {
                $map
            }
        }
    };
}

map!(Exp, x => x.exp());
map!(Ln, x => x.ln());
map!(Sqrt, x => x.sqrt());
map!(Abs, x => x.abs());
map!(Negate, x => -x);
map!(Recip, x => T::ONE / x);
map!(Square, x => x * x);
map!(Sigmoid, x => T::ONE / (T::ONE + (-x).exp()));
map!(Tanh, x => x.tanh());
// A comparison, not a maximum, so that NaN stays NaN.
map!(Relu, x => if x < T::ZERO { T::ZERO } else { x });

pub(crate) fn soft_threshold<T: Real>(exec: &Exec, x: &mut [T], t: f64) -> Result<(), HostError> {
    if t.is_nan() || t < 0.0 {
        return Err(shape::invalid("soft_threshold", format_args!("t is {t} and needs to be 0 or more")));
    }
    let t = T::from_f64(t);
    exec.each_piece(x.len() as u64, x, PIECE, |_, x| soft_piece(exec.arch, t, x));
    Ok(())
}

simd! {
    fn soft_piece<'a, T: Real>(t: T, x: &'a mut [T]) -> () {
        for x in x {
            let beyond = x.abs() - t;
            *x = if beyond <= T::ZERO { T::ZERO } else { beyond.copysign(*x) };
        }
    }
}

pub(crate) fn softmax_rows<T: Real>(exec: &Exec, x: &mut [T], width: u32) -> Result<(), HostError> {
    let width = shape::width("softmax_rows", width)?;
    shape::rows("softmax_rows", "x", x.len(), width)?;
    // Rows go in groups that fit the first-level cache: narrow rows share one pass of exp, which alone is costly.
    let group = (1024 / width).max(1) * width;
    exec.each_piece(2 * ELEMENTARY * x.len() as u64, x, group, |_, x| softmax_group(exec.arch, x, width));
    Ok(())
}

simd! {
    fn softmax_group<'a, T: Real>(x: &'a mut [T], width: usize) -> () {
        for row in x.chunks_exact_mut(width) {
            let max = T::fold_block::<Max>(row);
            for x in row {
                *x = *x - max;
            }
        }
        for x in x.iter_mut() {
            *x = x.exp();
        }
        for row in x.chunks_exact_mut(width) {
            let scale = T::ONE / T::fold_block::<Sum>(row);
            for x in row {
                *x = *x * scale;
            }
        }
    }
}
