//! An uploaded component, before it counts: checked, compiled and tried by a child process with limits.
//!
//! Compiling is the widest door that a tenant has: the compiler reads whatever was sent. So it runs in a process of its
//! own, with bounds on memory and time, which leaves the compiled form in the authenticated cache, and whose verdict is
//! what `slackline plugin inspect` says.

use crate::serve::config::HostLimits;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the child's words that are read.
const MAX_WORDS: u64 = 1 << 20;

/// Checks the component at `path`. Gives what `plugin inspect --json` says of it, or why it is refused: message, hints.
pub fn validate(path: &Path, limits: &HostLimits) -> Result<String, (String, Vec<String>)> {
    let broken = |what: &str, e: std::io::Error| (format!("the component cannot be checked: {what}: {e}"), Vec::new());
    let exe = std::env::current_exe().map_err(|e| broken("this program cannot find itself", e))?;
    let mut command = Command::new(exe);
    command.args(["plugin", "check"]).arg(path);
    command.args(["--memory", &limits.compile_memory.to_string(), "--seconds", &limits.compile_seconds.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| broken("no process", e))?;
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(pipe) = pipe {
                // A pipe that breaks has said what it had to say.
                let _ = pipe.take(MAX_WORDS).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|p| Box::new(p) as _));
    let err = read(child.stderr.take().map(|p| Box::new(p) as _));
    // The child's own limit is on processor time: one that waits must be ended too.
    let deadline = Instant::now() + Duration::from_secs(u64::from(limits.compile_seconds) * 2);
    let status = loop {
        match child.try_wait().map_err(|e| broken("its process is lost", e))? {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    match status {
        Some(status) if status.success() => Ok(out.trim().to_owned()),
        Some(status) if status.code().is_some() && err.contains("error: ") => Err(words(&err)),
        _ => Err((
            format!(
                "the component could not be compiled and tried within {} s of processor time and {} MiB of memory",
                limits.compile_seconds,
                limits.compile_memory >> 20
            ),
            vec!["a smaller component is quicker to compile; `limits` of the host's config bounds it".to_owned()],
        )),
    }
}

/// The message and the hints of a command that failed.
fn words(said: &str) -> (String, Vec<String>) {
    let from = said.find("error: ").map_or(said, |at| &said[at + "error: ".len()..]);
    let mut parts = from.split("\n  hint: ").map(|part| part.trim().to_owned());
    (parts.next().unwrap_or_default(), parts.collect())
}

/// Bounds this process: bytes of memory that it may write to, and seconds of processor time.
pub fn bound_this_process(memory: u64, seconds: u32) -> std::io::Result<()> {
    let limit = |n: u64| Rlimit { current: Some(n), maximum: Some(n) };
    // Not the address space, of which every guest memory reserves gigabytes without touching them.
    setrlimit(Resource::Data, limit(memory))?;
    setrlimit(Resource::Cpu, limit(u64::from(seconds)))?;
    setrlimit(Resource::Core, limit(0))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_taken_apart_into_message_and_hints() {
        let (message, hints) = words("warning\nerror: it is\n  two lines\n  hint: a\n  hint: b\n");
        assert_eq!((message.as_str(), hints.as_slice()), ("it is\n  two lines", &["a".to_owned(), "b".to_owned()][..]));
    }
}
