//! A loaded plugin: compiled, checked against the contract, and asked what it is.

use crate::contract::Surface;
use crate::engine::Engine;
use crate::host::State;
use crate::program::{Instance, Sandbox};
use crate::schema::Schema;
use crate::v0_1::{self, DataParallelPre};
use crate::{manifest, schema};
use slackline_core::ports::{Plugin, Program, WorkerHost};
use slackline_core::{Facts, Manifest, Plan, PluginError, PluginErrorKind};
use std::sync::Arc;

/// What an instance is made from.
pub(crate) struct Loaded {
    pub engine: Engine,
    pub pre: DataParallelPre<State>,
    pub origin: Arc<str>,
}

/// A component of the track's world.
pub struct Component {
    loaded: Loaded,
    digest: blake3::Hash,
    size: usize,
    surface: Surface,
    manifest: Arc<Manifest>,
    schema: Schema,
}

/// What `slackline plugin inspect` shows.
#[derive(Clone, Debug)]
pub struct Inspection<'a> {
    /// BLAKE3 of the bytes, as `blake3:HEX`.
    pub digest: String,
    /// Bytes of the component.
    pub size: usize,
    /// Package and world of the contract that it was checked against.
    pub world: String,
    /// Interfaces that it imports.
    pub imports: &'a [String],
    /// Interfaces that it exports.
    pub exports: &'a [String],
    /// What it says of itself.
    pub manifest: &'a Manifest,
}

impl Component {
    pub(crate) fn new(
        engine: Engine,
        pre: DataParallelPre<State>,
        digest: blake3::Hash,
        size: usize,
        origin: &str,
        surface: Surface,
    ) -> Result<Self, PluginError> {
        let loaded = Loaded { engine, pre, origin: origin.into() };
        let text = Sandbox::throwaway(&loaded, None)?.describe()?;
        let refused = |why: String| PluginError::new(PluginErrorKind::Refused, format!("{origin}: {why}"));
        let manifest = manifest::parse(&text).map_err(refused)?;
        let schema = Schema::new(&manifest.params).map_err(|e| refused(format!("the manifest's params: {e}")))?;
        Ok(Self { loaded, digest, size, surface, manifest: Arc::new(manifest), schema })
    }

    /// BLAKE3 of the bytes.
    pub fn digest(&self) -> blake3::Hash {
        self.digest
    }

    /// What it is, for people.
    pub fn inspect(&self) -> Inspection<'_> {
        Inspection {
            digest: format!("blake3:{}", self.digest),
            size: self.size,
            world: format!("{} {}", v0_1::PACKAGE, v0_1::WORLD),
            imports: &self.surface.imports,
            exports: &self.surface.exports,
            manifest: &self.manifest,
        }
    }

    /// `params` checked against the plugin's schema, with the defaults of those that are missing.
    pub fn effective_params(&self, params: &str) -> Result<serde_json::Value, PluginError> {
        let checked = schema::parse_object(params).and_then(|value| self.schema.complete(value));
        checked.map_err(|why| {
            PluginError::new(PluginErrorKind::Refused, format!("parameters of plugin {}: {why}", self.manifest.name))
        })
    }

    /// [`Plugin::create`], with the type that has [`Instance::stats`].
    pub fn instantiate(&self, host: WorkerHost, params: &str) -> Result<Instance, PluginError> {
        let params = self.effective_params(params)?.to_string();
        self.sandbox(host)?.create(&params)
    }

    /// [`Plugin::restore`], with the type that has [`Instance::stats`].
    pub fn instantiate_from(
        &self,
        host: WorkerHost,
        writer: &str,
        state: &[u8],
        params: &str,
    ) -> Result<Instance, PluginError> {
        let params = self.effective_params(params)?.to_string();
        self.sandbox(host)?.restore(writer, state, &params)
    }

    fn sandbox(&self, host: WorkerHost) -> Result<Sandbox, PluginError> {
        Sandbox::new(&self.loaded, Some(self.manifest.clone()), host, self.loaded.engine.limits().clone())
    }
}

impl Plugin for Component {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, params: &str, facts: &Facts) -> Result<Plan, PluginError> {
        let refused = |why: String| {
            PluginError::new(PluginErrorKind::Refused, format!("the plan of plugin {}: {why}", self.manifest.name))
        };
        let params = self.effective_params(params)?.to_string();
        let facts = serde_json::to_string(facts).map_err(|e| refused(format!("the facts are no JSON: {e}")))?;
        let text = Sandbox::throwaway(&self.loaded, Some(self.manifest.clone()))?.plan(&params, &facts)?;
        manifest::parse_plan(&text, &self.manifest).map_err(refused)
    }

    fn create(&self, host: WorkerHost, params: &str) -> Result<Box<dyn Program>, PluginError> {
        Ok(Box::new(self.instantiate(host, params)?))
    }

    fn restore(
        &self,
        host: WorkerHost,
        writer: &str,
        state: &[u8],
        params: &str,
    ) -> Result<Box<dyn Program>, PluginError> {
        Ok(Box::new(self.instantiate_from(host, writer, state, params)?))
    }
}
