//! Typed arrays: the one representation of numbers between files, tables, buffers and guests.

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

impl DType {
    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 => 1,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// Whether a table may hold it: f32, f64, i32, i64.
    pub const fn is_table_type(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::I32 | DType::I64)
    }
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

/// A value that arrays can hold.
pub trait Element: Copy + Default + PartialEq + Send + Sync + bytemuck::Pod + fmt::Debug + 'static {
    /// Its tag.
    const DTYPE: DType;
    /// Adds; integers wrap, so that no sum of deltas can abort a shard.
    fn plus(self, other: Self) -> Self;
    /// Nearest value of this type (truncating and saturating for integers).
    fn from_f64(value: f64) -> Self;
    /// As f64, for norms and reports.
    fn to_f64(self) -> f64;
    /// The vector inside `values` when the type agrees.
    fn of(values: &Values) -> Option<&Vec<Self>>;
    /// The same, mutable.
    fn of_mut(values: &mut Values) -> Option<&mut Vec<Self>>;
    /// The slice inside `values` when the type agrees.
    fn slice(values: ValuesRef<'_>) -> Option<&[Self]>;
    /// The same, mutable.
    fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]>;
    /// Wraps a vector.
    fn wrap(values: Vec<Self>) -> Values;
    /// Wraps a slice.
    fn wrap_ref(values: &[Self]) -> ValuesRef<'_>;
    /// Wraps a mutable slice.
    fn wrap_mut(values: &mut [Self]) -> ValuesMut<'_>;
}

/// Runs `$body` with `$v` bound to the typed vector or slice inside any of the three enums.
#[macro_export]
macro_rules! each_dtype {
    ($enum:ident, $value:expr, $v:ident => $body:expr) => {
        match $value {
            $crate::values::$enum::F32($v) => $body,
            $crate::values::$enum::F64($v) => $body,
            $crate::values::$enum::I32($v) => $body,
            $crate::values::$enum::I64($v) => $body,
            $crate::values::$enum::U32($v) => $body,
            $crate::values::$enum::U64($v) => $body,
            $crate::values::$enum::U8($v) => $body,
        }
    };
}

