//! One attempt at a job: a child process that runs it as `slackline run` would, and what is heard of it.
//!
//! A process of its own, since a job that takes all memory, or whose plugin must be ended by ending the process (the
//! design's expendable process), must not take the coordinator or another job along. Its cuts make it cheap to lose.

use crate::events::{Event, Status};
use crate::failure::Exit;
use crate::serve::coordinator::Coordinator;
use crate::serve::job_file;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use slackline_control::{Outcome, Record, Start};
use slackline_core::TenantId;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// What is kept of a child's standard error: its last words are there.
const MAX_STDERR: usize = 16 << 10;

/// Where a job's state lies, below its folder.
pub const STATE: &str = "state";

/// A running attempt.
pub struct Launched {
    /// Names the very process, also when its number is given to another.
    process: OwnedFd,
}

impl Launched {
    /// Asks it to end with a cut.
    pub fn end(&self) {
        self.send(Signal::TERM);
    }

    /// Ends it now.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // It may have ended already, which is what is wanted.
        let _ = pidfd_send_signal(&self.process, signal);
    }
}

/// An attempt, before it runs.
pub struct Attempt {
    tenant: TenantId,
    start: Start,
    dir: PathBuf,
    toml: Result<String, String>,
}

impl Attempt {
    /// The attempt `number` at `record`.
    pub fn new(coordinator: &Coordinator, tenant: &TenantId, record: &Record, number: u32) -> Self {
        let process = record.process.clone().unwrap_or_default();
        Self {
            tenant: tenant.clone(),
            start: Start { job: record.id.clone(), attempt: number, process },
            dir: coordinator.job_dir(tenant, &record.id),
            toml: job_file::for_process(coordinator, &record.submission),
        }
    }

    /// Starts the process, and threads that hear what it says and how it ends. The error is for the user.
    pub fn launch(self, coordinator: &Arc<Coordinator>) -> Result<Arc<Launched>, String> {
        let journal = coordinator.journal(&self.tenant, &self.start.job).map_err(|e| e.to_string())?;
        let file = self.dir.join("job.toml");
        std::fs::write(&file, self.toml.as_ref()?).map_err(|e| format!("{}: {e}", file.display()))?;
        let exe = std::env::current_exe().map_err(|e| format!("this program cannot find itself: {e}"))?;
        let state = self.dir.join(STATE);
        let mut command = Command::new(exe);
        command.arg("run").arg(&file).arg("--state").arg(&state).arg("--json");
        command.arg("--with-parent").arg(std::process::id().to_string());
        if state.exists() {
            command.arg("--resume");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("the job's process cannot be started: {e}"))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let Some(Ok(process)) = opened else {
            let _ = child.kill();
            let _ = child.wait();
            return Err("the job's process cannot be watched".to_owned());
        };
        let coordinator = coordinator.clone();
        std::thread::spawn(move || {
            let outcome = self.listen(&coordinator, &journal, child);
            coordinator.ended(&self.tenant, &self.start, outcome);
        });
        Ok(Arc::new(Launched { process }))
    }

    fn listen(&self, coordinator: &Coordinator, journal: &crate::serve::journal::Journal, mut child: Child) -> Outcome {
        let stderr = child.stderr.take();
        let log = self.dir.join("stderr.txt");
        let words = std::thread::spawn(move || stderr.map(|pipe| last_words(pipe, &log)).unwrap_or_default());
        let mut done = None;
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let event = serde_json::from_str::<Event>(&line).ok();
                if let Err(e) = journal.append(&line) {
                    tracing::warn!(job = self.start.job, error = %e, "an event was not kept");
                }
                match event {
                    Some(Event::Started(s)) => {
                        self.progress(coordinator, s.resumed_from.unwrap_or(0), &Default::default())
                    }
                    Some(Event::Clock { clock, metrics, .. }) => self.progress(coordinator, clock + 1, &metrics),
                    Some(Event::Evaluated { clock, metrics }) => self.progress(coordinator, clock, &metrics),
                    Some(Event::Done(summary)) => {
                        self.progress(coordinator, summary.clocks, &summary.metrics);
                        done = Some(summary);
                    }
                    _ => {}
                }
            }
        }
        let status = child.wait();
        let words = words.join().unwrap_or_default();
        match status {
            Ok(status) => self.outcome(status, done.map(|s| (s.status, s.reason)), &words),
            Err(e) => Outcome::Lost(format!("the end of its process is not known: {e}")),
        }
    }

    fn progress(&self, coordinator: &Coordinator, clock: u32, metrics: &std::collections::BTreeMap<String, f64>) {
        coordinator.progress(&self.tenant, &self.start, clock, metrics);
    }

    fn outcome(&self, status: ExitStatus, done: Option<(Status, Option<String>)>, words: &str) -> Outcome {
        match (status.code(), done) {
            (Some(0), Some((_, reason))) => Outcome::Done(reason),
            (Some(code), _) if code == Exit::Interrupted as i32 => Outcome::Interrupted,
            (Some(0), None) => Outcome::Lost("its process ended without a result".to_owned()),
            (Some(code), _) => Outcome::Failed(match errors(words) {
                words if words.is_empty() => format!("its process ended with exit code {code}"),
                words => format!("{words} (exit code {code})"),
            }),
            (None, _) => Outcome::Lost(match status.signal() {
                Some(signal) => format!("its process was ended by signal {signal}"),
                None => "its process is gone".to_owned(),
            }),
        }
    }
}

/// The error and its hints out of what was said on standard error.
fn errors(words: &str) -> String {
    let from = words.rfind("error: ").map_or(words, |at| &words[at + "error: ".len()..]);
    let lines: Vec<&str> = from.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    lines.join("; ").chars().take(2000).collect()
}

/// Reads to the end, keeping the last of it in memory and in a file.
fn last_words(pipe: impl Read, log: &std::path::Path) -> String {
    let mut kept = Vec::new();
    let mut pipe = BufReader::new(pipe);
    let mut chunk = [0u8; 4096];
    while let Ok(read) = pipe.read(&mut chunk) {
        let Some(bytes) = chunk.get(..read).filter(|b| !b.is_empty()) else { break };
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..surplus);
    }
    if let Ok(mut file) = std::fs::File::create(log) {
        // For whoever looks into the folder; the reason is in the job's record.
        let _ = file.write_all(&kept);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_error_and_its_hints() {
        let said = "warning: x\nerror: plugin failed\n  hint: do this\n";
        assert_eq!(errors(said), "plugin failed; hint: do this");
        assert_eq!(errors("thread panicked"), "thread panicked");
        assert_eq!(errors(""), "");
    }
}
