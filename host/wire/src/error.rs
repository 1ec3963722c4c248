//! What can go wrong between two processes, told apart by what a person does about it.

use std::error::Error;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tonic::{Code, Status};

use crate::limits::MAX_MESSAGE;
use crate::refusal::{Kind, Refusal, legible, sent_kind};

/// Shorthand for this crate's results.
pub type Result<T, E = WireError> = std::result::Result<T, E>;

// Between rustls and tonic, h2 keeps only the text of an error: what is to be told as TLS begins with this.
const TLS_MARK: &str = "tls with ";
const TEXT_BYTES: usize = 1024;

/// Why a connection or a call came to nothing.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// Nobody answers there, or the connection went away.
    #[error("cannot reach {address}: {why}")]
    Unreachable {
        /// Whom.
        address: String,
        /// What the system said.
        why: String,
    },

    /// The peers did not come to trust each other.
    #[error("tls with {address}: {why}")]
    Tls {
        /// With whom.
        address: String,
        /// What is wrong with whose certificate, and what to do.
        why: String,
    },

    /// The peer wants a token that it knows.
    #[error("{message}")]
    Unauthenticated {
        /// What the peer said.
        message: String,
        /// What to do about it.
        hints: Vec<String>,
    },

    /// The peer understood and refused.
    #[error("{message}")]
    Refused {
        /// Why, for programs.
        kind: Kind,
        /// Why, for people.
        message: String,
        /// What to do about it.
        hints: Vec<String>,
    },

    /// No answer in time.
    #[error("timed out: {what}")]
    TimedOut {
        /// What was waited for.
        what: String,
    },

    /// Over one of the limits in [`crate::limits`], or one that the caller gave.
    #[error("over the limit: {what}")]
    Limit {
        /// Of what, and how much it may be.
        what: String,
    },

    /// Something that was sent, typed or read is not what it should be.
    #[error("{what}")]
    Malformed {
        /// What, and what it should be.
        what: String,
    },

    /// Tokens and data would cross a network in the clear.
    #[error(
        "refusing plaintext with {address}, which is not this machine: tokens and data could be read on the way; use \
         TLS, or accept that with --allow-plaintext"
    )]
    Plaintext {
        /// The address that is not a loopback address.
        address: String,
    },

    /// A file of this machine cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said, or what is wrong with its content.
        why: String,
    },

    /// The bytes to upload could not be read.
    #[error("cannot read what is to be sent: {why}")]
    Source {
        /// What the system said.
        why: String,
    },
}

impl WireError {
    /// What a call's status comes to: a peer's refusal with its kind, message and hints, or what happened on the way.
    pub fn of(status: &Status) -> Self {
        if sent_kind(status.metadata()).is_some() {
            return Self::refused(Refusal::of(status));
        }
        if let Some(known) = in_chain(status) {
            return known;
        }
        let text = status.message();
        match status.code() {
            Code::OutOfRange if text.contains("message length too large") => {
                Self::Limit { what: format!("a message may have at most {} bytes ({text})", limit_in(text)) }
            }
            Code::DeadlineExceeded => Self::timed_out(text),
            Code::Cancelled if text.contains("Timeout expired") => Self::timed_out(text),
            // A status with a cause was made here; one from the peer has none.
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled if status.source().is_some() => {
                Self::Unreachable { address: "the peer".into(), why: innermost(status) }
            }
            _ => Self::refused(Refusal::of(status)),
        }
    }

    /// What the making of a connection came to.
    pub(crate) fn of_transport(error: &tonic::transport::Error, address: &str) -> Self {
        in_chain(error).unwrap_or_else(|| Self::Unreachable { address: address.into(), why: innermost(error) })
    }

    pub(crate) fn file(path: &Path, why: impl ToString) -> Self {
        Self::File { path: path.into(), why: why.to_string() }
    }

    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into() }
    }

    /// The kind that a refusal of the peer has.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Refused { kind, .. } => Some(*kind),
            Self::Unauthenticated { .. } => Some(Kind::Unauthenticated),
            _ => None,
        }
    }

    /// What the peer says may be done about it.
    pub fn hints(&self) -> &[String] {
        match self {
            Self::Refused { hints, .. } | Self::Unauthenticated { hints, .. } => hints,
            _ => &[],
        }
    }

    fn refused(Refusal { kind, message, hints }: Refusal) -> Self {
        match kind {
            Kind::Unauthenticated => Self::Unauthenticated { message, hints },
            _ => Self::Refused { kind, message, hints },
        }
    }

    fn timed_out(text: &str) -> Self {
        Self::TimedOut { what: format!("no answer to the call ({})", legible(text, TEXT_BYTES)) }
    }
}

impl From<Status> for WireError {
    fn from(status: Status) -> Self {
        Self::of(&status)
    }
}

/// An error of this crate among the causes of another, whole or as the text that h2 left of it.
fn in_chain(error: &(dyn Error + 'static)) -> Option<WireError> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(known) = cause.downcast_ref::<WireError>() {
            return Some(known.clone());
        }
        // `io::Error` gives as its source that of what it holds, not what it holds.
        let held = cause.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        if let Some(known) = held.and_then(|held| held.downcast_ref::<WireError>()) {
            return Some(known.clone());
        }
        let text = cause.to_string();
        if let Some((_, tls)) = text.split_once(TLS_MARK)
            && let Some((address, why)) = tls.split_once(": ")
        {
            return Some(WireError::Tls { address: address.into(), why: legible(why, TEXT_BYTES) });
        }
        next = cause.source();
    }
    None
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    legible(&last.to_string(), TEXT_BYTES)
}

/// The limit that tonic names at the end of its message; ours, where it does not.
fn limit_in(text: &str) -> u64 {
    let number = text.rsplit_once("the limit is: ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit));
    number.and_then(|digits| digits.collect::<String>().parse().ok()).unwrap_or(MAX_MESSAGE as u64)
}
