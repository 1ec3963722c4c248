//! What is wrong with a job file or its overrides: where, what, and what to type instead.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a key or value was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The job file as a whole.
    File(PathBuf),
    /// A line of the job file, from 1.
    Line(PathBuf, usize),
    /// A flag of the command line.
    Flag(String),
}

impl Place {
    /// The file, when it is one.
    pub fn line_of(file: &Path, text: &str, byte: usize) -> Self {
        let before = text.as_bytes().iter().take(byte);
        Place::Line(file.to_owned(), 1 + before.filter(|b| **b == b'\n').count())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Line(path, line) => write!(f, "{}:{line}", path.display()),
            Place::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A job that cannot be understood.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// Where it was typed.
    pub place: Place,
    /// What is wrong, with the key path.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ConfigError {
    /// At `place`, saying `message`.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: None }
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The one of `known` that was probably meant by `typed`.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('-', "_");
    let distance = |k: &&str| strsim::damerau_levenshtein(&typed, &k.replace('-', "_"));
    let best = known.into_iter().min_by_key(distance)?;
    // A third of the letters wrong is still a slip of the fingers; more is another word.
    (distance(&best) <= typed.chars().count().max(3) / 3).then_some(best)
}

/// `a`, `b` or `c`, for "expected …".
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [rest @ .., last] => {
            let rest: Vec<_> = rest.iter().map(|w| format!("`{w}`")).collect();
            format!("{} or `{last}`", rest.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["workers", "name", "seed", "skip_bad_rows", "max"];
        for (typed, meant) in [
            ("workrs", Some("workers")),
            ("wrokers", Some("workers")),
            ("skip-bad-row", Some("skip_bad_rows")),
            ("Name", Some("name")),
            ("mx", Some("max")),
            ("elephant", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
