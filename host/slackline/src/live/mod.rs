//! Asking a run that goes on, from another process: a Unix socket in its state folder.
//!
//! One JSON object a line each way ([`protocol`]). The [`server`] belongs to the run and passes questions on over a channel,
//! so that no client can hold training up; the [`client`] is what the `job` commands use.

pub mod client;
pub mod protocol;
pub mod server;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The socket's name in a state folder.
pub const SOCKET: &str = "live.sock";

/// A folder whose files can be named briefly: a socket's path may have about a hundred bytes, a state folder's more.
struct Short {
    folder: File,
}

impl Short {
    fn open(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { folder: File::open(folder)? })
    }

    /// A brief path of `name` in the folder.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()))
    }
}
