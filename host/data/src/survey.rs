//! A column's description for people: type, range, distinct values. Fed like any other column by every reader.

use crate::number::{Misfit, parse_f64, parse_i128};
use std::collections::HashSet;

/// More distinct values than this are not counted.
pub(crate) const MOST_DISTINCT: usize = 1000;
/// Rows that are shown.
pub(crate) const SHOWN_ROWS: usize = 5;
/// Values of a list that are shown.
const SHOWN_VALUES: usize = 8;

/// What is known of a column so far.
#[derive(Default)]
pub(crate) struct Survey {
    row: Vec<Value>,
    pub(crate) values: u64,
    pub(crate) reals: u64,
    pub(crate) texts: u64,
    pub(crate) empty: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) sum: f64,
    /// `None` once there are more than [`MOST_DISTINCT`].
    distinct: Option<HashSet<String>>,
    started: bool,
    pub(crate) first: Vec<String>,
    pub(crate) longest: usize,
}

enum Value {
    Int(i128),
    Real(f64),
    Text(String),
}

impl Survey {
    pub(crate) fn text(&mut self, text: &[u8]) -> Result<(), Misfit> {
        let value = match (parse_i128(text), parse_f64(text)) {
            (Ok(v), _) if !text.contains(&b'.') => Value::Int(v),
            (_, Ok(v)) => Value::Real(v),
            _ => Value::Text(std::str::from_utf8(text).map_err(|_| Misfit::NotText)?.to_owned()),
        };
        self.row.push(value);
        Ok(())
    }

    pub(crate) fn int(&mut self, value: i128) {
        self.row.push(Value::Int(value));
    }

    pub(crate) fn real(&mut self, value: f64) -> Result<(), Misfit> {
        if !value.is_finite() {
            return Err(Misfit::NotFinite);
        }
        self.row.push(Value::Real(value));
        Ok(())
    }

    pub(crate) fn rollback(&mut self) {
        self.row.clear();
    }

    pub(crate) fn commit(&mut self, list: bool) -> bool {
        if !self.started {
            self.started = true;
            self.distinct = Some(HashSet::new());
        }
        let row = std::mem::take(&mut self.row);
        let show = |v: &Value| match v {
            Value::Int(v) => v.to_string(),
            Value::Real(v) => v.to_string(),
            Value::Text(v) => v.clone(),
        };
        if self.first.len() < SHOWN_ROWS {
            let shown: Vec<String> = row.iter().take(SHOWN_VALUES).map(show).collect();
            let tail = if row.len() > SHOWN_VALUES { ", …" } else { "" };
            let text = shown.join(", ");
            self.first.push(if list { format!("[{text}{tail}]") } else { text });
        }
        self.longest = self.longest.max(row.len());
        self.empty += u64::from(row.is_empty());
        for v in &row {
            let number = match v {
                Value::Int(v) => Some(*v as f64),
                Value::Real(v) => Some(*v),
                Value::Text(_) => None,
            };
            self.reals += u64::from(matches!(v, Value::Real(_)));
            self.texts += u64::from(matches!(v, Value::Text(_)));
            if let Some(x) = number {
                let first = self.values == self.texts;
                self.min = if first { x } else { self.min.min(x) };
                self.max = if first { x } else { self.max.max(x) };
                self.sum += x;
            }
            self.values += 1;
            if let Some(seen) = &mut self.distinct {
                seen.insert(show(v));
                if seen.len() > MOST_DISTINCT {
                    self.distinct = None;
                }
            }
        }
        self.row = row;
        self.row.clear();
        true
    }

    /// Number of distinct values, if few.
    pub(crate) fn distinct(&self) -> Option<u64> {
        self.distinct.as_ref().map(|d| d.len() as u64)
    }
}
