//! A table of the job file, read key by key: an unknown key, a wrong type and a value out of bounds each become a
//! [`ConfigError`] with the place and the key path.

use super::error::{ConfigError, Place, nearest, one_of};
use super::tree::{Kind, Node};
use slackline_core::Init;
use std::collections::BTreeMap;
use std::time::Duration;

/// One table, with the path that leads to it.
pub struct Section<'a> {
    /// The path, such as `data.train`.
    pub path: String,
    /// Where it begins; the file as a whole when it was left out.
    pub place: Place,
    table: Option<&'a BTreeMap<String, Node>>,
}

impl<'a> Section<'a> {
    /// The table at `name` of `root`, empty when it was left out. Every key must be in `known`; a key of another
    /// section is recognised by `elsewhere`.
    pub fn open(root: &'a Node, name: &str, known: &[&str], elsewhere: Elsewhere) -> Result<Self, ConfigError> {
        let section = Self::open_any(root, name)?;
        section.refuse_unknown(known, elsewhere)?;
        Ok(section)
    }

    /// The same, where keys are free.
    pub fn open_any(root: &'a Node, name: &str) -> Result<Self, ConfigError> {
        match root.get(&[name]) {
            Some(node) => Self::of(node, name),
            None => Ok(Self { path: name.to_owned(), place: root.place.clone(), table: None }),
        }
    }

    /// `node`, which must be a table.
    pub fn of(node: &'a Node, path: &str) -> Result<Self, ConfigError> {
        match &node.kind {
            Kind::Table(table) => Ok(Self { path: path.to_owned(), place: node.place.clone(), table: Some(table) }),
            other => {
                Err(ConfigError::new(node.place.clone(), format!("`{path}` is {}, expected a table", other.name()))
                    .hint(format!("write it as a section: [{path}]")))
            }
        }
    }

    /// Fails on the first key that is not in `known`.
    pub fn refuse_unknown(&self, known: &[&str], elsewhere: Elsewhere) -> Result<(), ConfigError> {
        match self.entries().find(|(key, _)| !known.contains(key)) {
            Some((key, node)) => Err(self.unknown(key, node, known, elsewhere)),
            None => Ok(()),
        }
    }

    /// The error for a key that nobody knows.
    pub fn unknown(&self, key: &str, node: &Node, known: &[&str], elsewhere: Elsewhere) -> ConfigError {
        let error = ConfigError::new(node.place.clone(), format!("unknown key `{key}` in [{}]", self.path));
        if let Some(meant) = nearest(key, known.iter().copied()) {
            return error.hint(format!("did you mean `{meant}`?"));
        }
        match elsewhere(key) {
            Some(section) => error.hint(format!("`{key}` belongs in [{section}]")),
            None => error.hint(format!("[{}] takes {}", self.path, one_of(known))),
        }
    }

    /// Whether it was typed at all.
    pub fn is_given(&self) -> bool {
        self.table.is_some()
    }

    /// Keys and values in order.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Node)> {
        self.table.into_iter().flatten().map(|(k, v)| (k.as_str(), v))
    }

    /// A value, if it was typed.
    pub fn get<T: Typed>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        self.node(key).map(|node| T::read(node).map_err(|why| self.wrong(key, node, &why))).transpose()
    }

    /// A value that must be there.
    pub fn need<T: Typed>(&self, key: &str) -> Result<T, ConfigError> {
        self.get(key)?.ok_or_else(|| {
            ConfigError::new(self.place.clone(), format!("`{key}` is missing in [{}]", self.path))
                .hint(format!("add `{key} = …`: {}", T::EXPECTED))
        })
    }

    /// A whole number of at least `least`.
    pub fn at_least(&self, key: &str, least: u32) -> Result<Option<u32>, ConfigError> {
        match self.get::<u32>(key)? {
            Some(value) if value < least => Err(self.bad(key, format!("is {value}, expected at least {least}"))),
            value => Ok(value),
        }
    }

    /// A word out of a few, as the value that stands beside it.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, ConfigError> {
        let Some(typed) = self.get::<String>(key)? else { return Ok(None) };
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        match words.iter().find(|(name, _)| *name == typed) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let error = self.bad(key, format!("is `{typed}`, expected {}", one_of(&names)));
                Err(match nearest(&typed, names) {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error,
                })
            }
        }
    }

    /// The error that `key`'s value, typed or missing, is not sound: `why` continues "`path.key` …".
    pub fn bad(&self, key: &str, why: String) -> ConfigError {
        let place = self.node(key).map_or(&self.place, |node| &node.place);
        ConfigError::new(place.clone(), format!("`{}.{key}` {why}", self.path))
    }

    /// The value of `key` as it was typed.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.and_then(|table| table.get(key))
    }

    fn wrong(&self, key: &str, node: &Node, why: &str) -> ConfigError {
        ConfigError::new(node.place.clone(), format!("`{}.{key}` {why}", self.path))
    }
}

