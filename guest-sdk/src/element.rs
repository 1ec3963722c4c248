//! Types of numbers that cross the border, and typed slices of them.

use crate::sys;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed 32 bits.
    I32,
    /// Signed 64 bits.
    I64,
    /// Unsigned 32 bits.
    U32,
    /// Unsigned 64 bits.
    U64,
    /// A byte.
    U8,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::U8 => "u8",
        })
    }
}

/// A value that buffers and columns can hold. Implemented for f32, f64, i32, i64, u32, u64 and u8, and for nothing else.
pub trait Element:
    Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + sys::WireElement + 'static
{
    /// Its tag.
    const DTYPE: DType;
    /// Nearest value of this type (truncating and saturating for integers).
    fn from_f64(value: f64) -> Self;
    /// As f64.
    fn to_f64(self) -> f64;
    /// Adds; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// Wraps a slice.
    fn wrap(values: &[Self]) -> ValuesRef<'_>;
    /// Wraps a mutable slice.
    fn wrap_mut(values: &mut [Self]) -> ValuesMut<'_>;
    /// Wraps a vector.
    fn wrap_vec(values: &mut Vec<Self>) -> VecMut<'_>;
    /// The slice inside, when the type agrees.
    fn unwrap(values: ValuesRef<'_>) -> Option<&[Self]>;
    /// The mutable slice inside, when the type agrees.
    fn unwrap_mut(values: ValuesMut<'_>) -> Option<&mut [Self]>;
    /// The vector inside, when the type agrees.
    fn unwrap_vec(values: VecMut<'_>) -> Option<&mut Vec<Self>>;
}

/// A value that tables can hold: f32, f64, i32, i64.
pub trait TableElement: Element + sys::WireTableElement {}

/// A value that the floating kernels take: f32, f64.
pub trait Float: TableElement {}

macro_rules! elements {
    ($($variant:ident $ty:ty, $plus:expr;)*) => {
        /// A borrowed typed array.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub enum ValuesRef<'a> { $($variant(&'a [$ty]),)* }

        /// A mutably borrowed typed array.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum ValuesMut<'a> { $($variant(&'a mut [$ty]),)* }

        /// A mutably borrowed typed vector, for answers whose length only the host knows.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum VecMut<'a> { $($variant(&'a mut Vec<$ty>),)* }

        impl ValuesRef<'_> {
            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(ValuesRef::$variant(_) => DType::$variant,)* }
            }
            /// Number of values.
            pub fn len(&self) -> usize {
                match self { $(ValuesRef::$variant(v) => v.len(),)* }
            }
            /// Whether it holds nothing.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl ValuesMut<'_> {
            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(ValuesMut::$variant(_) => DType::$variant,)* }
            }
            /// Number of values.
            pub fn len(&self) -> usize {
                match self { $(ValuesMut::$variant(v) => v.len(),)* }
            }
            /// Whether it holds nothing.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl VecMut<'_> {
            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(VecMut::$variant(_) => DType::$variant,)* }
            }
        }

        $(impl Element for $ty {
            const DTYPE: DType = DType::$variant;
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $ty }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn plus(self, other: Self) -> Self { let f: fn($ty, $ty) -> $ty = $plus; f(self, other) }
            #[inline(always)]
            fn wrap(values: &[Self]) -> ValuesRef<'_> { ValuesRef::$variant(values) }
            #[inline(always)]
            fn wrap_mut(values: &mut [Self]) -> ValuesMut<'_> { ValuesMut::$variant(values) }
            #[inline(always)]
            fn wrap_vec(values: &mut Vec<Self>) -> VecMut<'_> { VecMut::$variant(values) }
            #[inline(always)]
            fn unwrap(values: ValuesRef<'_>) -> Option<&[Self]> {
                match values { ValuesRef::$variant(v) => Some(v), _ => None }
            }
            #[inline(always)]
            fn unwrap_mut(values: ValuesMut<'_>) -> Option<&mut [Self]> {
                match values { ValuesMut::$variant(v) => Some(v), _ => None }
            }
            #[inline(always)]
            fn unwrap_vec(values: VecMut<'_>) -> Option<&mut Vec<Self>> {
                match values { VecMut::$variant(v) => Some(v), _ => None }
            }
        })*
    };
}

elements! {
    F32 f32, |a, b| a + b;
    F64 f64, |a, b| a + b;
    I32 i32, |a, b| a.wrapping_add(b);
    I64 i64, |a, b| a.wrapping_add(b);
    U32 u32, |a, b| a.wrapping_add(b);
    U64 u64, |a, b| a.wrapping_add(b);
    U8 u8, |a, b| a.wrapping_add(b);
}

impl TableElement for f32 {}
impl TableElement for f64 {}
impl TableElement for i32 {}
impl TableElement for i64 {}
impl Float for f32 {}
impl Float for f64 {}
