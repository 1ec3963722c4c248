//! `host.toml`: what a host process does and how it can be reached. Without one, a whole cluster runs in one process.

use crate::config::section::{Bytes, Section};
use crate::config::tree::Node;
use crate::config::{ConfigError, Place};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where users are served unless told otherwise.
pub const USERS: &str = "127.0.0.1:7070";
/// Where health and metrics are.
const HTTP: &str = "127.0.0.1:7071";

const SECTIONS: &[(&str, &[&str])] = &[
    ("process", &["name", "state", "slots"]),
    ("listen", &["users", "http", "plaintext"]),
    ("tls", &["certificate", "key"]),
    ("users", &["token_file"]),
    ("limits", &["plugin", "dataset", "connections", "compile_memory", "compile_time"]),
];

/// What a host process is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The process's name.
    pub name: String,
    /// The folder of everything that it must remember.
    pub state: PathBuf,
    /// Workers that it runs at once.
    pub slots: u32,
    /// Where users are served.
    pub users: SocketAddr,
    /// Where health and metrics are served, if anywhere.
    pub http: Option<SocketAddr>,
    /// Whether users may be served without TLS beyond this machine.
    pub plaintext: bool,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The users' token; made in the state folder when left out.
    pub token_file: Option<PathBuf>,
    /// Bounds on what comes in.
    pub limits: HostLimits,
}

/// Bounds on what a host process takes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Bytes of a component.
    pub plugin_bytes: u64,
    /// Bytes of an uploaded dataset.
    pub dataset_bytes: u64,
    /// Connections at once.
    pub connections: u32,
    /// Memory of the process that compiles an uploaded component.
    pub compile_memory: u64,
    /// Seconds that it may take.
    pub compile_seconds: u32,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            plugin_bytes: 16 << 20,
            dataset_bytes: 4 << 30,
            connections: 1024,
            compile_memory: 2 << 30,
            compile_seconds: 60,
        }
    }
}

/// Reads a config file; with none, the defaults.
pub fn read(path: Option<&Path>) -> Result<HostConfig, ConfigError> {
    let Some(path) = path else { return parse(Path::new("host.toml"), "", Path::new(".")) };
    let text = std::fs::read_to_string(path)
        .map_err(|e| ConfigError::new(Place::File(path.to_owned()), format!("the config cannot be read: {e}")))?;
    let base = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parse(path, &text, base)
}