macro_rules! arrays {
    ($($variant:ident $ty:ty, $plus:expr;)*) => {
        /// An owned typed array.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Values { $($variant(Vec<$ty>),)* }

        /// A borrowed typed array.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub enum ValuesRef<'a> { $($variant(&'a [$ty]),)* }

        /// A mutably borrowed typed array.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum ValuesMut<'a> { $($variant(&'a mut [$ty]),)* }

        impl Values {
            /// `len` zeros.
            pub fn zeros(dtype: DType, len: usize) -> Self {
                match dtype { $(DType::$variant => Values::$variant(vec![<$ty>::default(); len]),)* }
            }

            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(Values::$variant(_) => DType::$variant,)* }
            }

            /// Number of values.
            pub fn len(&self) -> usize {
                match self { $(Values::$variant(v) => v.len(),)* }
            }

            /// Grows with zeros or shortens.
            pub fn resize(&mut self, len: usize) {
                match self { $(Values::$variant(v) => v.resize(len, <$ty>::default()),)* }
            }

            /// Appends values of the same type; `false`, and nothing is changed, when the type differs.
            pub fn extend(&mut self, more: ValuesRef<'_>) -> bool {
                match (self, more) {
                    $((Values::$variant(a), ValuesRef::$variant(b)) => a.extend_from_slice(b),)*
                    _ => return false,
                }
                true
            }

            /// Borrows all of it.
            pub fn as_ref(&self) -> ValuesRef<'_> {
                match self { $(Values::$variant(v) => ValuesRef::$variant(v),)* }
            }

            /// Borrows all of it mutably.
            pub fn as_mut(&mut self) -> ValuesMut<'_> {
                match self { $(Values::$variant(v) => ValuesMut::$variant(v),)* }
            }

            /// The values as bytes in this machine's order (little-endian on every supported target).
            pub fn bytes(&self) -> &[u8] {
                match self { $(Values::$variant(v) => bytemuck::cast_slice(v),)* }
            }

            /// From bytes written by [`Values::bytes`]; `None` when they are no whole number of values.
            pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Option<Self> {
                if bytes.len() % dtype.size() != 0 {
                    return None;
                }
                Some(match dtype { $(DType::$variant => {
                    let mut v = vec![<$ty>::default(); bytes.len() / dtype.size()];
                    bytemuck::cast_slice_mut(&mut v).copy_from_slice(bytes);
                    Values::$variant(v)
                })* })
            }
        }

        impl<'a> ValuesRef<'a> {
            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(ValuesRef::$variant(_) => DType::$variant,)* }
            }

            /// Number of values.
            pub fn len(&self) -> usize {
                match self { $(ValuesRef::$variant(v) => v.len(),)* }
            }

            /// `n` values from `at`; `None` beyond the end.
            pub fn window(&self, at: usize, n: usize) -> Option<ValuesRef<'a>> {
                let end = at.checked_add(n)?;
                Some(match self { $(ValuesRef::$variant(v) => ValuesRef::$variant(v.get(at..end)?),)* })
            }

            /// An owned copy.
            pub fn to_values(&self) -> Values {
                match self { $(ValuesRef::$variant(v) => Values::$variant(v.to_vec()),)* }
            }
        }

        impl<'a> ValuesMut<'a> {
            /// What it holds.
            pub fn dtype(&self) -> DType {
                match self { $(ValuesMut::$variant(_) => DType::$variant,)* }
            }

            /// Number of values.
            pub fn len(&self) -> usize {
                match self { $(ValuesMut::$variant(v) => v.len(),)* }
            }

            /// `n` values from `at`; `None` beyond the end.
            pub fn window(self, at: usize, n: usize) -> Option<ValuesMut<'a>> {
                let end = at.checked_add(n)?;
                Some(match self { $(ValuesMut::$variant(v) => ValuesMut::$variant(v.get_mut(at..end)?),)* })
            }

            /// Copies `from` over it; `false` when type or length differ.
            pub fn copy_from(self, from: ValuesRef<'_>) -> bool {
                match (self, from) {
                    $((ValuesMut::$variant(a), ValuesRef::$variant(b)) if a.len() == b.len() => a.copy_from_slice(b),)*
                    _ => return false,
                }
                true
            }

            /// Adds `from` to it; `false` when type or length differ.
            pub fn accumulate(self, from: ValuesRef<'_>) -> bool {
                match (self, from) {
                    $((ValuesMut::$variant(a), ValuesRef::$variant(b)) if a.len() == b.len() => {
                        a.iter_mut().zip(b).for_each(|(a, b)| *a = a.plus(*b));
                    })*
                    _ => return false,
                }
                true
            }

            /// A shorter borrow of the same values.
            pub fn reborrow(&mut self) -> ValuesMut<'_> {
                match self { $(ValuesMut::$variant(v) => ValuesMut::$variant(v),)* }
            }
        }

        $(impl Element for $ty {
            const DTYPE: DType = DType::$variant;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { let f: fn($ty, $ty) -> $ty = $plus; f(self, other) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $ty }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            fn of(values: &Values) -> Option<&Vec<Self>> {
                match values { Values::$variant(v) => Some(v), _ => None }
            }
            fn of_mut(values: &mut Values) -> Option<&mut Vec<Self>> {
                match values { Values::$variant(v) => Some(v), _ => None }
            }
            fn slice(values: ValuesRef<'_>) -> Option<&[Self]> {
                match values { ValuesRef::$variant(v) => Some(v), _ => None }
            }
            fn slice_mut(values: ValuesMut<'_>) -> Option<&mut [Self]> {
                match values { ValuesMut::$variant(v) => Some(v), _ => None }
            }
            fn wrap(values: Vec<Self>) -> Values { Values::$variant(values) }
            fn wrap_ref(values: &[Self]) -> ValuesRef<'_> { ValuesRef::$variant(values) }
            fn wrap_mut(values: &mut [Self]) -> ValuesMut<'_> { ValuesMut::$variant(values) }
        })*
    };
}

arrays! {
    F32 f32, |a, b| a + b;
    F64 f64, |a, b| a + b;
    I32 i32, |a, b| a.wrapping_add(b);
    I64 i64, |a, b| a.wrapping_add(b);
    U32 u32, |a, b| a.wrapping_add(b);
    U64 u64, |a, b| a.wrapping_add(b);
    U8 u8, |a, b| a.wrapping_add(b);
}

impl Values {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesRef<'_> {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesMut<'_> {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_refuse_a_torn_tail() {
        let v = Values::I64(vec![1, -2, i64::MAX]);
        assert_eq!(Values::from_bytes(DType::I64, v.bytes()), Some(v.clone()));
        assert_eq!(Values::from_bytes(DType::I64, &v.bytes()[..23]), None);
    }

    #[test]
    fn windows_beyond_the_end_are_refused_without_overflow() {
        let v = Values::F32(vec![0.0; 4]);
        assert!(v.as_ref().window(1, 3).is_some());
        assert!(v.as_ref().window(2, 3).is_none());
        assert!(v.as_ref().window(usize::MAX, 2).is_none());
    }
}