/// Names the section that a key belongs to, when it was typed in the wrong one.
pub type Elsewhere<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// A Rust type that a typed value can become.
pub trait Typed: Sized {
    /// What is expected, for messages.
    const EXPECTED: &'static str;
    /// The value, if it is one.
    fn from_kind(kind: &Kind) -> Option<Self>;

    /// The value, or what is wrong with it.
    fn read(node: &Node) -> Result<Self, String> {
        Self::from_kind(&node.kind).ok_or_else(|| {
            let found = match &node.kind {
                Kind::Text(text) => format!("the text {text:?}"),
                Kind::Integer(value) => value.to_string(),
                Kind::Float(value) => value.to_string(),
                Kind::Bool(value) => value.to_string(),
                other => other.name().to_owned(),
            };
            format!("is {found}, expected {}", Self::EXPECTED)
        })
    }
}

impl Typed for String {
    const EXPECTED: &'static str = "text in quotes";
    fn from_kind(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Typed for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_kind(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl Typed for u32 {
    const EXPECTED: &'static str = "a whole number from 0 to 4294967295";
    fn from_kind(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Integer(value) => u32::try_from(*value).ok(),
            _ => None,
        }
    }
}

impl Typed for u64 {
    const EXPECTED: &'static str = "a whole number of 0 or more";
    fn from_kind(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }
}

impl Typed for f64 {
    const EXPECTED: &'static str = "a finite number";
    fn from_kind(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Integer(value) => Some(*value as f64),
            Kind::Float(value) => Some(*value).filter(|v| v.is_finite()),
            _ => None,
        }
    }
}

impl Typed for Duration {
    const EXPECTED: &'static str = "a time above 0: seconds, or text such as \"500ms\", \"90s\", \"10m\" or \"2h\"";
    fn from_kind(kind: &Kind) -> Option<Self> {
        let seconds = match kind {
            Kind::Text(text) => with_unit(text, &[("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)])?,
            other => f64::from_kind(other)?,
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero())
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Typed for Bytes {
    const EXPECTED: &'static str = "bytes above 0, or text such as \"512 MiB\" or \"2 GiB\"";
    fn from_kind(kind: &Kind) -> Option<Self> {
        const UNITS: &[(&str, f64)] = &[
            ("kib", 1024.0),
            ("mib", 1048576.0),
            ("gib", 1073741824.0),
            ("kb", 1e3),
            ("mb", 1e6),
            ("gb", 1e9),
            ("b", 1.0),
        ];
        let bytes = match kind {
            Kind::Integer(value) => u64::try_from(*value).ok()?,
            Kind::Text(text) => with_unit(&text.to_lowercase(), UNITS)? as u64,
            _ => return None,
        };
        (bytes > 0).then_some(Bytes(bytes))
    }
}

fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (digits, factor) = units.iter().find_map(|(unit, factor)| Some((text.trim().strip_suffix(unit)?, factor)))?;
    digits.trim().parse::<f64>().ok().map(|n| n * factor).filter(|n| n.is_finite() && *n >= 0.0)
}

impl Typed for Init {
    const EXPECTED: &'static str = "\"zero\", or { kind = \"constant\", value = … }, { kind = \"uniform\", low = …, \
                                    high = … } or { kind = \"normal\", mean = …, sd = … }";
    fn from_kind(kind: &Kind) -> Option<Self> {
        let table = match kind {
            Kind::Text(text) if text == "zero" => return Some(Init::Zero),
            Kind::Table(table) => table,
            _ => return None,
        };
        let number = |key: &str| f64::from_kind(&table.get(key)?.kind);
        let (init, keys) = match &table.get("kind")?.kind {
            Kind::Text(text) if text == "zero" => (Init::Zero, 1),
            Kind::Text(text) if text == "constant" => (Init::Constant { value: number("value")? }, 2),
            Kind::Text(text) if text == "uniform" => (Init::Uniform { low: number("low")?, high: number("high")? }, 3),
            Kind::Text(text) if text == "normal" => (Init::Normal { mean: number("mean")?, sd: number("sd")? }, 3),
            _ => return None,
        };
        (table.len() == keys).then_some(init)
    }
}
