//! A refusal on the wire: what a server says when it will not do something, in a form that survives gRPC.
//!
//! gRPC has a code and a message. The codes are too few to tell refusals apart and a message has no place for what to do
//! next, so both travel in metadata beside them. A client that knows neither still gets a fitting code and the message.

use std::fmt;

use tonic::metadata::{AsciiMetadataValue, BinaryMetadataValue, MetadataMap};
use tonic::{Code, Status};

/// The metadata key that holds [`Kind::name`].
pub(crate) const KIND_KEY: &str = "slackline-kind";

/// The metadata key that holds one hint each time it stands there; binary, so that hints may be any UTF-8.
pub(crate) const HINT_KEY: &str = "slackline-hint-bin";

// Metadata goes into HTTP/2 headers, which peers bound (16 KiB is usual). A message may triple when it is
// percent-encoded and hints grow by a third in base64: 3 × 2 KiB + 8 × 512 B × 4/3 stays below.
const MESSAGE_BYTES: usize = 2 * 1024;
const HINT_BYTES: usize = 512;
const HINTS: usize = 8;

/// Why a peer refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// What was named does not exist, or not for this tenant.
    NotFound,
    /// The request makes no sense, whatever the state.
    Invalid,
    /// The request does not fit the state: a name is taken, a job is over.
    Conflict,
    /// Over a size that is fixed.
    TooBig,
    /// This peer does not do that.
    Unsupported,
    /// No token, or one that is not known.
    Unauthenticated,
    /// The token is known and may not do this.
    Denied,
    /// Cannot be served now; asking again may help.
    Unavailable,
    /// Over a quota or a rate; asking again later may help.
    Busy,
    /// A fault of the peer.
    Internal,
}

impl Kind {
    /// Every kind, for tests and tables.
    pub const ALL: [Self; 10] = [
        Self::NotFound,
        Self::Invalid,
        Self::Conflict,
        Self::TooBig,
        Self::Unsupported,
        Self::Unauthenticated,
        Self::Denied,
        Self::Unavailable,
        Self::Busy,
        Self::Internal,
    ];

    /// The name on the wire, which never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::TooBig => "too-big",
            Self::Unsupported => "unsupported",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::Internal => "internal",
        }
    }

    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The gRPC code that comes nearest.
    pub fn code(self) -> Code {
        match self {
            Self::NotFound => Code::NotFound,
            Self::Invalid => Code::InvalidArgument,
            // Not `Aborted`, after which generic clients retry.
            Self::Conflict => Code::FailedPrecondition,
            Self::TooBig => Code::OutOfRange,
            Self::Unsupported => Code::Unimplemented,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::Denied => Code::PermissionDenied,
            Self::Unavailable => Code::Unavailable,
            Self::Busy => Code::ResourceExhausted,
            Self::Internal => Code::Internal,
        }
    }

    /// The kind that comes nearest to a code, for peers that send no kind.
    pub fn of_code(code: Code) -> Self {
        match code {
            Code::NotFound => Self::NotFound,
            Code::InvalidArgument => Self::Invalid,
            Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => Self::Conflict,
            Code::OutOfRange => Self::TooBig,
            Code::Unimplemented => Self::Unsupported,
            Code::Unauthenticated => Self::Unauthenticated,
            Code::PermissionDenied => Self::Denied,
            Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => Self::Unavailable,
            Code::ResourceExhausted => Self::Busy,
            Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Self::Internal,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal before it goes on the wire, and after it came from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for programs.
    pub kind: Kind,
    /// Why, for people.
    pub message: String,
    /// What they may do about it, a line each.
    pub hints: Vec<String>,
}

impl Refusal {
    /// A refusal without hints.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What a status says; its kind follows from the code where the peer sent none that is known here.
    pub fn of(status: &Status) -> Self {
        let kind = sent_kind(status.metadata()).unwrap_or_else(|| Kind::of_code(status.code()));
        let hints = status.metadata().get_all_bin(HINT_KEY).iter().take(HINTS);
        let hints = hints.filter_map(|hint| hint.to_bytes().ok());
        let hints = hints.map(|hint| legible(&String::from_utf8_lossy(&hint), HINT_BYTES)).collect();
        Self { kind, message: legible(status.message(), MESSAGE_BYTES), hints }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let mut metadata = MetadataMap::new();
        metadata.insert(KIND_KEY, AsciiMetadataValue::from_static(refusal.kind.name()));
        for hint in refusal.hints.iter().take(HINTS) {
            let hint = legible(hint, HINT_BYTES);
            metadata.append_bin(HINT_KEY, BinaryMetadataValue::from_bytes(hint.as_bytes()));
        }
        Self::with_metadata(refusal.kind.code(), legible(&refusal.message, MESSAGE_BYTES), metadata)
    }
}

/// A refusal as a service gives it back. Overlong messages and hints are cut, to what every peer's headers hold.
pub fn refusal(kind: Kind, message: impl Into<String>, hints: &[String]) -> Status {
    Refusal { kind, message: message.into(), hints: hints.to_vec() }.into()
}

/// The kind that the peer named, where it did.
pub(crate) fn sent_kind(metadata: &MetadataMap) -> Option<Kind> {
    Kind::of_name(metadata.get(KIND_KEY)?.to_str().ok()?)
}

/// At most so many bytes, and nothing that would steer the terminal on which it is shown.
pub(crate) fn legible(text: &str, most: usize) -> String {
    const CUT: char = '…';
    let safe = |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    let mut out = String::with_capacity(text.len().min(most));
    for c in text.chars().map(safe) {
        if out.len() + c.len_utf8() > most {
            while out.len() + CUT.len_utf8() > most {
                out.pop();
            }
            out.push(CUT);
            break;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_a_code_that_lead_back_to_it() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_name(kind.name()), Some(kind));
            assert_eq!(Kind::of_code(kind.code()), kind);
        }
    }

    #[test]
    fn long_and_hostile_text_is_cut_and_cleaned() {
        assert_eq!(legible("a\u{1b}[2J\nb", 100), "a\u{fffd}[2J\nb");
        assert_eq!(legible("ääää", 8), "ääää");
        assert_eq!(legible("äääää", 8), "ää…");
        let status = refusal(Kind::Busy, "ß".repeat(9000), &vec!["x".repeat(9000); 90]);
        let back = Refusal::of(&status);
        assert_eq!(back.hints.len(), HINTS);
        assert!(back.message.len() <= MESSAGE_BYTES && back.message.ends_with('…'));
    }
}
