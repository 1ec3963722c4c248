//! What commands share: finding a plugin, making the sandbox and the native core, loading a job's data.

use crate::engine::RunError;
use crate::failure::{Exit, Failure};
use crate::job::{Interrupt, Job, Limits, PluginRef};
use indicatif::{ProgressBar, ProgressStyle};
use slackline_core::ports::Kernels;
use slackline_core::{Manifest, PluginError, PluginErrorKind};
use slackline_data::{Data, Partitioning, Progress};
use slackline_kernels::NativeKernels;
use slackline_sandbox::{Component, Engine, EngineConfig, Overrun};
use slackline_storage::State;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plugin, loaded.
pub struct Loaded {
    /// The component, compiled.
    pub component: Arc<Component>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// `blake3:…` of them.
    pub digest: String,
}

/// Loads the plugin that a job names. `state` may hold it, when the job names a digest.
pub fn load_plugin(job: &Job, state: Option<&State>) -> Result<Loaded, Failure> {
    let (bytes, origin) = find(&job.plugin, state)?;
    load_bytes(bytes, &origin, &job.limits, resume_hint(job))
}

/// Loads a component from bytes.
pub fn load_bytes(bytes: Vec<u8>, origin: &str, limits: &Limits, hint: String) -> Result<Loaded, Failure> {
    let component = Arc::new(engine(limits, hint)?.load(&bytes, origin)?);
    let digest = format!("blake3:{}", component.digest());
    Ok(Loaded { component, bytes, digest })
}

/// What the watchdog adds to its last words.
pub fn resume_hint(job: &Job) -> String {
    format!("cuts of job {:?} that were complete stay good: --resume goes on from the newest", job.name)
}

fn engine(limits: &Limits, hint: String) -> Result<Engine, Failure> {
    let interrupt = match limits.interrupt {
        Interrupt::Epoch => slackline_sandbox::Interrupt::Epoch,
        Interrupt::Process => slackline_sandbox::Interrupt::Process(Arc::new(move |overrun: &Overrun| {
            eprintln!("error: {overrun}\n  hint: {hint}\n  hint: `limits.step_deadline` gives a step more time");
            std::process::exit(Exit::Failed as i32);
        })),
    };
    let mut config = EngineConfig::new(interrupt);
    config.cache_dir = cache_dir().map(|dir| dir.join("aot"));
    config.limits.memory = limits.memory_bytes;
    config.limits.step_deadline = limits.step_deadline;
    config.limits.log_bytes = usize::try_from(limits.log_bytes).unwrap_or(usize::MAX);
    match Engine::new(config.clone()) {
        Err(slackline_sandbox::EngineError::Cache { .. }) => {
            // A home that cannot be written costs compiling again, not the run.
            config.cache_dir = None;
            Engine::new(config)
        }
        made => made,
    }
    .map_err(|e| Failure::new(Exit::Failed, e.to_string()))
}

/// Where what can be made again is kept: `$XDG_CACHE_HOME` or `~/.cache`, below it `slackline`.
fn cache_dir() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = given.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    cache.map(|dir| dir.join("slackline"))
}

