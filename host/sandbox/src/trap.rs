//! Turns what wasmtime says of a failed call into one message for the user: what happened, where in the plugin, and
//! what to do.

use crate::clock::{Overrun, Phase};
use crate::host::{Refusal, State};
use crate::limits::Bytes;
use slackline_core::{PluginError, PluginErrorKind};
use std::fmt::Write;
use wasmtime::{Trap, WasmBacktrace};

/// Frames of the guest's stack that a message shows.
const FRAMES: usize = 8;

/// The error of a call that did not return.
pub(crate) fn explain(error: &wasmtime::Error, state: &mut State) -> PluginError {
    let (plugin, phase) = (state.plugin.clone(), state.phase);
    let panic = state.log.take_panic();
    let refused = state.ledger.take_refused();
    let trap = error.downcast_ref::<Trap>().copied();

    let (kind, mut message) = if let Some(refusal) = error.downcast_ref::<Refusal>() {
        (refusal.kind, format!("plugin {plugin} was stopped in {phase}: {}", refusal.message))
    } else if let Some(kind) = state.interrupted.take() {
        (kind, interrupted(state, kind, phase))
    } else if let Some(asked) = refused {
        let limit = Bytes(state.ledger.limit());
        let asked = Bytes(asked);
        let words = format!(
            "plugin {plugin} hit its memory limit in {phase}: it wanted {asked} in all, where {limit} are allowed; raise \
             it with `[limits] memory`, or have the plugin keep less"
        );
        (PluginErrorKind::Limit, words)
    } else if let Some(panic) = panic {
        (PluginErrorKind::Trap, format!("plugin {plugin} trapped in {phase}: {panic}"))
    } else if trap == Some(Trap::StackOverflow) {
        (
            PluginErrorKind::Trap,
            format!("plugin {plugin} trapped in {phase}: call stack exhausted (endless recursion?)"),
        )
    } else if let Some(trap) = trap {
        (PluginErrorKind::Trap, format!("plugin {plugin} trapped in {phase}: {trap}"))
    } else {
        let cause = error.root_cause().to_string();
        // wasmtime has no types for these two.
        let limits = ["fuel allocated for hostcalls", "handle limit exceeded"];
        let kind = match limits.iter().any(|words| cause.contains(words)) {
            true => PluginErrorKind::Limit,
            false => PluginErrorKind::Trap,
        };
        (kind, format!("plugin {plugin} broke the contract in {phase}: {cause}"))
    };
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        append_frames(&mut message, backtrace);
    }
    PluginError::new(kind, message)
}

fn interrupted(state: &State, kind: PluginErrorKind, phase: Phase) -> String {
    match kind {
        PluginErrorKind::Cancelled => {
            format!("plugin {} was interrupted in {phase}: the run was cancelled", state.plugin)
        }
        _ => Overrun {
            plugin: state.plugin.to_string(),
            worker: state.worker.run.worker,
            phase,
            spent: state.clock.spent().unwrap_or_default(),
            deadline: state.clock.deadline(),
        }
        .to_string(),
    }
}

/// A frame of the guest's stack, as far as its debug information tells.
#[derive(Debug, PartialEq)]
struct Frame {
    name: String,
    place: Option<(String, u32)>,
}

impl Frame {
    /// Whether it belongs to the language's runtime: the way from a panic to the trap, which tells nobody anything.
    fn is_runtime(&self) -> bool {
        match &self.place {
            Some((file, _)) => file.contains("/library/"),
            None => {
                let krate = self.name.trim_start_matches(['<', '&']).split("::").next().unwrap_or_default();
                matches!(krate, "std" | "core" | "alloc" | "__rustc" | "rust_begin_unwind" | "__rust_start_panic")
            }
        }
    }
}

fn append_frames(message: &mut String, backtrace: &WasmBacktrace) {
    let mut frames = Vec::new();
    for frame in backtrace.frames() {
        // One frame of machine code may hold several of source, inlined, the innermost first.
        for symbol in frame.symbols() {
            let name = readable(symbol.name().or(frame.func_name()).unwrap_or("?"));
            frames.push(Frame { name, place: symbol.file().map(|file| (file.to_owned(), symbol.line().unwrap_or(0))) });
        }
        if frame.symbols().is_empty() {
            let name = frame.func_name().map_or_else(|| format!("function {}", frame.func_index()), readable);
            frames.push(Frame { name, place: None });
        }
    }
    write_frames(message, &frames);
}

/// A function's name as its source has it, as far as it is a Rust compiler's name.
fn readable(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

fn write_frames(message: &mut String, frames: &[Frame]) {
    // Only the way in front goes: further down, a plugin's own code may well lie between two frames of the library.
    let own = frames.iter().position(|f| !f.is_runtime());
    let own = own.filter(|at| frames[..*at].iter().any(Frame::is_runtime)).map_or(frames, |at| &frames[at..]);
    for frame in own.iter().take(FRAMES) {
        // Writing to a string cannot fail.
        let _ = match &frame.place {
            Some((file, line)) => write!(message, "\n  at {} ({file}:{line})", frame.name),
            None => write!(message, "\n  at {}", frame.name),
        };
    }
    if own.len() > FRAMES {
        let _ = write!(message, "\n  … {} more frames", own.len() - FRAMES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, file: &str) -> Frame {
        Frame { name: name.into(), place: (!file.is_empty()).then(|| (file.to_owned(), 7)) }
    }

    #[track_caller]
    fn check(frames: &[Frame], shown: &str) {
        let mut message = String::new();
        write_frames(&mut message, frames);
        assert_eq!(message, shown);
    }

    #[test]
    fn the_way_from_a_panic_to_its_trap_is_left_out() {
        let panic = || frame("panic_fmt", "/usr/lib/rustlib/src/rust/library/core/src/panicking.rs");
        let sort = || frame("sort_by", "/usr/lib/rustlib/src/rust/library/core/src/slice/mod.rs");
        // Without debug information there are names only.
        let named = |name: &str| frame(&readable(name), "");
        check(
            &[
                named("_RNvCsfgHYwM92fyn_7___rustc12___rust_abort"),
                named("_RNvNtCs1CYXbLPYCFn_4core9panicking9panic_fmt"),
                frame("<boom::Boom as slackline_guest::plugin::Plugin>::step", ""),
                frame("core::slice::sort", ""),
            ],
            "\n  at <boom::Boom as slackline_guest::plugin::Plugin>::step\n  at core::slice::sort",
        );
        check(
            &[panic(), frame("__rust_start_panic", ""), frame("pick", "src/lib.rs"), sort(), frame("step", "")],
            "\n  at pick (src/lib.rs:7)\n  at sort_by (/usr/lib/rustlib/src/rust/library/core/src/slice/mod.rs:7)\n  at step",
        );
        check(&[frame("step", ""), frame("pick", "src/lib.rs")], "\n  at step\n  at pick (src/lib.rs:7)");
        check(&[frame("pick", "src/lib.rs")], "\n  at pick (src/lib.rs:7)");
        check(&[panic()], "\n  at panic_fmt (/usr/lib/rustlib/src/rust/library/core/src/panicking.rs:7)");
        check(&[], "");
    }
}
