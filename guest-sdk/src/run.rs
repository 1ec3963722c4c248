//! Where this worker stands.

use crate::sys;

/// This worker's place among the workers.
pub fn worker() -> u32 {
    sys::worker()
}

/// Number of workers.
pub fn workers() -> u32 {
    sys::workers()
}

/// This worker's clock.
pub fn clock() -> u32 {
    sys::clock()
}

/// Whether the job is being stopped: a long step may end early.
pub fn cancelled() -> bool {
    sys::cancelled()
}
