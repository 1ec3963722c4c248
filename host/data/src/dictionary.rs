//! Codes for columns whose values are names: a value's code is its place among the distinct training values in
//! ascending order. Rows are coded while they are read, with codes in the order of first sight; when the dataset is
//! complete, a table from those to the final codes is made, and batches look codes up in it. So nothing is read twice,
//! and data that went to disk need not be rewritten.

use crate::number::{Misfit, parse_f64, parse_i128};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Dictionaries by column name: part of a job's state, so that `predict` codes as training did.
pub type Dictionaries = BTreeMap<String, Dictionary>;

/// The code of a value that training did not have.
pub const UNSEEN: u32 = u32::MAX;

/// The distinct values of a column, ascending. The place of a value is its code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dictionary {
    /// All are integers; numeric order.
    Int(Vec<i64>),
    /// All are numbers; numeric order.
    Real(#[serde(with = "bits")] Vec<f64>),
    /// Text; byte order.
    Text(Vec<String>),
}

impl Dictionary {
    /// Number of codes.
    pub fn len(&self) -> usize {
        match self {
            Dictionary::Int(v) => v.len(),
            Dictionary::Real(v) => v.len(),
            Dictionary::Text(v) => v.len(),
        }
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the codes stand for, as people write it.
    pub fn labels(&self) -> Vec<String> {
        match self {
            Dictionary::Int(v) => v.iter().map(i64::to_string).collect(),
            Dictionary::Real(v) => v.iter().map(f64::to_string).collect(),
            Dictionary::Text(v) => v.clone(),
        }
    }

    fn code(&self, key: &Key) -> Option<u32> {
        let place = match self {
            Dictionary::Int(v) => v.binary_search(&key.as_int()?),
            Dictionary::Real(v) => {
                let wanted = key.as_real()?;
                v.binary_search_by(|x| x.total_cmp(&wanted))
            }
            Dictionary::Text(v) => {
                let wanted = key.as_text();
                v.binary_search_by(|x| x.as_str().cmp(&wanted))
            }
        };
        place.ok().map(|i| i as u32)
    }

    /// Of all keys: integers if all are, else numbers if all are, else text.
    fn of<'a>(keys: impl Iterator<Item = &'a Key> + Clone) -> Self {
        fn collect<'a, T>(keys: impl Iterator<Item = &'a Key>, each: fn(&Key) -> Option<T>) -> Option<Vec<T>> {
            keys.map(each).collect()
        }
        if let Some(mut v) = collect(keys.clone(), Key::as_int) {
            v.sort_unstable();
            v.dedup();
            return Dictionary::Int(v);
        }
        if let Some(mut v) = collect(keys.clone(), Key::as_real) {
            v.sort_unstable_by(f64::total_cmp);
            v.dedup();
            return Dictionary::Real(v);
        }
        let mut v: Vec<String> = keys.map(Key::as_text).collect();
        v.sort_unstable();
        v.dedup();
        Dictionary::Text(v)
    }
}

/// Reals as their bits: text would need every reader to round alike.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(v: &[f64], s: S) -> Result<S::Ok, S::Error> {
        v.iter().map(|x| x.to_bits()).collect::<Vec<_>>().serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<u64>::deserialize(d)?.into_iter().map(f64::from_bits).collect())
    }
}

/// A value as the file has it. Integers in their usual spelling are always `Int`, so that the text can be had back.
#[derive(Clone, Debug)]
enum Key {
    Int(i64),
    Real(f64),
    Text(Box<str>),
}

impl Key {
    fn as_int(&self) -> Option<i64> {
        match self {
            Key::Int(v) => Some(*v),
            Key::Real(v) => (v.fract() == 0.0 && v.abs() <= 2f64.powi(53)).then_some(*v as i64),
            Key::Text(t) => parse_i128(t.as_bytes()).ok().and_then(|v| v.try_into().ok()),
        }
    }

    fn as_real(&self) -> Option<f64> {
        // −0 and 0 are one value.
        match self {
            Key::Int(v) => Some(*v as f64).filter(|x| *x as i128 == i128::from(*v)),
            Key::Real(v) => Some(*v + 0.0),
            Key::Text(t) => parse_f64(t.as_bytes()).ok().map(|v| v + 0.0),
        }
    }

    fn as_text(&self) -> String {
        match self {
            Key::Int(v) => v.to_string(),
            Key::Real(v) => v.to_string(),
            Key::Text(t) => t.to_string(),
        }
    }
}

/// The integer that `text` spells in the usual way: no plus sign, no leading zeros, no minus zero.
#[inline]
fn usual_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && (digits.len() > 1 || negative)) {
        return None;
    }
    let mut v = 0i64;
    for c in digits {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        v = v * 10 + i64::from(digit);
    }
    Some(if negative { -v } else { v })
}

/// Gives codes in the order of first sight.
#[derive(Default)]
pub(crate) struct Coder {
    /// Codes of small integers by value, plus one; most id columns need nothing else.
    small: Vec<u32>,
    ints: HashMap<i64, u32>,
    reals: HashMap<u64, u32>,
    texts: HashMap<Box<str>, u32>,
    keys: Vec<Key>,
    /// How many values of accepted rows have each code. A code without any comes from a row that was skipped.
    counts: Vec<u64>,
}

