//! The SDK and the contract, as this binary carries them into new projects.

/// A file: its path from the SDK's or the contract's root, and its text.
type File = (&'static str, &'static str);

macro_rules! carried {
    ($root:literal: $($file:literal)*) => {
        &[$(($file, include_str!(concat!("../../../../", $root, "/", $file)))),*]
    };
}

/// Sources of the SDK, below `guest-sdk`.
pub(super) const SDK: &[File] = carried! { "guest-sdk":
    "src/alloc.rs"
    "src/batch.rs"
    "src/bindings.rs"
    "src/buffer.rs"
    "src/component.rs"
    "src/element.rs"
    "src/error.rs"
    "src/kernels.rs"
    "src/lib.rs"
    "src/manifest.rs"
    "src/native.rs"
    "src/output.rs"
    "src/plugin.rs"
    "src/rng.rs"
    "src/run.rs"
    "src/sys/mod.rs"
    "src/sys/native.rs"
    "src/sys/wasm.rs"
    "src/table.rs"
    "src/telemetry.rs"
    "src/testing/array.rs"
    "src/testing/backend.rs"
    "src/testing/dataset.rs"
    "src/testing/kernels.rs"
    "src/testing/mod.rs"
    "src/testing/store.rs"
};

/// The SDK's Cargo.toml outside the repository, where no workspace gives it versions.
pub(super) const SDK_MANIFEST: &str = include_str!("../../../../templates/sdk/Cargo.toml.in");

/// The contract, below `wit`.
pub(super) const WIT: &[File] = carried! { "wit":
    "v0.1/plugin.wit"
    "v0.1/later.wit"
};

/// The template `data-parallel`; `.in` is cut off.
pub(super) const DATA_PARALLEL: &[File] = carried! { "templates/data-parallel":
    "Cargo.toml.in"
    "README.md.in"
    "gitignore.in"
    "job.toml.in"
    "src/lib.rs.in"
    "tests/training.rs.in"
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn below(root: &Path, folder: &str, files: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            let name = name.trim_start_matches('/').to_owned();
            if entry.file_type().unwrap().is_dir() {
                below(root, &name, files);
            } else {
                files.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_sdk_the_contract_and_the_template_is_carried() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let check = |root: &str, folder: &str, carried: &[File]| {
            let mut files = BTreeSet::new();
            below(&repository.join(root), folder, &mut files);
            let carried: BTreeSet<String> = carried.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(files, carried, "of {root}");
        };
        check("guest-sdk", "src", SDK);
        check("wit", "v0.1", WIT);
        check("templates/data-parallel", "", DATA_PARALLEL);
    }

    #[test]
    fn the_carried_manifest_asks_for_what_the_workspace_asks_for() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read =
            |path: &str| -> toml::Table { std::fs::read_to_string(repository.join(path)).unwrap().parse().unwrap() };
        let workspace = read("Cargo.toml")["workspace"].as_table().unwrap().clone();
        let sdk = read("guest-sdk/Cargo.toml");
        let carried: toml::Table = SDK_MANIFEST.parse().unwrap();
        let wasm = |t: &toml::Table| {
            let target = t["target"]["cfg(target_arch = \"wasm32\")"]["dependencies"].as_table().unwrap().clone();
            (t["dependencies"].as_table().unwrap().clone(), target)
        };
        let ((sdk, sdk_wasm), (ours, ours_wasm)) = (wasm(&sdk), wasm(&carried));
        for (asked, given) in [(sdk, ours), (sdk_wasm, ours_wasm)] {
            assert_eq!(asked.keys().collect::<Vec<_>>(), given.keys().collect::<Vec<_>>());
            for (name, version) in given {
                assert_eq!(version, workspace["dependencies"][&name], "{name}");
            }
        }
        for key in ["version", "edition", "rust-version", "license"] {
            assert_eq!(carried["package"][key], workspace["package"][key], "{key}");
        }
    }
}
