//! Candidates for a swap: found as a job's plugin is found, compiled, and given their parameters.
//!
//! Each is compiled twice: once as the job's limits say, and once with checks and a short deadline, for all that happens to
//! it before it is trusted. Under the watchdog a candidate that never ends would end the run that it was to improve.

use crate::engine::asks::{Candidate, Loader, SwapRequest};
use crate::engine::versions::Version;
use crate::failure::{Exit, Failure};
use crate::job::{Interrupt, Job, Limits, PluginRef};
use crate::session;
use serde_json::{Map, Value};
use slackline_core::Manifest;
use slackline_core::ports::Plugin;
use slackline_storage::State;
use std::time::Duration;

/// How long a candidate may take over one call before it is trusted.
const DEADLINE: Duration = Duration::from_secs(10);
/// Bytes of a component file at most, as the sandbox has it.
const MAX_FILE: u64 = 64 << 20;

/// Loads candidates for a job.
pub struct Candidates<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its state folder, which holds the components of its versions.
    pub state: &'a State,
}

impl Loader for Candidates<'_> {
    fn load(&self, request: &SwapRequest, running: &Version) -> Result<Candidate, Failure> {
        let digest = |text: &str| PluginRef::Digest(text.strip_prefix("blake3:").unwrap_or(text).to_owned());
        let plugin = match (&request.recorded, &request.plugin) {
            (Some(recorded), _) => digest(&recorded.digest),
            (None, Some(plugin)) => plugin.clone(),
            (None, None) => digest(&running.record.digest),
        };
        if let PluginRef::Path(path) = &plugin {
            // A pipe would be read for ever.
            let file = std::fs::metadata(path).map_err(|e| e.to_string()).and_then(|m| match m.len() {
                _ if !m.is_file() => Err("this is no file".to_owned()),
                n if n > MAX_FILE => Err(format!("the component has {n} bytes, where {MAX_FILE} are allowed")),
                _ => Ok(()),
            });
            file.map_err(|why| Failure::new(Exit::Refused, format!("plugin {}: {why}", path.display())))?;
        }
        let (bytes, origin) = session::find(&plugin, Some(self.state))?;
        let deadline = self.job.limits.step_deadline.min(DEADLINE);
        let careful = Limits { interrupt: Interrupt::Epoch, step_deadline: deadline, ..self.job.limits };
        let probe = session::load_bytes(bytes.clone(), &origin, &careful, String::new())?;
        let params = match &request.recorded {
            Some(recorded) => recorded.params.clone(),
            None => {
                let (old, new) = (running.plugin.manifest(), probe.component.manifest());
                let given = merged(running.record.params(), &request.params, old, new).to_string();
                let complete = probe.component.effective_params(&given);
                complete
                    .map_err(|e| Failure::new(Exit::Usage, e.message).hint("the version that runs goes on"))?
                    .to_string()
            }
        };
        let loaded = session::load_bytes(bytes, &origin, &self.job.limits, session::resume_hint(self.job))?;
        Ok(Candidate {
            digest: loaded.digest,
            bytes: loaded.bytes,
            plugin: loaded.component,
            probe: probe.component,
            params,
        })
    }
}

/// The parameters that run, with `changes`. One that nobody set and that the new plugin does not have goes.
fn merged(mut running: Map<String, Value>, changes: &Map<String, Value>, old: &Manifest, new: &Manifest) -> Value {
    let property = |m: &Manifest, name: &str| m.params.get("properties").and_then(|p| p.get(name)).cloned();
    running.retain(|name, value| {
        let default = property(old, name).and_then(|p| p.get("default").cloned());
        property(new, name).is_some() || default.as_ref() != Some(value)
    });
    for (name, value) in changes {
        match value {
            // Nothing is the new plugin's own default.
            Value::Null => drop(running.remove(name)),
            value => drop(running.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_runs_stays_but_for_changes_and_defaults_that_the_new_plugin_lacks() {
        let manifest = |params: Value| -> Manifest {
            let text = json!({"name": "p", "version": "1", "params": params, "columns": [], "metrics": []});
            serde_json::from_value(text).unwrap()
        };
        let old = manifest(json!({"properties": {"a": {"default": 1}, "b": {"default": 2}, "c": {}}}));
        let new = manifest(json!({"properties": {"c": {}, "d": {"default": 4}}}));
        let object = |v: Value| v.as_object().cloned().unwrap();
        let running = object(json!({"a": 1, "b": 3, "c": 5}));
        let got = merged(running.clone(), &object(json!({"c": 6})), &old, &new);
        assert_eq!(got, json!({"b": 3, "c": 6}), "b was set, so that its going is for the schema to refuse");
        assert_eq!(merged(running, &object(json!({"b": null})), &old, &new), json!({"c": 5}));
    }
}
