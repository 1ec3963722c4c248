//! The asking end of the socket.

use super::protocol::{self, MAX_LINE, Question, read_line};
use super::{SOCKET, Short};
use crate::failure::{Exit, Failure};
use serde_json::Value;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Asks the run whose state folder is `dir`, and waits for its answer.
pub fn ask(dir: &Path, question: &Question) -> Result<Value, Failure> {
    let shown = dir.display();
    if !dir.is_dir() {
        return Err(Failure::new(Exit::State, format!("there is no state folder {shown}"))
            .hint("--state names the folder of a job that runs"));
    }
    let asleep = |e: std::io::Error| {
        Failure::new(Exit::State, format!("no job runs in {shown} ({e})"))
            .hint("start one with `slackline run JOB.toml --state DIR`, or go on with --resume")
    };
    let mut line = serde_json::to_vec(question).map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
    line.push(b'\n');
    if line.len() > MAX_LINE {
        let message = format!("the question has {} bytes, where {MAX_LINE} are allowed", line.len());
        return Err(Failure::new(Exit::Usage, message).hint("give fewer or shorter parameters"));
    }
    let mut run = Short::open(dir).and_then(|f| UnixStream::connect(f.path(SOCKET))).map_err(asleep)?;
    let _ = run.set_write_timeout(Some(Duration::from_secs(10)));
    let gone = |what: String| Failure::new(Exit::State, format!("the run in {shown} ended before it answered{what}"));
    run.write_all(&line).map_err(|e| gone(format!(": {e}")))?;
    // A swap takes as long as its clock is away.
    match read_line(&run, &mut Vec::new(), None) {
        Ok(Some(line)) => protocol::answer(&line),
        Ok(None) => Err(gone(String::new())),
        Err(e) => Err(gone(format!(": {e}"))),
    }
}
