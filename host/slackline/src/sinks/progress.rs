//! Progress on a terminal: a bar over clocks with rate, time left and the metrics, lines above it for the rest.

use super::words;
use crate::events::{Event, Sink, Started};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::time::Duration;

/// Draws on standard error.
pub struct Progress {
    bar: ProgressBar,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Nothing is drawn before the run starts.
    pub fn new() -> Self {
        Self::on(ProgressDrawTarget::stderr())
    }

    fn on(target: ProgressDrawTarget) -> Self {
        Self { bar: ProgressBar::with_draw_target(None, target) }
    }

    fn start(&mut self, started: &Started) {
        self.bar.println(words::started(started));
        let template = match started.max_clocks {
            Some(max) => {
                self.bar.set_length(u64::from(max));
                "{bar:24.cyan/dim} clock {pos}/{len}  {rate}  {eta} left\n{wide_msg}"
            }
            None => "{spinner:.cyan} clock {pos}  {rate}  {elapsed}\n{wide_msg}",
        };
        // A template that indicatif cannot read leaves its own plain style, which still shows the clocks.
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn Write| {
                let _ = write!(out, "{:.1} clocks/s", state.per_sec());
            };
            self.bar.set_style(style.with_key("rate", rate).progress_chars("━╸─"));
        }
        // Clocks that an earlier run did are no part of this one's rate.
        self.bar.set_position(u64::from(started.resumed_from.unwrap_or(0)));
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A run that fails sends no summary; its message must not find half a bar in its way.
        self.bar.finish_and_clear();
    }
}

impl Sink for Progress {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Started(started) => self.start(started),
            Event::Clock { clock, metrics, .. } => {
                self.bar.set_message(words::metrics(metrics));
                self.bar.set_position(u64::from(*clock) + 1);
            }
            Event::Log { worker, level, line } => self.bar.println(format!("worker {worker} {level}: {line}")),
            Event::Notice { message } => self.bar.println(format!("note: {message}")),
            Event::Swap { clock, from, to, reason } => self.bar.println(words::swap(*clock, from, to, reason)),
            // Cuts come and go without a line; the last one is in the summary.
            Event::Cut { .. } => {}
            Event::Evaluated { metrics, .. } => self.bar.set_message(words::metrics(metrics)),
            Event::Done(summary) => {
                self.bar.println(words::summary(summary));
                self.bar.finish_and_clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Summary;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// Keeps what was written in order.
    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<Vec<String>>>);

    impl Recorder {
        fn take(&self) -> String {
            std::mem::take(&mut *self.0.lock().unwrap()).join("\n")
        }
    }

    impl TermLike for Recorder {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push(text.to_owned());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_follows_the_clocks_and_leaves_the_summary() {
        let term = Recorder::default();
        let mut sink = Progress::on(ProgressDrawTarget::term_like(Box::new(term.clone())));
        sink.event(&Event::Started(Started { job: "digits".into(), max_clocks: Some(40), ..Started::default() }));
        for clock in 0..10 {
            sink.event(&Event::Clock { clock, metrics: [("loss".to_owned(), 0.5)].into(), seconds: 1.0 });
        }
        sink.bar.force_draw();
        let shown = term.take();
        assert!(
            shown.contains("digits")
                && shown.contains("clock 10/40")
                && shown.contains("clocks/s")
                && shown.contains("loss 0.5"),
            "{shown}"
        );
        sink.event(&Event::Done(Box::new(Summary { clocks: 10, ..Summary::default() })));
        let shown = term.take();
        assert!(shown.contains("done after 10 clocks"), "{shown}");
    }
}
