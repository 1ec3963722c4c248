//! A column while its rows are being read: values come in one by one, in whatever type the file has, and stay only
//! when their row turns out to be sound.

use crate::dictionary::Coder;
use crate::number::{Misfit, Number, parse_f64, parse_i128};
use crate::survey::Survey;
use slackline_core::each_dtype;
use slackline_core::random::mix;
use slackline_core::values::{DType, Element, Values, ValuesRef};

/// What becomes of the values.
enum Kind {
    /// They stay numbers.
    Plain,
    /// They become codes.
    Coded(Box<Coder>),
    /// They become hashes, by which rows find their worker.
    Hashed,
    /// They are counted and described, not kept.
    Survey(Box<Survey>),
}

/// A column that grows.
pub(crate) struct Builder {
    values: Values,
    /// For lists: the end of each row, after a first 0.
    offsets: Option<Vec<i32>>,
    /// Values of accepted rows; those behind it belong to the row being read.
    kept: usize,
    kind: Kind,
}

/// The rows of a column since the last time it was taken.
pub(crate) struct Taken {
    pub(crate) values: Values,
    pub(crate) offsets: Option<Vec<i32>>,
}

impl Builder {
    fn new(dtype: DType, list: bool, kind: Kind) -> Self {
        Self { values: Values::zeros(dtype, 0), offsets: list.then(|| vec![0]), kept: 0, kind }
    }

    pub(crate) fn plain(dtype: DType, list: bool) -> Self {
        Self::new(dtype, list, Kind::Plain)
    }

    pub(crate) fn coded(list: bool) -> Self {
        Self::new(DType::U32, list, Kind::Coded(Box::default()))
    }

    pub(crate) fn hashed() -> Self {
        Self::new(DType::U32, false, Kind::Hashed)
    }

    pub(crate) fn survey(list: bool) -> Self {
        Self::new(DType::U8, list, Kind::Survey(Box::default()))
    }

    /// What the column asks of a value, for messages.
    pub(crate) fn expects(&self, why: Misfit) -> String {
        let dtype = self.values.dtype();
        match (why, &self.kind) {
            (Misfit::Missing, _) => "a value".into(),
            (Misfit::NotText, _) => "text in UTF-8".into(),
            (Misfit::NotFinite, _) => "a finite number".into(),
            (Misfit::Range, Kind::Plain) => format!("a number that {dtype} can hold without loss"),
            (Misfit::Range, _) => "fewer distinct values".into(),
            (Misfit::NotNumber, _) => format!("a number ({dtype})"),
        }
    }

