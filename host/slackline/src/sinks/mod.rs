//! Listeners of a run: JSON lines for programs, progress for a terminal, plain lines for a file or a pipe.

mod json;
mod plain;
mod progress;
pub mod words;

pub use json::JsonLines;
pub use plain::PlainLines;
pub use progress::Progress;

use crate::events::Sink;
use std::io::IsTerminal;

/// The listener that fits: JSON lines on standard output when asked for, else progress where standard error is a
/// terminal, else plain lines on standard output.
pub fn for_terminal(json: bool) -> Box<dyn Sink> {
    if json {
        Box::new(JsonLines::new(std::io::stdout()))
    } else if std::io::stderr().is_terminal() {
        Box::new(Progress::new())
    } else {
        Box::new(PlainLines::new(std::io::stdout()))
    }
}
