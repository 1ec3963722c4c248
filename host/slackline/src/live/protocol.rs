//! The lines that go over the socket. They are read as strictly as a job file: an unknown question or key is refused.

use crate::config;
use crate::engine::asks::{Answer, Request, Standing, SwapRequest, Swapped};
use crate::engine::versions::VersionRecord;
use crate::failure::{Exit, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

/// Bytes of a line at most, its end included.
pub const MAX_LINE: usize = 64 << 10;

/// A question as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// How the run stands.
    Show {},
    /// Its versions.
    History {},
    /// To end.
    Stop {},
    /// To swap.
    Swap {
        /// A plugin as a job file names it.
        #[serde(default)]
        plugin: Option<String>,
        /// Where a relative path begins.
        #[serde(default)]
        base: PathBuf,
        /// Parameters that change.
        #[serde(default)]
        params: Map<String, Value>,
        /// Another bound.
        #[serde(default)]
        staleness: Option<u32>,
        /// The first clock.
        #[serde(default)]
        at_clock: Option<u32>,
    },
    /// To go back to the version before.
    Rollback {
        /// The first clock.
        #[serde(default)]
        at_clock: Option<u32>,
    },
}

impl Question {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Self, Failure> {
        serde_json::from_slice(line).map_err(|e| {
            Failure::new(Exit::Usage, format!("this is no question that a run answers: {e}"))
                .hint("one JSON object a line, such as {\"op\":\"show\"}")
        })
    }

    /// What it means.
    pub fn request(self) -> Result<Request, Failure> {
        Ok(match self {
            Question::Show {} => Request::Show,
            Question::History {} => Request::History,
            Question::Stop {} => Request::Stop,
            Question::Rollback { at_clock } => {
                Request::Swap(Box::new(SwapRequest { rollback: true, at_clock, ..SwapRequest::default() }))
            }
            Question::Swap { plugin, base, params, staleness, at_clock } => {
                let mut words: Vec<String> = plugin.iter().cloned().collect();
                words.extend(params.iter().map(|(key, value)| format!("{key} = {value}")));
                words.extend(staleness.map(|s| format!("staleness = {s}")));
                let named = plugin.map(|typed| config::plugin_named(&typed, &base)).transpose();
                Request::Swap(Box::new(SwapRequest {
                    plugin: named.map_err(|why| Failure::new(Exit::Usage, format!("the plugin {why}")))?,
                    params,
                    staleness,
                    at_clock,
                    reason: format!("asked for {}", words.join(", ")),
                    ..SwapRequest::default()
                }))
            }
        })
    }
}

/// An answer's line.
pub fn line(answer: &Result<Answer, Failure>) -> Vec<u8> {
    let whole = match answer {
        Ok(answer) => json!({"ok": true, "answer": value(answer, 0)}),
        Err(f) => json!({"ok": false, "exit": f.exit as u8, "message": f.message, "hints": f.hints}),
    };
    let mut bytes = whole.to_string().into_bytes();
    // The oldest versions of a long history go first.
    if let Ok(all @ Answer::History(versions)) = answer {
        let mut shown = versions.len();
        while bytes.len() >= MAX_LINE && shown > 0 {
            shown /= 2;
            bytes = json!({"ok": true, "answer": value(all, versions.len() - shown)}).to_string().into_bytes();
        }
    }
    if bytes.len() >= MAX_LINE {
        let message = "the answer is longer than a line may be";
        bytes =
            json!({"ok": false, "exit": Exit::Usage as u8, "message": message, "hints": []}).to_string().into_bytes();
    }
    bytes.push(b'\n');
    bytes
}

/// An answer out of its line.
pub fn answer(line: &[u8]) -> Result<Value, Failure> {
    let odd = || Failure::new(Exit::State, "the run answered something that this version does not understand");
    let whole: Value = serde_json::from_slice(line).map_err(|_| odd())?;
    match whole.get("ok").and_then(Value::as_bool) {
        Some(true) => whole.get("answer").cloned().ok_or_else(odd),
        Some(false) => {
            let text = |v: &Value| v.as_str().map(str::to_owned);
            let message = whole.get("message").and_then(text).ok_or_else(odd)?;
            let exit = match whole.get("exit").and_then(Value::as_u64) {
                Some(2) => Exit::Usage,
                Some(3) => Exit::Data,
                Some(4) => Exit::Refused,
                Some(5) => Exit::Failed,
                _ => Exit::State,
            };
            let hints = whole.get("hints").and_then(Value::as_array);
            Err(Failure { exit, message, hints: hints.into_iter().flatten().filter_map(text).collect() })
        }
        None => Err(odd()),
    }
}

fn value(answer: &Answer, left_out: usize) -> Value {
    match answer {
        Answer::Shown(s) => standing(s),
        Answer::Stopping(clock) => json!({"stops_at": clock}),
        Answer::Swapped(swapped) => {
            let Swapped { from, to } = &**swapped;
            json!({"clock": to.from, "from": version(from), "to": version(to), "reason": to.reason})
        }
        Answer::History(all) => {
            let shown: Vec<Value> = all.iter().skip(left_out).map(version).collect();
            match left_out {
                0 => json!({"versions": shown}),
                n => json!({"versions": shown, "left_out": n}),
            }
        }
    }
}