    /// Adds a value written as text.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &[u8]) -> Result<(), Misfit> {
        if text.is_empty() {
            return Err(Misfit::Missing);
        }
        match &mut self.kind {
            Kind::Plain => each_dtype!(Values, &mut self.values, v => v.push(Number::of_text(text)?)),
            Kind::Coded(coder) => {
                let code = coder.text(text)?;
                self.push_u32(code);
            }
            Kind::Hashed => self.push_u32(hash_text(text)),
            Kind::Survey(survey) => survey.text(text)?,
        }
        Ok(())
    }

    /// Adds an integer.
    #[inline]
    pub(crate) fn push_int(&mut self, value: i128) -> Result<(), Misfit> {
        match &mut self.kind {
            Kind::Plain => each_dtype!(Values, &mut self.values, v => v.push(Number::of_int(value)?)),
            Kind::Coded(coder) => {
                let code = coder.int(i64::of_int(value)?)?;
                self.push_u32(code);
            }
            Kind::Hashed => self.push_u32(hash_int(value)),
            Kind::Survey(survey) => survey.int(value),
        }
        Ok(())
    }

    /// Adds a real.
    #[inline]
    pub(crate) fn push_real(&mut self, value: f64) -> Result<(), Misfit> {
        match &mut self.kind {
            Kind::Plain => each_dtype!(Values, &mut self.values, v => v.push(Number::of_real(value)?)),
            Kind::Coded(coder) => {
                let code = coder.real(value)?;
                self.push_u32(code);
            }
            Kind::Hashed => self.push_u32(hash_real(value)),
            Kind::Survey(survey) => survey.real(value)?,
        }
        Ok(())
    }

    /// Adds many values of one type; where the column has the same, they are copied as a block. On a misfit, says at
    /// which value.
    pub(crate) fn push_values(&mut self, values: ValuesRef<'_>) -> Result<(), (usize, Misfit)> {
        if matches!(self.kind, Kind::Plain) && self.values.dtype() == values.dtype() {
            return extend(&mut self.values, values);
        }
        macro_rules! each {
            ($slice:expr, $push:ident, $as:ty) => {
                for (i, v) in $slice.iter().enumerate() {
                    self.$push(<$as>::from(*v)).map_err(|e| (i, e))?;
                }
            };
        }
        match values {
            ValuesRef::F32(v) => each!(v, push_real, f64),
            ValuesRef::F64(v) => each!(v, push_real, f64),
            ValuesRef::I32(v) => each!(v, push_int, i128),
            ValuesRef::I64(v) => each!(v, push_int, i128),
            ValuesRef::U32(v) => each!(v, push_int, i128),
            ValuesRef::U64(v) => each!(v, push_int, i128),
            ValuesRef::U8(v) => each!(v, push_int, i128),
        }
        Ok(())
    }

    fn push_u32(&mut self, value: u32) {
        if let Values::U32(v) = &mut self.values {
            v.push(value);
        }
    }

    /// Accepts the row being read. `false` when a column of single values did not get exactly one, or when the lists
    /// since the last take are longer than an offset can say.
    #[inline]
    pub(crate) fn commit(&mut self) -> bool {
        if let Kind::Survey(survey) = &mut self.kind {
            return survey.commit(self.offsets.is_some());
        }
        let len = self.values.len();
        let sound = match &mut self.offsets {
            Some(offsets) => i32::try_from(len).is_ok_and(|end| {
                offsets.push(end);
                true
            }),
            None => len == self.kept + 1,
        };
        if sound {
            self.kept = len;
        }
        sound
    }

    /// Forgets the row being read.
    pub(crate) fn rollback(&mut self) {
        self.values.resize(self.kept);
        if let Kind::Survey(survey) = &mut self.kind {
            survey.rollback();
        }
    }

    /// Bytes that the accepted rows hold.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.values.len() * self.values.dtype().size() + self.offsets.as_ref().map_or(0, |o| o.len() * 4)
    }

    /// Takes the accepted rows out, between two rows.
    pub(crate) fn take(&mut self) -> Taken {
        let fresh = Values::zeros(self.values.dtype(), 0);
        let values = std::mem::replace(&mut self.values, fresh);
        let offsets = self.offsets.as_mut().map(|o| std::mem::replace(o, vec![0]));
        self.kept = 0;
        if let (Kind::Coded(coder), Values::U32(codes)) = (&mut self.kind, &values) {
            coder.accept(codes);
        }
        Taken { values, offsets }
    }

    /// The coder of a coded column whose rows have all been taken.
    pub(crate) fn into_coder(self) -> Option<Coder> {
        match self.kind {
            Kind::Coded(coder) => Some(*coder),
            _ => None,
        }
    }

    /// What a survey found.
    pub(crate) fn into_survey(self) -> Option<Survey> {
        match self.kind {
            Kind::Survey(survey) => Some(*survey),
            _ => None,
        }
    }
}

fn extend(to: &mut Values, from: ValuesRef<'_>) -> Result<(), (usize, Misfit)> {
    fn copy<T: Element>(to: &mut Vec<T>, from: ValuesRef<'_>) {
        if let Some(from) = T::slice(from) {
            to.extend_from_slice(from);
        }
    }
    let bad = match from {
        ValuesRef::F32(v) => v.iter().position(|x| !x.is_finite()),
        ValuesRef::F64(v) => v.iter().position(|x| !x.is_finite()),
        _ => None,
    };
    if let Some(at) = bad {
        return Err((at, Misfit::NotFinite));
    }
    each_dtype!(Values, to, v => copy(v, from));
    Ok(())
}

/// Equal numbers have equal hashes, whatever type or spelling the file gives them: a row of one user must find the same
/// worker from every file.
fn hash_text(text: &[u8]) -> u32 {
    if let Ok(v) = parse_i128(text) {
        return hash_int(v);
    }
    if let Ok(v) = parse_f64(text) {
        return hash_real(v);
    }
    let mut h = mix(text.len() as u64);
    for word in text.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        h = mix(h ^ u64::from_le_bytes(bytes));
    }
    (h >> 32) as u32
}

fn hash_int(v: i128) -> u32 {
    (mix(v as u64) >> 32) as u32
}

fn hash_real(v: f64) -> u32 {
    i64::of_real(v).map_or_else(|_| (mix(!v.to_bits()) >> 32) as u32, |v| hash_int(v.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_hash_in_every_type_and_spelling() {
        let want = hash_int(383);
        assert_eq!([hash_text(b"383"), hash_text(b"383.0"), hash_text(b"0383"), hash_real(383.0)], [want; 4]);
        assert_eq!(hash_text(b"0.5"), hash_real(0.5));
        assert_ne!(hash_text(b"ab"), hash_text(b"ab\0"));
    }

    #[test]
    fn a_row_that_is_rolled_back_leaves_nothing() {
        let mut b = Builder::plain(DType::F32, true);
        b.push_text(b"1").unwrap();
        assert!(b.commit());
        b.push_text(b"2").unwrap();
        b.push_text(b"oops").unwrap_err();
        b.rollback();
        b.push_values(ValuesRef::F32(&[3.0, 4.0])).unwrap();
        assert!(b.commit());
        let taken = b.take();
        assert_eq!(taken.values, Values::F32(vec![1.0, 3.0, 4.0]));
        assert_eq!(taken.offsets, Some(vec![0, 1, 3]));
    }
}