fn parse(file: &Path, text: &str, base: &Path) -> Result<HostConfig, ConfigError> {
    let root = Node::parse(file, text)?;
    let all = Section::of(&root, "")?;
    let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    if let Some((key, node)) = all.entries().find(|(key, _)| !names.contains(key)) {
        let error = ConfigError::new(node.place.clone(), format!("unknown section [{key}]"));
        return Err(error.hint(format!("there are {}", names.join(", "))));
    }
    let elsewhere = |key: &str| SECTIONS.iter().find(|(_, keys)| keys.contains(&key)).map(|(name, _)| *name);
    let open = |name: &str| {
        let known = SECTIONS.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, keys)| keys);
        Section::open(&root, name, known, &elsewhere)
    };
    let [process, listen, tls, users, limits] = ["process", "listen", "tls", "users", "limits"].map(open);
    let (process, listen, tls, users, limits) = (process?, listen?, tls?, users?, limits?);
    let name = process.get::<String>("name")?.unwrap_or_else(|| "local".to_owned());
    slackline_control::check_name("host process", &name).map_err(|e| process.bad("name", e.message))?;
    let certificate: Option<String> = tls.get("certificate")?;
    let key: Option<String> = tls.get("key")?;
    let tls = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((base.join(certificate), base.join(key))),
        (None, None) => None,
        (Some(_), None) => return Err(tls.bad("certificate", "needs `tls.key` beside it".to_owned())),
        (None, Some(_)) => return Err(tls.bad("key", "needs `tls.certificate` beside it".to_owned())),
    };
    let plaintext = listen.get("plaintext")?.unwrap_or(false);
    let users_at = address(&listen, "users", USERS)?;
    if tls.is_none() && !plaintext && !users_at.ip().is_loopback() {
        let why = format!("is {users_at}, which other machines reach, and there is no [tls]");
        return Err(listen.bad("users", why).hint(
            "`slackline certs new` makes certificates for [tls]; `listen.plaintext = true` serves without, on a network \
             that you trust",
        ));
    }
    let http = match listen.get::<String>("http")?.as_deref() {
        Some("off") => None,
        _ => Some(address(&listen, "http", HTTP)?),
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let defaults = HostLimits::default();
    let bytes = |key: &str, default: u64| Ok(limits.get::<Bytes>(key)?.map_or(default, |b| b.0));
    Ok(HostConfig {
        name,
        state: base.join(process.get::<String>("state")?.unwrap_or_else(|| ".slackline/cluster".to_owned())),
        slots: process.at_least("slots", 1)?.unwrap_or(cores),
        users: users_at,
        http,
        plaintext,
        tls,
        token_file: users.get::<String>("token_file")?.map(|f| base.join(f)),
        limits: HostLimits {
            plugin_bytes: bytes("plugin", defaults.plugin_bytes)?,
            dataset_bytes: bytes("dataset", defaults.dataset_bytes)?,
            connections: limits.at_least("connections", 1)?.unwrap_or(defaults.connections),
            compile_memory: bytes("compile_memory", defaults.compile_memory)?,
            compile_seconds: limits.at_least("compile_time", 1)?.unwrap_or(defaults.compile_seconds),
        },
    })
}

fn address(listen: &Section<'_>, key: &str, default: &str) -> Result<SocketAddr, ConfigError> {
    let typed = listen.get::<String>(key)?.unwrap_or_else(|| default.to_owned());
    typed.parse().map_err(|_| {
        listen.bad(key, format!("is {typed:?}, expected an address and a port")).hint("for example \"127.0.0.1:7070\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, says: &[&str]) {
        let e = parse(Path::new("host.toml"), text, Path::new(".")).unwrap_err();
        let said = format!("{e} {}", e.hint.clone().unwrap_or_default());
        says.iter().for_each(|word| assert!(said.contains(word), "{said:?} lacks {word:?}"));
    }

    #[test]
    fn without_a_file_everything_runs_here() {
        let config = read(None).unwrap();
        assert_eq!((config.users.to_string().as_str(), config.name.as_str()), (USERS, "local"));
        assert!(config.tls.is_none() && config.slots >= 1);
    }

    #[test]
    fn slips_are_named_with_their_line() {
        check("[process]\nslot = 2\n", &["host.toml:2", "unknown key `slot`", "did you mean `slots`"]);
        check("[proces]\n", &["unknown section [proces]"]);
        check("[process]\nname = \"a b\"\n", &["host.toml:2", "no name for a host process"]);
        check("[listen]\nusers = \"here\"\n", &["host.toml:2", "expected an address"]);
        check("[tls]\nkey = \"k\"\n", &["tls.certificate"]);
        check("[limits]\nplugin = \"much\"\n", &["host.toml:2", "bytes above 0"]);
    }

    #[test]
    fn plaintext_beyond_this_machine_needs_a_word() {
        check("[listen]\nusers = \"0.0.0.0:7070\"\n", &["there is no [tls]", "listen.plaintext"]);
        let open = "[listen]\nusers = \"0.0.0.0:7070\"\nplaintext = true\n";
        assert!(parse(Path::new("host.toml"), open, Path::new(".")).unwrap().plaintext);
        let tls = "[listen]\nusers = \"0.0.0.0:7070\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
        assert_eq!(parse(Path::new("h.toml"), tls, Path::new("/x")).unwrap().tls, Some(("/x/c".into(), "/x/k".into())));
    }
}
