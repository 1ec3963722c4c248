//! Making plugins: `slackline plugin new`, `build` and `test`.
//!
//! A plugin is a Rust library compiled for `wasm32-unknown-unknown` and wrapped as a component. No WASI is linked, so
//! there is nothing to deny. What compiles it is the machine's own: `scripts/guest-toolchain.sh`, which this module
//! carries, finds rustup's target or prepares Debian's compiler, and says exactly what to install when neither is there.
//!
//! A new project works in an empty folder, without the repository: the SDK is not on a registry, so its sources and the
//! contract, which the binary carries too, are written into the project's `vendor/`. Its dependencies come
//! from crates.io as those of any project do.

mod build;
mod locate;
mod project;
mod vendor;

pub use build::{BuildOptions, Built, build};
pub use locate::{TARGET, Toolchain};
pub use project::{NewProject, TEMPLATES, new_project};

use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Runs the tests of the plugin in `path` natively, in the SDK's host in memory; `arguments` go to `cargo test`. With
/// `machine_output`, what cargo prints goes to standard error, so that standard output stays the caller's.
pub fn test(path: &Path, arguments: &[String], machine_output: bool) -> Result<ExitStatus> {
    let manifest = manifest_of(path)?;
    let mut command = Command::new("cargo");
    command.arg("test").arg("--manifest-path").arg(&manifest).args(arguments);
    if machine_output {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    command.status().context("cannot run cargo: install Rust from https://rustup.rs")
}

/// The Cargo.toml of a plugin's folder.
fn manifest_of(path: &Path) -> Result<std::path::PathBuf> {
    let manifest = if path.ends_with("Cargo.toml") { path.to_path_buf() } else { path.join("Cargo.toml") };
    manifest.canonicalize().with_context(|| {
        format!(
            "{} holds no Cargo.toml: give the folder of a plugin, or make one with `slackline plugin new`",
            path.display()
        )
    })
}
