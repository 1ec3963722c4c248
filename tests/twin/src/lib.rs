//! The native twin of a plugin: the same source, compiled natively, over the real engine's ports.
//!
//! Benches compare a component with its twin, and engine tests run without a guest toolchain. It is never offered to
//! users: a twin is not sandboxed.

mod backend;
mod convert;
mod kernels;

use backend::{BatchHandle, Twin};
use convert::{manifest, to_json};
use slackline_core::ports::{self, WorkerHost};
use slackline_core::{Batch, Buffer, Clock, Facts, Manifest, Plan, PluginError, PluginErrorKind};
use slackline_guest::native::{self, Scope};
use slackline_guest::{Plugin, plugin};
use std::marker::PhantomData;
use std::sync::Arc;

/// A plugin type as the engine sees a loaded plugin.
pub struct NativePlugin<P> {
    manifest: Manifest,
    of: PhantomData<fn() -> P>,
}

impl<P: Plugin + Send + 'static> NativePlugin<P> {
    /// Describes `P`.
    pub fn load() -> Result<Self, PluginError> {
        Ok(Self { manifest: manifest(&plugin::describe::<P>())?, of: PhantomData })
    }
}

impl<P: Plugin + Send + 'static> ports::Plugin for NativePlugin<P> {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, params: &str, facts: &Facts) -> Result<Plan, PluginError> {
        let facts = to_json(facts).and_then(|v| serde_json::from_value(v).map_err(refused))?;
        let plan = plugin::plan::<P>(params, &facts).map_err(refused)?;
        to_json(&plan).and_then(|v| serde_json::from_value(v).map_err(refused))
    }

    fn create(&self, host: WorkerHost, params: &str) -> Result<Box<dyn ports::Program>, PluginError> {
        let params = plugin::params::<P>(params).map_err(refused)?;
        NativeProgram::boxed(host, || P::create(params))
    }

    fn restore(
        &self,
        host: WorkerHost,
        writer: &str,
        state: &[u8],
        params: &str,
    ) -> Result<Box<dyn ports::Program>, PluginError> {
        let params = plugin::params::<P>(params).map_err(refused)?;
        NativeProgram::boxed(host, || P::restore(writer, state, params))
    }
}

fn refused(e: impl std::fmt::Display) -> PluginError {
    PluginError::new(PluginErrorKind::Refused, e.to_string())
}

struct NativeProgram<P> {
    plugin: P,
    twin: Arc<Twin>,
}

impl<P: Plugin + Send + 'static> NativeProgram<P> {
    fn boxed(
        host: WorkerHost,
        make: impl FnOnce() -> slackline_guest::Result<P>,
    ) -> Result<Box<dyn ports::Program>, PluginError> {
        let twin = Arc::new(Twin::new(host));
        let plugin = {
            let _scope: Scope = native::install(twin.clone());
            make().map_err(failed)?
        };
        Ok(Box::new(Self { plugin, twin }))
    }

    fn call<R>(
        &mut self,
        batch: &Batch,
        f: impl FnOnce(&mut P, &slackline_guest::Batch) -> slackline_guest::Result<R>,
    ) -> Result<R, PluginError> {
        let _scope = native::install(self.twin.clone());
        let batch = slackline_guest::Batch::from_handle(Arc::new(BatchHandle(batch.clone())));
        f(&mut self.plugin, &batch).map_err(failed)
    }
}

fn failed(e: slackline_guest::Error) -> PluginError {
    let kind = match e {
        slackline_guest::Error::Cancelled => PluginErrorKind::Cancelled,
        _ => PluginErrorKind::Failed,
    };
    PluginError::new(kind, e.to_string())
}

impl<P: Plugin + Send + 'static> ports::Program for NativeProgram<P> {
    fn prepare(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.call(batch, |p, b| p.prepare(b))
    }

    fn step(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.call(batch, |p, b| p.step(b))
    }

    fn end_clock(&mut self, ended: Clock) -> Result<(), PluginError> {
        let _scope = native::install(self.twin.clone());
        self.plugin.end_clock(ended).map_err(failed)
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.call(batch, |p, b| p.evaluate(b))
    }

    fn predict(&mut self, batch: &Batch) -> Result<Vec<(String, Buffer)>, PluginError> {
        self.call(batch, |p, b| p.predict(b))?;
        Ok(self.twin.take_outputs())
    }

    fn save(&mut self) -> Result<Vec<u8>, PluginError> {
        let _scope = native::install(self.twin.clone());
        self.plugin.save().map_err(failed)
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}
