//! A submitted job file: what the coordinator must know of it, and how its process will read it.
//!
//! A file says `dataset:NAME` for an uploaded dataset; names are settled when the job is submitted, so that what is pushed
//! later changes nothing for it. Its plugin is kept by digest for the same reason.

use crate::config::{self, Overrides};
use crate::job::PluginRef;
use crate::serve::coordinator::{Coordinator, Trouble};
use crate::session;
use slackline_control::{PluginName, Refusal, RefusalKind, Submission, UsedDataset};
use slackline_core::TenantId;
use std::fs::File;
use std::path::Path;
use toml::{Table, Value};

/// What a path says that means an uploaded dataset.
pub const DATASET: &str = "dataset:";

/// Checks a job file as far as can be done without its data.
pub fn check(coordinator: &Coordinator, tenant: &TenantId, text: &str) -> Result<Submission, Trouble> {
    let job = config::parse(Path::new("job.toml"), text, Path::new("/"), &Overrides::default())
        .map_err(|e| refusal(RefusalKind::Invalid, e.to_string(), e.hint))?;
    let (digest, revision) = plugin(coordinator, tenant, &job.plugin)?;
    let mut datasets: Vec<UsedDataset> = Vec::new();
    for (part, source) in &job.data.datasets {
        for path in [Some(&source.path), source.vocab.as_ref()].into_iter().flatten() {
            let typed = path.strip_prefix("/").unwrap_or(path).to_string_lossy().into_owned();
            if let Some(name) = typed.strip_prefix(DATASET) {
                let found = coordinator.with(|c| c.dataset(tenant, name).cloned())?;
                let used = UsedDataset { name: found.name, digest: found.digest, file_name: found.file_name };
                if !datasets.contains(&used) {
                    datasets.push(used);
                }
            } else if let Err(e) = File::open(path).and_then(|f| f.metadata()) {
                let process = &coordinator.config.name;
                let message = format!("data.{part}: host process {process} cannot read {}: {e}", path.display());
                let hint = "a path is one on the host processes; `slackline data push FILE --name NAME` uploads a file, \
                            which a job reads as \"dataset:NAME\"";
                return Err(refusal(RefusalKind::Invalid, message, Some(hint.to_owned())).into());
            }
        }
    }
    Ok(Submission {
        name: job.name,
        toml: text.to_owned(),
        plugin: job.plugin.to_string(),
        digest,
        revision,
        workers: job.workers,
        max_clocks: job.max_clocks,
        datasets,
    })
}

/// The digest and revision that a job's plugin stands for now. A bundled one is kept like an uploaded one, since the job
/// must find the same bytes after the program was replaced by a newer release.
fn plugin(coordinator: &Coordinator, tenant: &TenantId, plugin: &PluginRef) -> Result<(String, u32), Trouble> {
    let name: PluginName = match plugin {
        PluginRef::Path(path) => {
            let message = format!("job.plugin: {} is a file; a cluster runs what is in its registry", path.display());
            let hint = "`slackline job submit` pushes it; or push it and name it";
            return Err(refusal(RefusalKind::Invalid, message, Some(hint.to_owned())).into());
        }
        other => other.to_string().parse()?,
    };
    let missing = match coordinator.with(|c| c.plugin(tenant, &name).cloned()) {
        Ok(revision) => return Ok((revision.digest, revision.number)),
        Err(missing) => missing,
    };
    let bundled = session::bundled().into_iter().filter(|(n, _)| match &name {
        PluginName::Newest(wanted) => n == wanted,
        PluginName::Digest(_) => true,
        PluginName::Number(..) | PluginName::Tag(..) => false,
    });
    for (_, path) in bundled {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let digest = format!("blake3:{}", blake3::hash(&bytes).to_hex());
        if matches!(&name, PluginName::Digest(wanted) if *wanted != digest) {
            continue;
        }
        let blobs = coordinator.blobs();
        if blobs.path(&digest)?.is_none() {
            let mut upload = blobs.upload(bytes.len() as u64)?;
            upload.write(&bytes)?;
            upload.finish(&digest)?;
        }
        return Ok((digest, 0));
    }
    Err(missing.into())
}

/// The job file as the job's process reads it: plugin and uploaded datasets by their paths here.
pub fn for_process(coordinator: &Coordinator, submission: &Submission) -> Result<String, String> {
    let mut table: Table = submission.toml.parse().map_err(|e| format!("the job file cannot be read again: {e}"))?;
    let blob = |digest: &str, what: &str| match coordinator.blobs().path(digest) {
        Ok(Some(path)) => std::path::absolute(path).map_err(|e| e.to_string()),
        Ok(None) => Err(format!("{what} is not here any more: {digest}")),
        Err(e) => Err(e.to_string()),
    };
    let plugin = blob(&submission.digest, &format!("plugin {}", submission.plugin))?;
    if let Some(Value::Table(job)) = table.get_mut("job") {
        job.insert("plugin".to_owned(), Value::String(plugin.to_string_lossy().into_owned()));
    }
    let Some(Value::Table(data)) = table.get_mut("data") else { return Ok(table.to_string()) };
    for (_, value) in data.iter_mut() {
        // A dataset may be written as its path alone.
        if let Value::String(path) = value
            && path.starts_with(DATASET)
        {
            *value = Value::Table(Table::from_iter([("path".to_owned(), Value::String(path.clone()))]));
        }
        let Value::Table(source) = value else { continue };
        for key in ["path", "vocab"] {
            let Some(name) = source.get(key).and_then(Value::as_str).and_then(|p| p.strip_prefix(DATASET)) else {
                continue;
            };
            let used = submission.datasets.iter().find(|d| d.name == name);
            let used = used.ok_or_else(|| format!("the job's record lacks dataset {name:?}"))?;
            let path = blob(&used.digest, &format!("dataset {name}"))?;
            // Its name here has no ending that would tell the format.
            if key == "path"
                && !source.contains_key("format")
                && let Ok(format) = slackline_data::Format::of_path(Path::new(&used.file_name))
            {
                source.insert("format".to_owned(), Value::String(format.to_string()));
            }
            source.insert(key.to_owned(), Value::String(path.to_string_lossy().into_owned()));
        }
    }
    Ok(table.to_string())
}

fn refusal(kind: RefusalKind, message: String, hint: Option<String>) -> Refusal {
    Refusal { kind, message, hint }
}
