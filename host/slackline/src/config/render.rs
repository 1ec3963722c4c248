//! A job file with its flags laid over it, as one TOML text that means the same elsewhere: what a cluster is sent.

use super::tree::{Kind, Node};
use super::{ConfigError, Overrides, overlaid};
use std::path::{Path, absolute};
use toml::{Table, Value};

/// The text of the job file `path` under `overrides`, with paths of files made absolute. Paths that begin with `uploaded`
/// are names, and stay.
pub fn render(path: &Path, overrides: &Overrides, uploaded: &str) -> Result<String, ConfigError> {
    let (root, base) = overlaid(path, overrides)?;
    let Value::Table(mut table) = value(&root) else { return Ok(String::new()) };
    if let Some(Value::Table(data)) = table.get_mut("data") {
        // Whatever else the section holds has no `path`; a dataset may be its path alone.
        for (key, entry) in data.iter_mut() {
            match entry {
                Value::String(path) if !matches!(key.as_str(), "partition" | "split" | "memory") => {
                    *path = placed(path, &base, uploaded);
                }
                Value::Table(source) => {
                    for key in ["path", "vocab"] {
                        if let Some(Value::String(path)) = source.get_mut(key) {
                            *path = placed(path, &base, uploaded);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    Ok(table.to_string())
}

fn placed(path: &str, base: &Path, uploaded: &str) -> String {
    match path.starts_with(uploaded) {
        true => path.to_owned(),
        false => absolute(base.join(path)).map_or_else(|_| path.to_owned(), |p| p.to_string_lossy().into_owned()),
    }
}

fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Table(entries) => Value::Table(entries.iter().map(|(k, v)| (k.clone(), value(v))).collect::<Table>()),
        Kind::Array(items) => Value::Array(items.iter().map(value).collect()),
        Kind::Text(text) => Value::String(text.clone()),
        Kind::Integer(n) => Value::Integer(*n),
        Kind::Float(x) => Value::Float(*x),
        Kind::Bool(b) => Value::Boolean(*b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_laid_over_and_paths_of_files_become_absolute() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("job.toml");
        let text = "[job]\nname = \"x\"\nplugin = \"mlr\"\n[data]\ntrain = \"a.csv\"\ntest = { path = \"dataset:t\", \
                    vocab = \"v.txt\" }\npartition = \"rows\"\n[clock]\nmax = 1\n";
        std::fs::write(&file, text).unwrap();
        let mut overrides = Overrides::default();
        overrides.set("l2=0.5").unwrap();
        overrides.flag("--clocks", "clock.max", Some(3));
        let table: Table = render(&file, &overrides, "dataset:").unwrap().parse().unwrap();
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        assert_eq!(table["data"]["train"].as_str(), Some(at("a.csv").as_str()));
        assert_eq!(table["data"]["test"]["path"].as_str(), Some("dataset:t"));
        assert_eq!(table["data"]["test"]["vocab"].as_str(), Some(at("v.txt").as_str()));
        assert_eq!(table["data"]["partition"].as_str(), Some("rows"));
        assert_eq!((table["params"]["l2"].as_float(), table["clock"]["max"].as_integer()), (Some(0.5), Some(3)));
    }
}