/// The bytes of a plugin and where they came from.
pub fn find(plugin: &PluginRef, state: Option<&State>) -> Result<(Vec<u8>, String), Failure> {
    let refused = |message: String| Failure::new(Exit::Refused, message);
    match plugin {
        PluginRef::Path(path) => {
            let origin = path.display().to_string();
            Ok((std::fs::read(path).map_err(|e| refused(format!("plugin {origin}: {e}")))?, origin))
        }
        PluginRef::Name(name) => {
            let bundled = bundled();
            match bundled.iter().find(|(known, _)| known == name) {
                Some((_, path)) => {
                    let bytes = std::fs::read(path).map_err(|e| refused(format!("plugin {}: {e}", path.display())))?;
                    Ok((bytes, name.clone()))
                }
                None => {
                    let known: Vec<_> = bundled.iter().map(|(n, _)| n.as_str()).collect();
                    let failure = refused(format!("there is no bundled plugin named {name:?}"));
                    Err(match known.is_empty() {
                        true => failure.hint("no plugins lie beside this binary: `make build` puts them there"),
                        false => failure
                            .hint(format!("bundled: {}", known.join(", ")))
                            .hint("a component file is named by its path, such as ./target/component/my_plugin.wasm"),
                    })
                }
            }
        }
        PluginRef::NameRev(name, rev) => Err(refused(format!("plugin {name}@{rev}: revisions need a registry"))
            .hint("an embedded run takes a bundled name, a path, or blake3:HEX")),
        PluginRef::Digest(hex) => {
            if let Some(bytes) = state.and_then(|s| s.blob(hex).ok()) {
                return Ok((bytes, format!("blake3:{hex}")));
            }
            for (_, path) in bundled() {
                if let Ok(bytes) = std::fs::read(&path)
                    && blake3::hash(&bytes).to_hex().as_str() == hex
                {
                    return Ok((bytes, format!("blake3:{hex}")));
                }
            }
            Err(refused(format!("no plugin with digest blake3:{hex} is in the state folder or bundled")))
        }
    }
}

/// Bundled plugins by name: components in `plugins` beside the binary, or in `../lib/slackline/plugins`.
pub fn bundled() -> Vec<(String, PathBuf)> {
    let Some(dir) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned)) else {
        return Vec::new();
    };
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for folder in [dir.join("plugins"), dir.join("../lib/slackline/plugins")] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            if path.extension().is_some_and(|e| e == "wasm") && found.iter().all(|(n, _)| *n != name) {
                found.push((name, path));
            }
        }
    }
    found.sort();
    found
}

/// The native core, with a thread for every core.
pub fn kernels() -> Result<Arc<dyn Kernels>, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let made = NativeKernels::new(threads).map_err(|e| Failure::new(Exit::Failed, e.to_string()))?;
    Ok(Arc::new(made))
}

/// Fills in what the plugin says about the job: parameters that were left out, and how rows are shared out.
pub fn settle(job: &mut Job, loaded: &Loaded, manifest: &Manifest) -> Result<(), Failure> {
    let given = serde_json::Value::Object(job.params.clone()).to_string();
    let usage =
        |e: PluginError| Failure::new(Exit::Usage, e.message).hint("parameters go into [params] of the job file");
    if let serde_json::Value::Object(params) = loaded.component.effective_params(&given).map_err(usage)? {
        job.params = params;
    }
    if let Some(needed) = &manifest.partition {
        let needed: Partitioning = needed.parse().map_err(|_| {
            let message = format!("plugin {}: its partition {needed:?} is no rule", manifest.name);
            Failure::from(PluginError::new(PluginErrorKind::Refused, message))
        })?;
        if job.partition_given && job.data.partition != needed {
            let (name, given) = (&manifest.name, &job.data.partition);
            return Err(Failure::new(
                Exit::Usage,
                format!("data.partition = \"{given}\": plugin {name} needs \"{needed}\""),
            )
            .hint("leave data.partition out, and what the plugin needs is taken"));
        }
        job.data.partition = needed;
    }
    Ok(())
}

/// Loads a job's data, with a bar on a terminal while it takes long.
pub fn load_data(job: &Job, manifest: &Manifest, state: &State) -> Result<Data, RunError> {
    let spill = state.dir().join("spill");
    let bar = std::io::stderr().is_terminal().then(bar);
    let mut progress = |p: Progress| {
        if let Some(bar) = &bar {
            bar.set_length(p.total);
            bar.set_position(p.bytes);
            bar.set_message(format!("reading {} ({} rows)", p.dataset, p.rows));
        }
    };
    let data = slackline_data::load(&job.data, &manifest.columns, Some(&spill), None, &mut progress)?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(data)
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes}");
    let bar = ProgressBar::new(0);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
