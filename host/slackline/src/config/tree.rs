//! What was typed, as a tree that remembers where each part was typed.
//!
//! A tree of our own, instead of deserialising with serde, because a message about a job must name the line or the flag
//! that is wrong, also when a value is well formed and only its meaning is not.

use super::error::{ConfigError, Place};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value, and where it was typed.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Keys and values.
    Table(BTreeMap<String, Node>),
    /// A list.
    Array(Vec<Node>),
    /// Text; dates and times too.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A floating number.
    Float(f64),
    /// true or false.
    Bool(bool),
}

impl Node {
    /// Reads a TOML document.
    pub fn parse(file: &Path, text: &str) -> Result<Node, ConfigError> {
        let table = DeTable::parse(text).map_err(|e| {
            let place = match e.span() {
                Some(span) => Place::line_of(file, text, span.start),
                None => Place::File(file.to_owned()),
            };
            ConfigError::new(place, e.message().replace('\n', " "))
                .hint("the job file is TOML: `key = value` lines in [sections]")
        })?;
        let place = |at: usize| Place::line_of(file, text, at);
        Ok(Node { place: Place::File(file.to_owned()), kind: from_table(table.into_inner(), &place)? })
    }

    /// Reads one value that was typed after a flag: TOML where it is TOML, else text.
    pub fn from_flag(flag: &str, typed: &str) -> Node {
        let place = Place::Flag(flag.to_owned());
        let parsed = DeValue::parse(typed).ok().and_then(|v| from_value(v, &|_| place.clone()).ok());
        parsed.unwrap_or(Node { place, kind: Kind::Text(typed.to_owned()) })
    }

    /// Puts `value` at `path`, making tables on the way.
    pub fn set(&mut self, path: &[&str], value: Node) -> Result<(), ConfigError> {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return Ok(());
        };
        let flag = value.place.clone();
        let Kind::Table(table) = &mut self.kind else {
            let message = format!("cannot set `{first}` inside {}", self.kind.name());
            return Err(ConfigError::new(flag, message));
        };
        let empty = || Node { place: flag, kind: Kind::Table(BTreeMap::new()) };
        table.entry((*first).to_owned()).or_insert_with(empty).set(rest, value)
    }

    /// The value at `path`, if it is there.
    pub fn get(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| match &node.kind {
            Kind::Table(table) => table.get(*key),
            _ => None,
        })
    }

    /// Takes the value at `path` out.
    pub fn remove(&mut self, path: &[&str]) {
        if let (Kind::Table(table), Some((first, rest))) = (&mut self.kind, path.split_first()) {
            match (rest, table.get_mut(*first)) {
                ([], _) => drop(table.remove(*first)),
                (rest, Some(node)) => node.remove(rest),
                _ => {}
            }
        }
    }

    /// The same as JSON, which has no NaN and no infinities; `path` is its key path, for messages.
    pub fn to_json(&self, path: &str) -> Result<serde_json::Value, ConfigError> {
        Ok(match &self.kind {
            Kind::Table(table) => {
                let entries = table.iter().map(|(k, v)| Ok((k.clone(), v.to_json(&format!("{path}.{k}"))?)));
                entries.collect::<Result<serde_json::Map<_, _>, ConfigError>>()?.into()
            }
            Kind::Array(items) => {
                items.iter().map(|v| v.to_json(path)).collect::<Result<Vec<_>, ConfigError>>()?.into()
            }
            Kind::Text(text) => text.as_str().into(),
            Kind::Integer(value) => (*value).into(),
            Kind::Float(value) if !value.is_finite() => {
                let why = format!("`{path}` is {value}, expected a finite number");
                return Err(ConfigError::new(self.place.clone(), why));
            }
            Kind::Float(value) => (*value).into(),
            Kind::Bool(value) => (*value).into(),
        })
    }
}

impl Kind {
    /// What it is, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Table(_) => "a table",
            Kind::Array(_) => "a list",
            Kind::Text(_) => "text",
            Kind::Integer(_) => "a whole number",
            Kind::Float(_) => "a number with a fraction",
            Kind::Bool(_) => "true or false",
        }
    }
}

fn from_table(table: DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Result<Kind, ConfigError> {
    let mut out = BTreeMap::new();
    for (key, value) in table {
        let at = place(key.span().start);
        let mut node = from_value(value, place)?;
        // The key's line says more than that of a value which begins further down.
        node.place = at;
        out.insert(key.into_inner().into_owned(), node);
    }
    Ok(Kind::Table(out))
}

fn from_value(value: Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Place) -> Result<Node, ConfigError> {
    let at = place(value.span().start);
    let kind = match value.into_inner() {
        DeValue::Table(table) => from_table(table, place)?,
        DeValue::Array(items) => {
            Kind::Array(items.into_iter().map(|v| from_value(v, place)).collect::<Result<_, _>>()?)
        }
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Datetime(when) => Kind::Text(when.to_string()),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(value) => Kind::Integer(value),
            Err(_) => return Err(ConfigError::new(at, format!("{digits} does not fit 64 bits"))),
        },
        DeValue::Float(digits) => match digits.as_str().parse() {
            Ok(value) => Kind::Float(value),
            Err(_) => return Err(ConfigError::new(at, format!("{digits} is not a number"))),
        },
    };
    Ok(Node { place: at, kind })
}
