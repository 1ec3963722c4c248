//! Words and numbers for the people who run the job.

use crate::sys;

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// A line; the host bounds rate and length.
pub fn log(at: Level, line: &str) {
    sys::log(at, line);
}

/// Adds to a metric of the clock, which is Σ value·weight ÷ Σ weight over batches and workers.
pub fn metric(name: &str, value: f64, weight: f64) {
    sys::metric(name, value, weight);
}

/// Logs a formatted line at level debug.
#[macro_export]
macro_rules! debug { ($($arg:tt)*) => { $crate::telemetry::log($crate::telemetry::Level::Debug, &::std::format!($($arg)*)) }; }

/// Logs a formatted line at level info.
#[macro_export]
macro_rules! info { ($($arg:tt)*) => { $crate::telemetry::log($crate::telemetry::Level::Info, &::std::format!($($arg)*)) }; }

/// Logs a formatted line at level warn.
#[macro_export]
macro_rules! warn { ($($arg:tt)*) => { $crate::telemetry::log($crate::telemetry::Level::Warn, &::std::format!($($arg)*)) }; }

/// Logs a formatted line at level error.
#[macro_export]
macro_rules! error { ($($arg:tt)*) => { $crate::telemetry::log($crate::telemetry::Level::Error, &::std::format!($($arg)*)) }; }
