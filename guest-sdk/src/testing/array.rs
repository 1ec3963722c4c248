//! The test host's typed arrays and the windows of them that plugins hold.

use crate::element::{DType, Element, ValuesMut, ValuesRef};
use crate::error::{Error, Result};
use crate::native::Handle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An owned array of any element type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Array {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    U8(Vec<u8>),
}

macro_rules! each {
    ($value:expr, $v:ident => $body:expr) => {
        match $value {
            Array::F32($v) => $body,
            Array::F64($v) => $body,
            Array::I32($v) => $body,
            Array::I64($v) => $body,
            Array::U32($v) => $body,
            Array::U64($v) => $body,
            Array::U8($v) => $body,
        }
    };
}

impl Array {
    pub fn zeros(dtype: DType, len: usize) -> Self {
        match dtype {
            DType::F32 => Array::F32(vec![0.0; len]),
            DType::F64 => Array::F64(vec![0.0; len]),
            DType::I32 => Array::I32(vec![0; len]),
            DType::I64 => Array::I64(vec![0; len]),
            DType::U32 => Array::U32(vec![0; len]),
            DType::U64 => Array::U64(vec![0; len]),
            DType::U8 => Array::U8(vec![0; len]),
        }
    }

    pub fn of<T: Element>(values: &[T]) -> Self {
        match T::wrap(values) {
            ValuesRef::F32(v) => Array::F32(v.to_vec()),
            ValuesRef::F64(v) => Array::F64(v.to_vec()),
            ValuesRef::I32(v) => Array::I32(v.to_vec()),
            ValuesRef::I64(v) => Array::I64(v.to_vec()),
            ValuesRef::U32(v) => Array::U32(v.to_vec()),
            ValuesRef::U64(v) => Array::U64(v.to_vec()),
            ValuesRef::U8(v) => Array::U8(v.to_vec()),
        }
    }

    pub fn dtype(&self) -> DType {
        self.as_ref().dtype()
    }

    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    pub fn as_ref(&self) -> ValuesRef<'_> {
        each!(self, v => Element::wrap(v.as_slice()))
    }

    pub fn as_mut(&mut self) -> ValuesMut<'_> {
        each!(self, v => Element::wrap_mut(v.as_mut_slice()))
    }

    pub fn slice<T: Element>(&self) -> Option<&[T]> {
        T::unwrap(self.as_ref())
    }

    pub fn grow(&mut self, len: usize) {
        each!(self, v => if v.len() < len { v.resize(len, Default::default()) });
    }

    pub fn to_f64(&self) -> Vec<f64> {
        each!(self, v => v.iter().map(|x| x.to_f64()).collect())
    }

    /// The values at these places, in this order.
    pub fn pick(&self, places: impl Iterator<Item = usize>) -> Self {
        match self {
            Array::F32(v) => Array::F32(places.map(|i| v[i]).collect()),
            Array::F64(v) => Array::F64(places.map(|i| v[i]).collect()),
            Array::I32(v) => Array::I32(places.map(|i| v[i]).collect()),
            Array::I64(v) => Array::I64(places.map(|i| v[i]).collect()),
            Array::U32(v) => Array::U32(places.map(|i| v[i]).collect()),
            Array::U64(v) => Array::U64(places.map(|i| v[i]).collect()),
            Array::U8(v) => Array::U8(places.map(|i| v[i]).collect()),
        }
    }

    pub fn append(&mut self, other: &Array) -> Result<()> {
        match (self, other) {
            (Array::F32(a), Array::F32(b)) => a.extend_from_slice(b),
            (Array::F64(a), Array::F64(b)) => a.extend_from_slice(b),
            (Array::I32(a), Array::I32(b)) => a.extend_from_slice(b),
            (Array::I64(a), Array::I64(b)) => a.extend_from_slice(b),
            (Array::U32(a), Array::U32(b)) => a.extend_from_slice(b),
            (Array::U64(a), Array::U64(b)) => a.extend_from_slice(b),
            (Array::U8(a), Array::U8(b)) => a.extend_from_slice(b),
            (a, b) => return Err(Error::Invalid(format!("{} values after {}", b.dtype(), a.dtype()))),
        }
        Ok(())
    }
}

/// A window of an array; slices share it.
#[derive(Clone)]
pub(super) struct Window {
    array: Arc<Mutex<Array>>,
    at: usize,
    /// `None`: to the end, wherever that is (local state grows).
    len: Option<usize>,
    frozen: bool,
}

