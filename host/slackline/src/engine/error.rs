//! What ends a run before its time, and which class of exit code follows.

use slackline_core::{Clock, PluginError, PluginErrorKind};
use slackline_data::DataError;

/// A run that failed. The newest complete cut is good whatever is said here.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The job asks for something that does not go together.
    #[error("{0}")]
    Job(String),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The plugin was refused before anything ran.
    #[error("{0}")]
    Refused(PluginError),
    /// The plugin failed while running.
    #[error("{0}")]
    Plugin(PluginError),
    /// A metric that must be finite is not.
    #[error(
        "metric {name} is {value} at clock {clock}: the model has diverged; lower the step size, or check the data"
    )]
    Metric {
        /// Which metric.
        name: String,
        /// NaN or an infinity.
        value: f64,
        /// The clock that it belongs to.
        clock: Clock,
    },
    /// The state folder.
    #[error(transparent)]
    State(#[from] slackline_storage::Error),
    /// The state folder belongs to something else.
    #[error("{0}")]
    OtherState(String),
    /// A fault of Slackline itself.
    #[error("{0}; this is a fault of slackline, please report it")]
    Internal(String),
}

impl RunError {
    pub(crate) fn metric(name: &str, value: f64, clock: Clock) -> Self {
        Self::Metric { name: name.to_owned(), value, clock }
    }

    /// A plugin's error, told apart by when it came.
    pub(crate) fn of_plugin(error: PluginError) -> Self {
        if error.kind == PluginErrorKind::Refused { Self::Refused(error) } else { Self::Plugin(error) }
    }
}
