//! How the binary fails: one message, advice, and the exit code of its class.

use crate::config::ConfigError;
use crate::engine::RunError;
use slackline_core::{PluginError, PluginErrorKind};
use slackline_data::DataError;
use std::fmt;
use std::path::Path;

/// The exit codes, which are fixed: scripts decide by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Done = 0,
    /// Wrong usage, or a job file that means nothing.
    Usage = 2,
    /// Data that cannot be read, or a result that cannot be written.
    Data = 3,
    /// A plugin that does not parse, link or validate.
    Refused = 4,
    /// A plugin that failed while running.
    Failed = 5,
    /// A state folder that cannot be used.
    State = 6,
    /// The network or the cluster.
    Network = 7,
    /// A person ended it, with a cut.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// Why a command failed, ready to be printed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class.
    pub exit: Exit,
    /// What, and where.
    pub message: String,
    /// What to do.
    pub hints: Vec<String>,
}

impl Failure {
    /// Of class `exit`, saying `message`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hints: Vec::new() }
    }

    /// With one more line of advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A file that cannot be written.
    pub fn unwritten(path: &Path, e: &std::io::Error) -> Self {
        Self::new(Exit::Data, format!("{}: cannot be written: {e}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl std::error::Error for Failure {}

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Self {
        let failure = Self::new(Exit::Usage, e.to_string());
        match e.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<DataError> for Failure {
    fn from(e: DataError) -> Self {
        let failure = Self::new(Exit::Data, e.to_string());
        match e {
            DataError::Malformed { .. } => failure.hint("--skip-bad-rows N leaves up to N malformed rows out, counted"),
            _ => failure,
        }
    }
}

impl From<PluginError> for Failure {
    fn from(e: PluginError) -> Self {
        let exit = match e.kind {
            PluginErrorKind::Refused => Exit::Refused,
            PluginErrorKind::Cancelled => Exit::Interrupted,
            _ => Exit::Failed,
        };
        Self::new(exit, e.message)
    }
}

impl From<slackline_storage::Error> for Failure {
    fn from(e: slackline_storage::Error) -> Self {
        Self::new(Exit::State, e.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Data(e) => e.into(),
            RunError::Refused(e) | RunError::Plugin(e) => e.into(),
            RunError::State(e) => e.into(),
            RunError::OtherState(message) => Self::new(Exit::State, message),
            RunError::Job(message) => Self::new(Exit::Usage, message),
            e @ (RunError::Metric { .. } | RunError::Internal(_)) => Self::new(Exit::Failed, e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Place;

    fn check(failure: Failure, exit: Exit, text: &str) {
        assert_eq!((failure.exit, failure.to_string().as_str()), (exit, text));
    }

    #[test]
    fn each_class_of_error_has_its_exit_code() {
        let config = ConfigError::new(Place::Line("job.toml".into(), 3), "unknown key `workrs` in [job]");
        let text = "error: job.toml:3: unknown key `workrs` in [job]\n  hint: did you mean `workers`?";
        check(config.hint("did you mean `workers`?").into(), Exit::Usage, text);
        check(DataError::Invalid("no".into()).into(), Exit::Data, "error: no");
        for (kind, exit) in [
            (PluginErrorKind::Refused, Exit::Refused),
            (PluginErrorKind::Failed, Exit::Failed),
            (PluginErrorKind::Trap, Exit::Failed),
            (PluginErrorKind::Limit, Exit::Failed),
            (PluginErrorKind::Cancelled, Exit::Interrupted),
        ] {
            check(PluginError::new(kind, "x").into(), exit, "error: x");
        }
    }
}
