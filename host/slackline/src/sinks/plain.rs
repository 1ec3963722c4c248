//! Plain lines, for a file, a pipe or a dumb terminal.

use super::words;
use crate::events::{Event, Sink};
use std::io::Write;

/// Writes a line for every event that a person wants to read.
pub struct PlainLines<W> {
    out: W,
    max_clocks: Option<u32>,
    /// When the last clock's line was written, in seconds of the run.
    told: Option<f64>,
    failed: Option<std::io::Error>,
}

/// Clocks shorter than this do not get a line each: thousands of them hide the rest.
const SECONDS_BETWEEN_CLOCKS: f64 = 0.5;

impl<W: Write + Send> PlainLines<W> {
    /// Onto `out`.
    pub fn new(out: W) -> Self {
        Self { out, max_clocks: None, told: None, failed: None }
    }

    /// Whether a clock gets its line: the first, the last, and of those between one every so often.
    fn is_due(&mut self, clock: u32, seconds: f64) -> bool {
        let due = self.told.is_none_or(|told| seconds - told >= SECONDS_BETWEEN_CLOCKS)
            || self.max_clocks.is_some_and(|max| clock.saturating_add(1) >= max);
        if due {
            self.told = Some(seconds);
        }
        due
    }

    fn line(&self, event: &Event) -> String {
        match event {
            Event::Started(s) => words::started(s),
            Event::Clock { clock, metrics, seconds } => {
                let of = self.max_clocks.map(|max| format!("/{max}")).unwrap_or_default();
                format!("clock {}{of}  {}  {}", clock + 1, words::seconds(*seconds), words::metrics(metrics))
            }
            Event::Log { worker, level, line } => format!("worker {worker} {level}: {line}"),
            Event::Cut { clock, bytes, seconds } => {
                format!("cut at clock {clock}: {} in {}", words::bytes(*bytes), words::seconds(*seconds))
            }
            Event::Swap { clock, from, to, reason } => words::swap(*clock, from, to, reason),
            Event::Evaluated { clock, metrics } => {
                format!("evaluated after {}  {}", words::plural(u64::from(*clock), "clock"), words::metrics(metrics))
            }
            Event::Notice { message } => format!("note: {message}"),
            Event::Done(summary) => words::summary(summary),
        }
    }
}

impl<W: Write + Send> Sink for PlainLines<W> {
    fn event(&mut self, event: &Event) {
        if let Event::Started(started) = event {
            self.max_clocks = started.max_clocks;
        }
        if let Event::Clock { clock, seconds, .. } = event
            && !self.is_due(*clock, *seconds)
        {
            return;
        }
        if self.failed.is_none() {
            let line = self.line(event);
            self.failed = writeln!(self.out, "{line}").and_then(|()| self.out.flush()).err();
        }
    }

    fn failed(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{PluginSummary, Started, Summary, ViewResult};

    #[test]
    fn short_clocks_share_a_line() {
        let mut out = Vec::new();
        let mut sink = PlainLines::new(&mut out);
        sink.event(&Event::Started(Started { max_clocks: Some(1000), ..Started::default() }));
        for clock in 0..1000 {
            sink.event(&Event::Clock { clock, metrics: Default::default(), seconds: f64::from(clock) * 1e-3 });
        }
        let text = String::from_utf8(out).unwrap();
        let clocks: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("clock ")?.split('/').next()).collect();
        assert_eq!(clocks, ["1", "501", "1000"]);
    }

    #[test]
    fn a_run_reads_from_top_to_bottom() {
        let mut out = Vec::new();
        let mut sink = PlainLines::new(&mut out);
        sink.event(&Event::Started(Started {
            job: "topics".into(),
            plugin: PluginSummary { name: "lda".into(), digest: String::new() },
            workers: 2,
            consistency: "ssp".into(),
            staleness_bound: 3,
            max_clocks: Some(50),
            rows: [("train".to_owned(), 2246)].into(),
            ..Started::default()
        }));
        sink.event(&Event::Clock { clock: 0, metrics: [("ll".to_owned(), -8.5)].into(), seconds: 0.25 });
        sink.event(&Event::Cut { clock: 1, bytes: 2048, seconds: 0.001 });
        sink.event(&Event::Log { worker: 1, level: "warn".into(), line: "careful".into() });
        sink.event(&Event::Done(Box::new(Summary {
            clocks: 1,
            seconds: 0.5,
            views: vec![ViewResult { title: "topics".into(), lines: vec![vec!["oil".into(), "gas".into()]] }],
            ..Summary::default()
        })));
        let want = "topics: lda on 2 workers, ssp with staleness 3, train 2,246 rows\n\
                    clock 1/50  250 ms  ll -8.5\n\
                    cut at clock 1: 2.0 KiB in 1 ms\n\
                    worker 1 warn: careful\n\
                    done after 1 clock in 500 ms\n\
                    topics\n    0  oil gas\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
