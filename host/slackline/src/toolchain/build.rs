//! From a plugin's folder to a component.

use super::locate::{TARGET, Toolchain};
use super::manifest_of;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wit_component::ComponentEncoder;

/// What to build and how.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// The plugin's folder.
    pub path: PathBuf,
    /// Optimised, as for jobs. Otherwise with checks, for finding mistakes.
    pub release: bool,
    /// Where the component goes; by default `target/component` of the plugin's workspace.
    pub out: Option<PathBuf>,
    /// Say nothing but errors.
    pub quiet: bool,
}

/// A component on disk.
#[derive(Clone, Debug)]
pub struct Built {
    /// Name of the plugin's package.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// BLAKE3 of its bytes, in hexadecimal.
    pub digest: String,
}

/// What cargo says of the package.
#[derive(Debug, PartialEq)]
struct Package {
    name: String,
    workspace: PathBuf,
}

/// Compiles the plugin, wraps it as a component, checks that against the contract, and writes `NAME.wasm`, where NAME is
/// the library's.
pub fn build(options: &BuildOptions) -> Result<Built> {
    let manifest = manifest_of(&options.path)?;
    let toolchain = Toolchain::find()?;
    let package = package(&toolchain, &manifest)?;
    let module_path = compile(&toolchain, &manifest, &package.workspace, options)?;
    let module = std::fs::read(&module_path).with_context(|| format!("cannot read {}", module_path.display()))?;
    let component = wrap(&module).with_context(|| format!("{} is no component", package.name))?;
    let out = options.out.clone().unwrap_or_else(|| package.workspace.join("target/component"));
    let file = module_path.file_name().context("cargo named a module without a file name")?;
    let path = out.join(file);
    write(&path, &component)?;
    let digest = blake3::hash(&component).to_hex().to_string();
    Ok(Built { name: package.name, path, bytes: component.len() as u64, digest })
}

/// Wraps a core module, whose custom section holds the types of its imports and exports, as a component. Names, files
/// and lines of its functions stay in, so that a trap can show them.
fn wrap(module: &[u8]) -> Result<Vec<u8>> {
    let component = ComponentEncoder::default()
        .module(module)
        .context("it does not carry the contract's types: does it call slackline_guest::export!?")?
        .validate(true)
        .encode()
        .context("its imports or exports are not the contract's")?;
    Ok(component)
}

fn package(toolchain: &Toolchain, manifest: &Path) -> Result<Package> {
    let output = Command::new(&toolchain.cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"])
        .arg(manifest)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", toolchain.cargo.display()))?;
    if !output.status.success() {
        bail!("cargo cannot read {}", manifest.display());
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    find_package(&metadata, manifest)
}

fn find_package(metadata: &Value, manifest: &Path) -> Result<Package> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let package =
        packages.iter().find(|p| p["manifest_path"].as_str().is_some_and(|m| Path::new(m) == manifest)).with_context(
            || format!("{} is a workspace, not a plugin: give the plugin's own folder", manifest.display()),
        )?;
    let name = package["name"].as_str().unwrap_or_default().to_owned();
    let is_cdylib = |target: &Value| {
        target["crate_types"].as_array().is_some_and(|types| types.iter().any(|t| t.as_str() == Some("cdylib")))
    };
    if !package["targets"].as_array().is_some_and(|targets| targets.iter().any(is_cdylib)) {
        bail!(
            "package {name} makes no module: add to {}\n    [lib]\n    crate-type = [\"cdylib\", \"rlib\"]",
            manifest.display()
        );
    }
    let workspace = metadata["workspace_root"].as_str().context("cargo metadata names no workspace root")?;
    Ok(Package { name, workspace: workspace.into() })
}

/// Runs cargo and gives the module that it made.
fn compile(toolchain: &Toolchain, manifest: &Path, workspace: &Path, options: &BuildOptions) -> Result<PathBuf> {
    let mut command = toolchain.cargo(workspace);
    command.args(["build", "--lib", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    command.arg("--manifest-path").arg(manifest);
    if options.release {
        command.arg("--release");
        // A guest's release build is the platform's business: inlining across crates pays in loops that the sandbox
        // checks, and lines must stay for traps.
        for (key, value) in [
            ("OPT_LEVEL", "3"),
            ("LTO", "fat"),
            ("CODEGEN_UNITS", "1"),
            ("DEBUG", "line-tables-only"),
            ("STRIP", "none"),
        ] {
            command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
        }
    }
    if options.quiet {
        command.arg("--quiet");
    }
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", toolchain.cargo.display()))?;
    if !output.status.success() {
        bail!("the plugin does not compile");
    }
    module_in(&String::from_utf8_lossy(&output.stdout), manifest)
        .with_context(|| format!("cargo made no module of {}", manifest.display()))
}

/// The .wasm among cargo's messages on the package.
fn module_in(messages: &str, manifest: &Path) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|m| m["reason"] == "compiler-artifact")
        .filter(|m| m["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest))
        .flat_map(|m| m["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|f| f.as_str().map(PathBuf::from))
        .rfind(|f| f.extension().is_some_and(|e| e == "wasm"))
}

/// Whole or not at all: a job may be reading the file of an earlier build.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a component needs a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let aside = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&aside, bytes).with_context(|| format!("cannot write {}", aside.display()))?;
    std::fs::rename(&aside, path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workspace_and_a_plain_library_are_refused_with_what_to_do() {
        let manifest = Path::new("/p/Cargo.toml");
        let package = |types: &[&str]| {
            json!({"workspace_root": "/p", "packages": [
                {"name": "mine", "manifest_path": "/p/Cargo.toml", "targets": [{"crate_types": types}]}]})
        };
        assert_eq!(
            find_package(&package(&["cdylib", "rlib"]), manifest).unwrap(),
            Package { name: "mine".into(), workspace: "/p".into() }
        );
        let plain = find_package(&package(&["lib"]), manifest).unwrap_err().to_string();
        assert!(plain.contains("crate-type"), "{plain}");
        let workspace = find_package(&json!({"workspace_root": "/p", "packages": []}), manifest).unwrap_err();
        assert!(workspace.to_string().contains("workspace"), "{workspace}");
    }

    #[test]
    fn the_module_is_the_packages_own() {
        let messages = [
            json!({"reason": "compiler-artifact", "manifest_path": "/d/Cargo.toml", "filenames": ["/t/dep.wasm"]}),
            json!({"reason": "compiler-artifact", "manifest_path": "/p/Cargo.toml", "filenames": ["/t/p.rlib", "/t/p.wasm"]}),
            json!({"reason": "build-finished", "success": true}),
        ];
        let lines = messages.map(|m| m.to_string()).join("\n");
        assert_eq!(module_in(&lines, Path::new("/p/Cargo.toml")), Some("/t/p.wasm".into()));
        assert_eq!(module_in("not json\n", Path::new("/p/Cargo.toml")), None);
    }

    #[test]
    fn bytes_that_are_no_module_of_the_contract_are_refused() {
        assert!(wrap(b"nonsense").is_err());
        // A module of core WebAssembly with an import that no world grants.
        let import = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x07\x01\x01a\x01b\0\0";
        assert!(wrap(import).is_err());
    }
}
