//! Which compiler builds guests on this machine.

use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target of every guest.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// One way for all to find it: `make` runs the same script.
const SCRIPT: &str = include_str!("../../../../scripts/guest-toolchain.sh");

/// What compiles guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// Its cargo.
    pub cargo: PathBuf,
    /// Where the standard library for the target lies, when not with the compiler.
    pub sysroot: Option<PathBuf>,
    /// The linker, when the compiler brings none.
    pub linker: Option<String>,
}

impl Toolchain {
    /// Finds it, or prepares it where nothing has to be installed: the first time with Debian's compiler the standard
    /// library is built, which takes about a minute. Otherwise the error says what to install.
    pub fn find() -> Result<Self> {
        let mut child = Command::new("sh")
            .args(["-s", "--", "--no-install", "--print"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run sh to look for a guest toolchain")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(SCRIPT.as_bytes()).context("cannot hand the toolchain script to sh")?;
        }
        let output = child.wait_with_output().context("cannot wait for the toolchain script")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// From the script's lines KEY=VALUE.
    fn parse(lines: &str) -> Result<Self> {
        let mut values: HashMap<&str, &str> = lines.lines().filter_map(|l| l.split_once('=')).collect();
        let mut path = |key| values.remove(key).map(PathBuf::from);
        let (rustc, cargo, sysroot) = (path("RUSTC"), path("CARGO"), path("SYSROOT"));
        let linker = values.remove("LINKER").map(str::to_owned);
        match (rustc, cargo) {
            (Some(rustc), Some(cargo)) => Ok(Self { rustc, cargo, sysroot, linker }),
            _ => bail!("the toolchain script named no compiler"),
        }
    }

    /// A cargo that compiles a workspace with this toolchain, and with nothing of the caller's that is meant for native
    /// builds.
    pub(super) fn cargo(&self, workspace: &Path) -> Command {
        let mut command = Command::new(&self.cargo);
        for name in ["RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTUP_TOOLCHAIN", "RUSTC"] {
            command.env_remove(name);
        }
        if self.sysroot.is_some() {
            command.env("RUSTC", &self.rustc);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", self.flags(workspace).join(&OsString::from("\u{1f}")));
        // Incremental compilation and link-time optimisation exclude each other.
        command.env("CARGO_INCREMENTAL", "0");
        command
    }

    fn flags(&self, workspace: &Path) -> Vec<OsString> {
        let mut flags = vec![OsString::from("-Ctarget-feature=+simd128,+bulk-memory")];
        if let Some(linker) = &self.linker {
            flags.push(format!("-Clinker={linker}").into());
        }
        if let Some(sysroot) = &self.sysroot {
            flags.push("--sysroot".into());
            flags.push(sysroot.into());
        }
        // The same sources give the same bytes, so the same digest, wherever they and cargo's registry lie; and a trap names
        // files as the author knows them.
        let cargo_home = std::env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
        for (from, to) in cargo_home.as_deref().map(|home| (home, "/cargo")).into_iter().chain([(workspace, "")]) {
            let mut remap = OsString::from("--remap-path-prefix=");
            remap.push(from);
            remap.push("=");
            remap.push(to);
            flags.push(remap);
        }
        flags
    }
}

trait Join {
    fn join(&self, separator: &OsString) -> OsString;
}

impl Join for Vec<OsString> {
    fn join(&self, separator: &OsString) -> OsString {
        let mut all = OsString::new();
        for (i, part) in self.iter().enumerate() {
            if i > 0 {
                all.push(separator);
            }
            all.push(part);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_answer_is_read_with_and_without_a_sysroot() {
        let rustup = Toolchain::parse("RUSTC=/a/rustc\nCARGO=/a/cargo\n").unwrap();
        assert_eq!((rustup.sysroot, rustup.linker), (None, None));
        let debian =
            Toolchain::parse("RUSTC=/u/rustc\nCARGO=/u/cargo\nSYSROOT=/c/with space\nLINKER=wasm-ld-19\n").unwrap();
        assert_eq!(debian.sysroot, Some(PathBuf::from("/c/with space")));
        let flags = debian.flags(Path::new("/p"));
        assert!(flags.contains(&"-Clinker=wasm-ld-19".into()) && flags.contains(&"/c/with space".into()), "{flags:?}");
        assert!(flags.contains(&"--remap-path-prefix=/p=".into()), "{flags:?}");
        assert!(Toolchain::parse("CARGO=/a/cargo").is_err());
    }
}
