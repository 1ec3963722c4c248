//! Ctrl-C: the first asks the run to end its clock and write a cut, the second ends the process.

use crate::failure::{Exit, Failure};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flag that SIGINT or SIGTERM sets. A second signal, while the first is still being obeyed, exits with 130.
pub fn flag_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown looks at the flag before the same signal sets it.
        flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, asked.clone())
            .and_then(|_| flag::register(signal, asked.clone()))
            .map_err(|e| Failure::new(Exit::Usage, format!("signals cannot be caught: {e}")))?;
    }
    Ok(asked)
}

/// Sets `asked` once the process `parent` is not this one's parent any more: whoever started this run is gone, and
/// nobody would hear what it says. Asking beats a signal on the parent's death, which means the death of a thread.
pub fn flag_without_parent(parent: u32, asked: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_millis(200));
        }
        asked.store(true, Ordering::SeqCst);
    });
}
