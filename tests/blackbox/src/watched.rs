//! A command that goes on, so that a test can watch its lines and stop it.

use crate::slackline;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Nothing here takes this long; a command that does has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A started command. Dropped, it is killed.
pub struct Watched {
    child: Child,
    lines: Receiver<String>,
}

impl Watched {
    /// Starts the binary with words split at spaces.
    pub fn start(dir: &Path, words: &str) -> Self {
        let mut command = slackline(dir, &words.split_whitespace().collect::<Vec<_>>());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("its output is piped"));
        let (tell, lines) = channel();
        // The pipe is drained whoever listens, or the child would stop at a full one.
        std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
        Self { child, lines }
    }

    /// Waits for a JSON line of `event`, at or after `clock` when that is given; false when the command ends without.
    pub fn wait_for(&self, event: &str, clock: Option<u64>) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => panic!("no {event} event within {PATIENCE:?}"),
            };
            let said: serde_json::Value = serde_json::from_str(&line).expect("a JSON line");
            let there = clock.is_none_or(|clock| said["clock"].as_u64().is_some_and(|at| at >= clock));
            if said["event"] == event && there {
                return true;
            }
        }
    }

    /// Sends a signal by its name, such as `INT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|s| s.success()), "kill -{name} failed");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_some()
    }

    /// Its end and what it said on standard error.
    pub fn end(mut self) -> Output {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() {
            assert!(Instant::now() < deadline, "the command did not end within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut stderr = Vec::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            std::io::Read::read_to_end(&mut pipe, &mut stderr).expect("standard error is read");
        }
        let stdout = self.lines.iter().flat_map(|line| line.into_bytes().into_iter().chain([b'\n'])).collect();
        Output { status: self.child.wait().expect("it has ended"), stdout, stderr }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
