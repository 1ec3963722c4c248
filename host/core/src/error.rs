//! Errors in three tiers, for three readers: the guest ([`HostError`]), the user who runs a plugin ([`PluginError`]),
//! and the maintainer (each crate's own type).

use std::fmt;

/// Which bound a guest ran into.
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

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Memory => "memory",
            Limit::Handles => "handles",
            Limit::Cpu => "cpu",
            Limit::Bandwidth => "bandwidth",
            Limit::Rows => "rows",
            Limit::Log => "log",
        })
    }
}

/// What a host function answers a guest; mirrors the contract's `error` variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum HostError {
    #[error("denied: {0}")]
    Denied(String),
    #[error("over the limit on {0}")]
    Limit(Limit),
    #[error("not found: {0}")]
    NotFound(String),
    #[error("invalid: {0}")]
    Invalid(String),
    #[error("cancelled")]
    Cancelled,
    #[error("unavailable: {0}")]
    Unavailable(String),
    #[error("{0}")]
    Other(String),
}

/// What went wrong with a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginErrorKind {
    /// Its bytes do not parse, link or validate; its manifest or plan is not sound.
    Refused,
    /// Its own code answered with an error.
    Failed,
    /// It trapped (a panic, an unreachable, an out-of-bounds access).
    Trap,
    /// It outlived its deadline and was interrupted.
    Deadline,
    /// It hit a limit on memory, handles or host calls.
    Limit,
    /// The run was cancelled.
    Cancelled,
}

/// A failure of a plugin, for the user who runs it: what happened, and where in the plugin.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PluginError {
    /// The class, from which the exit code follows.
    pub kind: PluginErrorKind,
    /// One line or more, complete in itself.
    pub message: String,
}

impl PluginError {
    /// Of `kind`, saying `message`.
    pub fn new(kind: PluginErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