const SMALL: i64 = 1 << 20;

impl Coder {
    #[inline]
    pub(crate) fn int(&mut self, v: i64) -> Result<u32, Misfit> {
        if (0..SMALL).contains(&v) {
            let at = v as usize;
            if at >= self.small.len() {
                self.small.resize((at + 1).next_power_of_two(), 0);
            }
            if self.small[at] == 0 {
                self.small[at] = self.fresh(Key::Int(v))? + 1;
            }
            return Ok(self.small[at] - 1);
        }
        if let Some(code) = self.ints.get(&v) {
            return Ok(*code);
        }
        let code = self.fresh(Key::Int(v))?;
        self.ints.insert(v, code);
        Ok(code)
    }

    pub(crate) fn real(&mut self, v: f64) -> Result<u32, Misfit> {
        if !v.is_finite() {
            return Err(Misfit::NotFinite);
        }
        if let Some(v) = Key::Real(v).as_int() {
            return self.int(v);
        }
        if let Some(code) = self.reals.get(&v.to_bits()) {
            return Ok(*code);
        }
        let code = self.fresh(Key::Real(v))?;
        self.reals.insert(v.to_bits(), code);
        Ok(code)
    }

    #[inline]
    pub(crate) fn text(&mut self, text: &[u8]) -> Result<u32, Misfit> {
        if let Some(v) = usual_integer(text) {
            return self.int(v);
        }
        let text = std::str::from_utf8(text).map_err(|_| Misfit::NotText)?;
        if text.is_empty() {
            return Err(Misfit::Missing);
        }
        if let Some(code) = self.texts.get(text) {
            return Ok(*code);
        }
        let code = self.fresh(Key::Text(text.into()))?;
        self.texts.insert(text.into(), code);
        Ok(code)
    }

    fn fresh(&mut self, key: Key) -> Result<u32, Misfit> {
        let code = u32::try_from(self.keys.len()).ok().filter(|c| *c < UNSEEN - 1).ok_or(Misfit::Range)?;
        self.keys.push(key);
        self.counts.push(0);
        Ok(code)
    }

    /// Says that rows with these codes were accepted.
    pub(crate) fn accept(&mut self, codes: &[u32]) {
        for c in codes {
            self.counts[*c as usize] += 1;
        }
    }

    /// The dictionary of the accepted values.
    pub(crate) fn dictionary(&self) -> Dictionary {
        Dictionary::of(self.keys.iter().zip(&self.counts).filter(|(_, n)| **n > 0).map(|(k, _)| k))
    }

    /// From codes of first sight to codes of `dictionary`, and how often each of the former occurs.
    pub(crate) fn finish(self, dictionary: &Dictionary) -> (Vec<u32>, Vec<u64>) {
        (self.keys.iter().map(|k| dictionary.code(k).unwrap_or(UNSEEN)).collect(), self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], want: Dictionary, codes: &[u32]) {
        let mut coder = Coder::default();
        let first: Vec<u32> = texts.iter().map(|t| coder.text(t.as_bytes()).unwrap()).collect();
        coder.accept(&first);
        let got = coder.dictionary();
        assert_eq!(got, want);
        let (recode, _) = coder.finish(&got);
        assert_eq!(first.iter().map(|c| recode[*c as usize]).collect::<Vec<_>>(), codes);
        let saved = serde_json::to_string(&got).unwrap();
        assert_eq!(serde_json::from_str::<Dictionary>(&saved).unwrap(), want);
    }

    #[test]
    fn codes_are_places_among_the_distinct_values() {
        check(&["10", "9", "10", "-3"], Dictionary::Int(vec![-3, 9, 10]), &[2, 1, 2, 0]);
        check(&["1.0", "1", "+1", "01"], Dictionary::Int(vec![1]), &[0, 0, 0, 0]);
        check(&["0.1", "10", "9"], Dictionary::Real(vec![0.1, 9.0, 10.0]), &[0, 2, 1]);
        check(
            &["b", "10", "9", "a"],
            Dictionary::Text(["10", "9", "a", "b"].map(String::from).to_vec()),
            &[3, 0, 1, 2],
        );
        check(&["01", "1", "x"], Dictionary::Text(["01", "1", "x"].map(String::from).to_vec()), &[0, 1, 2]);
    }

    #[test]
    fn values_of_skipped_rows_have_no_code() {
        let mut coder = Coder::default();
        let a = coder.text(b"a").unwrap();
        coder.text(b"skipped").unwrap();
        coder.accept(&[a]);
        assert_eq!(coder.dictionary(), Dictionary::Text(vec!["a".into()]));
    }

    #[test]
    fn another_spelling_of_a_training_value_has_its_code() {
        let train = Dictionary::Int(vec![5, 7]);
        let mut coder = Coder::default();
        for v in ["7.0", "8", "x"] {
            coder.text(v.as_bytes()).unwrap();
        }
        coder.int(5).unwrap();
        assert_eq!(coder.finish(&train).0, [1, UNSEEN, UNSEEN, 0]);
    }
}
