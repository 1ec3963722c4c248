//! The two number types of the kernels, and the order in which their sums are taken.

use crate::{elementary, lanes};
use slackline_core::Element;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// f32 or f64.
pub(crate) trait Real:
    Element
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;

    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;

    /// Σ x·y of one block; see [`lanes`].
    fn dot_block(x: &[Self], y: &[Self]) -> Self;
    /// A reduction of one block.
    fn fold_block<F: lanes::Fold>(x: &[Self]) -> Self;
}

macro_rules! real {
    ($ty:ident, $lanes:literal, $exp:path, $ln:path, $tanh:path) => {
        impl Real for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $ty::INFINITY;

            #[inline(always)]
            fn abs(self) -> Self {
                $ty::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $ty::sqrt(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $ty::copysign(self, sign)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $ln(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $tanh(self)
            }
            #[inline(always)]
            fn dot_block(x: &[Self], y: &[Self]) -> Self {
                lanes::dot::<Self, $lanes>(x, y)
            }
            #[inline(always)]
            fn fold_block<F: lanes::Fold>(x: &[Self]) -> Self {
                lanes::fold::<Self, F, $lanes>(x)
            }
        }
    };
}

real!(f32, 16, elementary::exp_f32, elementary::ln_f32, elementary::tanh_f32);
real!(f64, 8, elementary::exp_f64, elementary::ln_f64, elementary::tanh_f64);
