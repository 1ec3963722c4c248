//! From what was typed (a job file, flags) to what it means (a [`Job`]).
//!
//! Two stages: `tree` holds the text with its lines and flags, `job_file` reads every section of it, fills in
//! defaults and checks that the parts agree. The format of the file is fixed; `Job` is not.

mod echo;
pub mod error;
mod job_file;
mod render;
pub(crate) mod section;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

pub use echo::echo;
pub use error::{ConfigError, Place};
pub use render::render;

use crate::job::{Job, PluginRef};
use std::path::{Path, PathBuf};
use tree::{Kind, Node};

/// What the command line changes about a job file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// (flag, key path, value as typed), in the order that they are applied.
    entries: Vec<(String, String, String)>,
}

impl Overrides {
    /// `flag` was given with `value`, which stands for `key` of the job file, such as `clock.max`.
    pub fn flag(&mut self, flag: &str, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.entries.push((flag.to_owned(), key.to_owned(), value.to_string()));
        }
    }

    /// `--set key=value`: a parameter of the plugin (`topics=50`), or any key of the file (`data.batch=128`).
    pub fn set(&mut self, typed: &str) -> Result<(), ConfigError> {
        let flag = format!("--set {typed}");
        let Some((key, value)) = typed.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            return Err(ConfigError::new(Place::Flag(flag), "expected key=value")
                .hint("for example --set topics=50 or --set data.batch=128"));
        };
        let key = key.trim();
        let path = if key.contains('.') { key.to_owned() } else { format!("params.{key}") };
        self.entries.push((flag, path, value.trim().to_owned()));
        Ok(())
    }
}

/// A plugin by how a job file names it; relative paths start at `base`. The error goes after the name of what it is.
pub fn plugin_named(typed: &str, base: &Path) -> Result<PluginRef, String> {
    job_file::parse_plugin(typed, base)
}

/// The key and value of a flag such as `--param key=value`; nothing after the `=` is null.
pub fn param(flag: &str, typed: &str) -> Result<(String, serde_json::Value), ConfigError> {
    let place = format!("{flag} {typed}");
    match typed.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, "")) if !key.is_empty() => Ok((key.to_owned(), serde_json::Value::Null)),
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), Node::from_flag(&place, value).to_json(key)?)),
        _ => {
            Err(ConfigError::new(Place::Flag(place), "expected key=value").hint(format!("for example {flag} l2=0.01")))
        }
    }
}

/// Reads a job file and what the command line changes about it.
pub fn read(path: &Path, overrides: &Overrides) -> Result<Job, ConfigError> {
    let (root, base) = overlaid(path, overrides)?;
    job_file::job(&root, &base)
}

/// Reads a job from `text`. `file` is for messages; relative paths start at `base`.
pub fn parse(file: &Path, text: &str, base: &Path, overrides: &Overrides) -> Result<Job, ConfigError> {
    job_file::job(&overlay(Node::parse(file, text)?, overrides)?, base)
}

/// A job file with the command line laid over it, and where its relative paths start.
fn overlaid(path: &Path, overrides: &Overrides) -> Result<(Node, PathBuf), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        ConfigError::new(Place::File(path.to_owned()), format!("the job file cannot be read: {e}"))
            .hint("the first argument is the path of a job file, such as job.toml")
    })?;
    let base = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((overlay(Node::parse(path, &text)?, overrides)?, base))
}

fn overlay(mut root: Node, overrides: &Overrides) -> Result<Node, ConfigError> {
    for (flag, key, value) in &overrides.entries {
        let path: Vec<&str> = key.split('.').map(str::trim).collect();
        root.set(&path, Node::from_flag(flag, value))?;
    }
    // A model without a bound, asked for on the command line, is not held to the bound in the file.
    let staleness_in_file =
        matches!(root.get(&["consistency", "staleness"]), Some(Node { place: Place::Line(..), .. }));
    if let Some(Node { place: Place::Flag(_), kind: Kind::Text(model) }) = root.get(&["consistency", "model"])
        && matches!(model.as_str(), "bsp" | "async")
        && staleness_in_file
    {
        root.remove(&["consistency", "staleness"]);
    }
    Ok(root)
}