impl Window {
    pub fn live(array: Array) -> Self {
        Self { array: Arc::new(Mutex::new(array)), at: 0, len: None, frozen: false }
    }

    pub fn frozen(array: Array) -> Self {
        Self { frozen: true, ..Self::live(array) }
    }

    pub fn of(handle: &Handle) -> Result<&Self> {
        handle.downcast_ref().ok_or_else(|| Error::invalid("a handle that is no buffer of this host"))
    }

    pub fn handle(self) -> Handle {
        Arc::new(self)
    }

    fn lock(&self) -> MutexGuard<'_, Array> {
        self.array.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn dtype(&self) -> DType {
        self.lock().dtype()
    }

    pub fn len(&self) -> usize {
        self.len.unwrap_or_else(|| self.lock().len() - self.at)
    }

    pub fn grow(&self, len: usize) {
        self.lock().grow(len);
    }

    pub fn slice(&self, at: u64, n: u64) -> Result<Self> {
        let (at, n) = self.place(at, n as usize)?;
        Ok(Self { array: self.array.clone(), at, len: Some(n), frozen: self.frozen })
    }

    /// A window of this window as places of the array, when it lies inside.
    fn place(&self, at: u64, n: usize) -> Result<(usize, usize)> {
        let len = self.len();
        match at.checked_add(n as u64) {
            Some(end) if end <= len as u64 => Ok((self.at + at as usize, n)),
            _ => Err(Error::Invalid(format!("{n} values from {at} of a buffer of {len}"))),
        }
    }

    pub fn read(&self, at: u64, out: ValuesMut<'_>) -> Result<()> {
        let (at, n) = self.place(at, out.len())?;
        let array = self.lock();
        macro_rules! copy {
            ($out:expr) => {{
                let out = $out;
                let all = Element::unwrap(array.as_ref()).ok_or_else(|| wrong_type(&array, out_type(out)))?;
                out.copy_from_slice(&all[at..at + n]);
            }};
        }
        match out {
            ValuesMut::F32(o) => copy!(o),
            ValuesMut::F64(o) => copy!(o),
            ValuesMut::I32(o) => copy!(o),
            ValuesMut::I64(o) => copy!(o),
            ValuesMut::U32(o) => copy!(o),
            ValuesMut::U64(o) => copy!(o),
            ValuesMut::U8(o) => copy!(o),
        }
        Ok(())
    }

    pub fn write(&self, at: u64, values: ValuesRef<'_>) -> Result<()> {
        self.writable()?;
        let (at, n) = self.place(at, values.len())?;
        let mut array = self.lock();
        macro_rules! copy {
            ($values:expr) => {{
                let held = array.dtype();
                let all = Element::unwrap_mut(array.as_mut())
                    .ok_or_else(|| Error::Invalid(format!("a buffer of {held} written as {}", values.dtype())))?;
                all[at..at + n].copy_from_slice($values);
            }};
        }
        match values {
            ValuesRef::F32(v) => copy!(v),
            ValuesRef::F64(v) => copy!(v),
            ValuesRef::I32(v) => copy!(v),
            ValuesRef::I64(v) => copy!(v),
            ValuesRef::U32(v) => copy!(v),
            ValuesRef::U64(v) => copy!(v),
            ValuesRef::U8(v) => copy!(v),
        }
        Ok(())
    }

    pub fn writable(&self) -> Result<()> {
        if self.frozen { Err(Error::invalid("columns of a batch are read-only")) } else { Ok(()) }
    }

    pub fn shares_array(&self, other: &Window) -> bool {
        Arc::ptr_eq(&self.array, &other.array)
    }

    /// A copy of the window.
    pub fn to_array(&self) -> Array {
        let (at, n) = (self.at, self.len());
        self.lock().pick(at..at + n)
    }

    pub fn to_f64(&self) -> Vec<f64> {
        self.to_array().to_f64()
    }

    /// Overwrites the window with as many values as it has, each rounded to its type.
    pub fn set_f64(&self, values: &[f64]) -> Result<()> {
        self.writable()?;
        let at = self.at;
        each!(&mut *self.lock(), v => for (place, value) in v[at..].iter_mut().zip(values) {
            *place = Element::from_f64(*value);
        });
        Ok(())
    }
}

fn out_type<T: Element>(_: &[T]) -> DType {
    T::DTYPE
}

fn wrong_type(array: &Array, asked: DType) -> Error {
    Error::Invalid(format!("a buffer of {} read as {asked}", array.dtype()))
}