fn standing(s: &Standing) -> Value {
    json!({
        "job": s.job,
        "consistency": s.model,
        "clocks": s.clocks,
        "stops_at": s.stops_at,
        "version": s.version.as_ref().map(version),
        "swap_at": s.swap_at,
        "ended": s.newest.as_ref().map(|p| p.clock),
        "metrics": s.newest.as_ref().map(|p| &p.metrics),
        "seconds": s.seconds,
    })
}

fn version(v: &VersionRecord) -> Value {
    json!({
        "version": v.number,
        "plugin": v.plugin,
        "digest": v.digest,
        "params": v.params(),
        "staleness": v.staleness,
        "since": v.from,
        "reason": v.reason,
    })
}

/// Reads a line, without its end, keeping what came after it in `rest`. `Ok(None)` at the end; an error at `deadline`, and
/// when a line is too long.
pub fn read_line(
    mut from: &UnixStream,
    rest: &mut Vec<u8>,
    deadline: Option<Instant>,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut seen = 0;
    loop {
        if let Some(end) = rest.iter().skip(seen).position(|b| *b == b'\n') {
            let mut line: Vec<u8> = rest.drain(..=seen + end).collect();
            line.pop();
            return Ok(Some(line));
        }
        seen = rest.len();
        if seen >= MAX_LINE {
            return Err(Error::new(ErrorKind::InvalidData, format!("a line has more than {MAX_LINE} bytes")));
        }
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(ErrorKind::TimedOut.into());
        }
        from.set_read_timeout(left)?;
        let mut chunk = [0; 4096];
        match from.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(n) => rest.extend(chunk.iter().take(n)),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    fn record(number: u32, reason: &str) -> VersionRecord {
        VersionRecord {
            number,
            plugin: "mlr".into(),
            digest: "blake3:00".into(),
            params: "{\"l2\":0.5}".into(),
            staleness: 1,
            from: number,
            reason: reason.into(),
        }
    }

    #[test]
    fn questions_are_read_strictly() {
        let read = |text: &str| Question::parse(text.as_bytes()).and_then(Question::request);
        assert_eq!(read(r#"{"op":"show"}"#), Ok(Request::Show));
        assert_eq!(read(r#"{"op":"stop"}"#), Ok(Request::Stop));
        let Ok(Request::Swap(swap)) = read(r#"{"op":"swap","plugin":"mlr","params":{"l2":0.5},"staleness":2}"#) else {
            panic!("a swap")
        };
        assert_eq!((swap.staleness, swap.reason.as_str()), (Some(2), "asked for mlr, l2 = 0.5, staleness = 2"));
        for odd in [
            "",
            "nonsense",
            "[]",
            "{}",
            r#"{"op":"dance"}"#,
            r#"{"op":"show","x":1}"#,
            r#"{"op":"swap","staleness":-1}"#,
            r#"{"op":"swap","plugin":"a b"}"#,
            r#"{"op":"swap","plugn":"mlr"}"#,
            "\u{0}",
        ] {
            assert!(read(odd).is_err_and(|f| f.exit == Exit::Usage), "{odd}");
        }
    }

    #[test]
    fn answers_come_back_as_they_were_meant() {
        let swapped = Answer::Swapped(Box::new(Swapped { from: record(1, "start"), to: record(2, "asked") }));
        let got = answer(line(&Ok(swapped)).trim_ascii()).unwrap();
        assert_eq!((&got["clock"], &got["to"]["params"]["l2"]), (&json!(2), &json!(0.5)));
        let refusal = Failure::new(Exit::Refused, "no").hint("do");
        assert_eq!(answer(&line(&Err(refusal.clone()))), Err(refusal));
        for odd in ["", "x", "{}", r#"{"ok":true}"#, r#"{"ok":false}"#] {
            assert!(answer(odd.as_bytes()).is_err_and(|f| f.exit == Exit::State), "{odd}");
        }
    }

    #[test]
    fn a_long_history_loses_its_oldest_versions_and_says_so() {
        let all: Vec<_> = (1..2000).map(|n| record(n, "asked for another step size")).collect();
        let bytes = line(&Ok(Answer::History(all)));
        assert!(bytes.len() <= MAX_LINE);
        let got = answer(&bytes).unwrap();
        let shown = got["versions"].as_array().unwrap();
        assert_eq!(shown.last().unwrap()["version"], 1999);
        assert_eq!(shown.len() as u64 + got["left_out"].as_u64().unwrap(), 1999);
        let huge = line(&Ok(Answer::History(vec![record(1, &"x".repeat(MAX_LINE))])));
        assert!(huge.len() < MAX_LINE && answer(&huge).is_ok());
    }

    #[test]
    fn lines_are_bounded_in_length_and_time() {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"one\ntwo").unwrap();
        let mut rest = Vec::new();
        let soon = || Some(Instant::now() + Duration::from_millis(20));
        assert_eq!(read_line(&b, &mut rest, soon()).unwrap().unwrap(), b"one");
        assert!(read_line(&b, &mut rest, soon()).is_err(), "no end comes");
        let long = std::thread::spawn(move || a.write_all(&vec![b'x'; 2 * MAX_LINE]));
        assert!(read_line(&b, &mut rest, None).is_err_and(|e| e.kind() == ErrorKind::InvalidData));
        drop(b);
        let _ = long.join();
    }
}
