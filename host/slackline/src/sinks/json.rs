//! One JSON object a line, and nothing else.

use crate::events::{Event, Sink};
use std::io::Write;

/// Writes every event as a line of JSON.
pub struct JsonLines<W> {
    out: W,
    failed: Option<std::io::Error>,
}

impl<W: Write + Send> JsonLines<W> {
    /// Onto `out`.
    pub fn new(out: W) -> Self {
        Self { out, failed: None }
    }

    fn write(&mut self, event: &Event) -> std::io::Result<()> {
        // The whole line at once, so that a reader (or a kill) never meets half of one.
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl<W: Write + Send> Sink for JsonLines<W> {
    fn event(&mut self, event: &Event) {
        if self.failed.is_none() {
            self.failed = self.write(event).err();
        }
    }

    fn failed(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn every_event_is_a_line_of_valid_json() {
        let mut out = Vec::new();
        let mut sink = JsonLines::new(&mut out);
        sink.event(&Event::Notice { message: "two\nlines \"quoted\"".into() });
        let metrics = [("m".to_owned(), f64::INFINITY)].into();
        sink.event(&Event::Clock { clock: 0, metrics, seconds: 0.5 });
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"], "two\nlines \"quoted\"");
        assert_eq!(lines[1]["metrics"]["m"], serde_json::Value::Null);
    }

    #[test]
    fn a_closed_pipe_is_told_and_does_not_end_the_run() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(Error::from(ErrorKind::BrokenPipe))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut sink = JsonLines::new(Closed);
        assert!(sink.failed().is_none());
        sink.event(&Event::Notice { message: String::new() });
        assert_eq!(sink.failed().map(|e| e.kind()), Some(ErrorKind::BrokenPipe));
    }
}
