//! A new plugin's folder.

use super::vendor;
use anyhow::{Context, Result, bail};
use slackline_core::random::{mix, unit};
use std::path::{Path, PathBuf};

/// Names of the templates.
pub const TEMPLATES: &[&str] = &["data-parallel"];

/// A project on disk.
#[derive(Clone, Debug)]
pub struct NewProject {
    /// Its folder.
    pub folder: PathBuf,
    /// Its files, from the folder.
    pub files: Vec<PathBuf>,
}

/// Makes `parent/name` from a template, with the SDK and the contract in `vendor/`. The folder appears whole or not at
/// all, and one that exists is left alone.
pub fn new_project(parent: &Path, name: &str, template: &str) -> Result<NewProject> {
    check_name(name)?;
    if !TEMPLATES.contains(&template) {
        bail!("no template {template:?}; there is {}", TEMPLATES.join(", "));
    }
    let folder = parent.join(name);
    if folder.exists() {
        bail!("{} exists already: choose another name or remove it", folder.display());
    }
    let aside = parent.join(format!(".{name}.{}", std::process::id()));
    let written = write_all(&aside, name).and_then(|files| {
        std::fs::rename(&aside, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(files)
    });
    if written.is_err() {
        // What is left of a failed try is of no use; the error that counts is the first one.
        let _ = std::fs::remove_dir_all(&aside);
    }
    Ok(NewProject { folder, files: written? })
}

fn write_all(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let library = name.replace('-', "_");
    let mut files = Vec::new();
    let mut write = |file: String, text: &str| -> Result<()> {
        let path = folder.join(&file);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        files.push(file.into());
        Ok(())
    };
    for (file, text) in vendor::DATA_PARALLEL {
        let file = file.trim_end_matches(".in");
        let file = if file == "gitignore" { ".gitignore" } else { file };
        write(file.to_owned(), &text.replace("@NAME@", name).replace("@LIB@", &library))?;
    }
    write("train.csv".to_owned(), &example_data())?;
    write("vendor/slackline-guest/Cargo.toml".to_owned(), vendor::SDK_MANIFEST)?;
    for (file, text) in vendor::SDK {
        write(format!("vendor/slackline-guest/{file}"), text)?;
    }
    for (file, text) in vendor::WIT {
        // The SDK looks for the contract where it lies in the repository: beside its own folder.
        write(format!("vendor/wit/{file}"), text)?;
    }
    Ok(files)
}

/// Rows with y = 2·x0 − x1 + 0.5, for the first run of a new project.
fn example_data() -> String {
    let x = |i: u64| unit(mix(i)) * 2.0 - 1.0;
    let row = |i: u64| format!("{:.4},{:.4},{:.4}\n", x(2 * i), x(2 * i + 1), 2.0 * x(2 * i) - x(2 * i + 1) + 0.5);
    std::iter::once("x0,x1,y\n".to_owned()).chain((0..2000).map(row)).collect()
}

/// A name has to serve as a package's, a library's and a folder's.
fn check_name(name: &str) -> Result<()> {
    let sound = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if !sound {
        bail!("{name:?} is no plugin name: a lower-case letter, then letters, digits, - and _, at most 64");
    }
    if ["test", "core", "std", "alloc", "serde", "schemars", "slackline-guest", "slackline_guest"].contains(&name)
        || KEYWORDS.contains(&name)
    {
        bail!("{name:?} already means something to Rust: choose another name");
    }
    Ok(())
}

/// Lower-case words that no crate can be called by.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_appears_whole_with_its_names_filled_in() {
        let parent = tempfile::tempdir().unwrap();
        let project = new_project(parent.path(), "my-model", "data-parallel").unwrap();
        assert!(project.files.len() > 30);
        for file in &project.files {
            let text = std::fs::read_to_string(project.folder.join(file)).unwrap();
            assert!(!text.contains("@NAME@") && !text.contains("@LIB@"), "{}", file.display());
        }
        let read = |file: &str| std::fs::read_to_string(project.folder.join(file)).unwrap();
        assert!(read("Cargo.toml").contains("name = \"my-model\""));
        assert!(read("tests/training.rs").contains("use my_model::"));
        assert!(read("job.toml").contains("target/component/my_model.wasm"));
        assert!(read(".gitignore").contains("target"));
        assert!(read("vendor/wit/v0.1/plugin.wit").contains("world data-parallel"));
        let left: Vec<_> = std::fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside the project");
    }

    #[test]
    fn an_existing_folder_a_wrong_name_and_an_unknown_template_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("mine")).unwrap();
        let refused = |name, template| new_project(parent.path(), name, template).unwrap_err().to_string();
        assert!(refused("mine", "data-parallel").contains("exists"));
        assert!(refused("../up", "data-parallel").contains("no plugin name"));
        assert!(refused("Mine", "data-parallel").contains("no plugin name"));
        assert!(refused("match", "data-parallel").contains("Rust"));
        assert!(refused("other", "stream").contains("data-parallel"));
        assert!(!parent.path().join("other").exists());
    }
}
