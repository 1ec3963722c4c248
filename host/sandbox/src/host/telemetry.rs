//! `telemetry`: log lines, bounded, and metrics, checked against the manifest.

use super::{State, lock, refuse, shown};
use crate::limits::Limits;
use crate::v0_1::slackline::plugin::telemetry::{Host, Level as WitLevel};
use slackline_core::PluginErrorKind;
use slackline_core::ports::{Level, Telemetry};

/// What an SDK puts before the message of a panic, in the last line before it traps.
const PANIC: &str = "panic: ";

/// Bounds what one call into the plugin may log, and keeps the message of a panic for the trap that follows it.
#[derive(Debug)]
pub(crate) struct LogGate {
    line_bytes: usize,
    max_lines: u32,
    max_bytes: usize,
    lines: u32,
    bytes: usize,
    dropped: u64,
    panic: Option<String>,
}

impl LogGate {
    pub fn new(limits: &Limits) -> Self {
        Self {
            line_bytes: limits.log_line_bytes,
            max_lines: limits.log_lines,
            max_bytes: limits.log_bytes,
            lines: 0,
            bytes: 0,
            dropped: 0,
            panic: None,
        }
    }

    /// The line, cut to the bound, when it still fits into this call.
    fn admit(&mut self, line: &str) -> Option<String> {
        let line = cut(line, self.line_bytes);
        if self.lines >= self.max_lines || self.bytes + line.len() > self.max_bytes {
            self.dropped += 1;
            return None;
        }
        self.lines += 1;
        self.bytes += line.len();
        Some(line)
    }

    /// The message of a panic since the call began.
    pub fn take_panic(&mut self) -> Option<String> {
        self.panic.take()
    }

    /// The call is over: says what was dropped and begins anew.
    pub fn end_call(&mut self, out: &mut dyn Telemetry) {
        if let Some(panic) = self.panic.take() {
            // It did not trap after all, so that it is a line like another.
            out.log(Level::Error, &panic);
        }
        if self.dropped > 0 {
            out.log(Level::Warn, &format!("log limit reached, {} lines dropped", self.dropped));
        }
        (self.lines, self.bytes, self.dropped) = (0, 0, 0);
    }
}

fn cut(line: &str, bytes: usize) -> String {
    if line.len() <= bytes {
        return line.into();
    }
    let end = (0..=bytes).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &line[..end])
}

impl From<WitLevel> for Level {
    fn from(l: WitLevel) -> Self {
        match l {
            WitLevel::Debug => Level::Debug,
            WitLevel::Info => Level::Info,
            WitLevel::Warn => Level::Warn,
            WitLevel::Error => Level::Error,
        }
    }
}

impl Host for State {
    fn log(&mut self, at: WitLevel, line: String) -> wasmtime::Result<()> {
        let level = Level::from(at);
        if let (Level::Error, Some(message)) = (level, line.strip_prefix(PANIC)) {
            self.log.panic = Some(cut(message, self.log.line_bytes));
            return Ok(());
        }
        if let Some(line) = self.log.admit(&line) {
            lock(&self.worker.telemetry).log(level, &line);
        }
        Ok(())
    }

    fn metric(&mut self, name: String, value: f64, weight: f64) -> wasmtime::Result<()> {
        let declared = self.manifest.as_ref().map_or(&[][..], |m| &m.metrics);
        if !declared.iter().any(|m| m.name == name) {
            let names: Vec<&str> = declared.iter().map(|m| m.name.as_str()).collect();
            let message = format!("reported metric {}, where its manifest declares {}", shown(&name), names.join(", "));
            return refuse(PluginErrorKind::Failed, message);
        }
        match lock(&self.worker.telemetry).metric(&name, value, weight) {
            Ok(()) => Ok(()),
            Err(e) => refuse(PluginErrorKind::Failed, format!("metric {name}: {e}")),
        }
    }
}
