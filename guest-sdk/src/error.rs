//! What a plugin answers when something fails, and how it gets there with `?`.

use std::fmt;

/// Which bound the plugin ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of guest or buffer memory.
    Memory,
    /// Live resources.
    Handles,
    /// Time.
    Cpu,
    /// Bytes on the network.
    Bandwidth,
    /// Rows in one call or in a table.
    Rows,
    /// Log lines or bytes.
    Log,
}

/// A failure, as the contract names it. Text converts into [`Error::Other`], so that `Err("no rows")?` works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The job grants no such thing.
    Denied(String),
    /// A bound of the instance or the tenant.
    Limit(Limit),
    /// No such table, column, …
    NotFound(String),
    /// The arguments make no sense.
    Invalid(String),
    /// The job is being stopped.
    Cancelled,
    /// Not now.
    Unavailable(String),
    /// Anything else.
    Other(String),
}

/// A result of the SDK.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// [`Error::Invalid`] saying `message`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into())
    }

    /// [`Error::NotFound`] saying `message`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::NotFound(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Denied(m) => write!(f, "denied: {m}"),
            Error::Limit(l) => write!(f, "over the limit on {}", format!("{l:?}").to_lowercase()),
            Error::NotFound(m) => write!(f, "not found: {m}"),
            Error::Invalid(m) => write!(f, "invalid: {m}"),
            Error::Cancelled => f.write_str("cancelled"),
            Error::Unavailable(m) => write!(f, "unavailable: {m}"),
            Error::Other(m) => f.write_str(m),
        }
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Error::Other(message)
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Error::Other(message.to_owned())
    }
}

macro_rules! from_std {
    ($($source:ty => $variant:ident),* $(,)?) => {
        $(impl From<$source> for Error {
            fn from(e: $source) -> Self {
                Error::$variant(e.to_string())
            }
        })*
    };
}

from_std! {
    serde_json::Error => Invalid,
    std::num::TryFromIntError => Invalid,
    std::num::ParseIntError => Invalid,
    std::num::ParseFloatError => Invalid,
    std::str::Utf8Error => Invalid,
    std::string::FromUtf8Error => Invalid,
    std::array::TryFromSliceError => Invalid,
    std::fmt::Error => Other,
    Box<dyn std::error::Error> => Other,
    Box<dyn std::error::Error + Send + Sync> => Other,
}

/// Returns early with [`Error::Invalid`], formatted.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)*) => {
        return ::core::result::Result::Err($crate::Error::Invalid(::std::format!($($arg)*)))
    };
}

/// Returns early with [`Error::Invalid`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($arg:tt)*) => {
        if !$condition {
            $crate::bail!($($arg)*);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_mark_takes_text_and_std_errors() {
        fn parse(s: &str) -> Result<u32> {
            crate::ensure!(!s.is_empty(), "nothing to parse in {s:?}");
            if s == "text" {
                Err("text")?;
            }
            Ok(s.parse()?)
        }
        assert_eq!(parse("7"), Ok(7));
        assert_eq!(parse(""), Err(Error::Invalid("nothing to parse in \"\"".into())));
        assert_eq!(parse("text"), Err(Error::Other("text".into())));
        assert!(matches!(parse("x"), Err(Error::Invalid(_))));
        assert_eq!(Error::Limit(Limit::Rows).to_string(), "over the limit on rows");
    }
}
