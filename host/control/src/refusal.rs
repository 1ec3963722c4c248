//! Why the coordinator says no: a class for the code that decides, sentences for the person who reads.

use std::fmt;

/// The class of a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// What was named is not there.
    NotFound,
    /// The request makes no sense, whatever the state.
    Invalid,
    /// The state does not allow it now.
    Conflict,
    /// Over a bound.
    TooBig,
}

/// A refused request. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The class.
    pub kind: RefusalKind,
    /// What, and why.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::NotFound, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Conflict, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
