//! A live instance: one store, called from one thread, dropped after the first failure.

use crate::clock::{Phase, StepClock};
use crate::component::Loaded;
use crate::host::{BatchView, State, Stats, take_outputs, throwaway_worker};
use crate::limits::Limits;
use crate::trap;
use crate::v0_1::DataParallel;
use crate::v0_1::exports::slackline::plugin::update::GuestProgram;
use crate::v0_1::slackline::plugin::types::Error as WitError;
use slackline_core::ports::{Program, WorkerHost};
use slackline_core::{Batch, Buffer, Clock, HostError, Limit, Manifest, PluginError, PluginErrorKind};
use std::sync::Arc;
use wasmtime::component::{Resource, ResourceAny};
use wasmtime::{Store, UpdateDeadline};

/// A sandbox with a component in it, before or after it has made its program.
pub(crate) struct Sandbox {
    store: Store<State>,
    bindings: DataParallel,
}

impl Sandbox {
    /// Instantiates `loaded` for `worker`.
    pub fn new(
        loaded: &Loaded,
        manifest: Option<Arc<Manifest>>,
        worker: WorkerHost,
        limits: Limits,
    ) -> Result<Self, PluginError> {
        let name: Arc<str> = manifest.as_ref().map_or_else(|| loaded.origin.clone(), |m| m.name.as_str().into());
        let run = &worker.run;
        let clock = StepClock::new(&name, run.worker, limits.step_deadline, run.cancelled.clone());
        let engine = &loaded.engine;
        engine.watch(&clock);
        let (fuel, handles, grace) = (limits.per_call(), limits.handles, limits.cancel_grace);
        let state = State::new(name, manifest, worker, limits, clock);
        let mut store = Store::new(engine.wasmtime(), state);
        store.limiter(|state| &mut state.ledger);
        // What a guest passes it holds already, so that this bounds what the host copies to what one call may move; the
        // contract has no lists of lists, which could blow up on the way.
        store.set_hostcall_fuel(usize::try_from(fuel).unwrap_or(usize::MAX));
        // The resource table refuses first, with an answer for the guest. Each handle may be known on both sides.
        store.set_max_component_handles(2 * handles + 64);
        if engine.has_epochs() {
            store.set_epoch_deadline(1);
            store.epoch_deadline_callback(move |mut store| {
                let state = store.data_mut();
                if state.clock.overrun().is_some() {
                    state.interrupted = Some(PluginErrorKind::Deadline);
                } else if state.clock.cancelled_for(grace) {
                    state.interrupted = Some(PluginErrorKind::Cancelled);
                } else {
                    return Ok(UpdateDeadline::Continue(1));
                }
                Ok(UpdateDeadline::Interrupt)
            });
        }
        let phase = store.data().phase;
        store.data().clock.start(phase);
        let bindings = loaded.pre.instantiate(&mut store);
        store.data().clock.stop();
        match bindings {
            Ok(bindings) => Ok(Self { store, bindings }),
            Err(e) => Err(trap::explain(&e, store.data_mut())),
        }
    }

    /// One that is granted nothing, for `describe` and `plan`.
    pub fn throwaway(loaded: &Loaded, manifest: Option<Arc<Manifest>>) -> Result<Self, PluginError> {
        Self::new(loaded, manifest, throwaway_worker(), loaded.engine.limits().throwaway())
    }

    /// Calls an export, and turns a trap into an error.
    fn call<R>(
        &mut self,
        phase: Phase,
        export: impl FnOnce(&DataParallel, &mut Store<State>) -> wasmtime::Result<R>,
    ) -> Result<R, PluginError> {
        let Self { store, bindings } = self;
        let state = store.data_mut();
        state.phase = phase;
        state.interrupted = None;
        state.ledger.take_refused();
        state.clock.start(phase);
        let result = export(bindings, store);
        let state = store.data_mut();
        let result = result.map_err(|e| trap::explain(&e, state));
        state.clock.stop();
        let telemetry = state.worker.telemetry.clone();
        state.log.end_call(&mut *telemetry.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        result
    }

    pub fn describe(&mut self) -> Result<String, PluginError> {
        self.call(Phase::Describe, |b, store| b.slackline_plugin_about().call_describe(store))
    }

    pub fn plan(&mut self, params: &str, facts: &str) -> Result<String, PluginError> {
        let (params, facts) = (params.to_owned(), facts.to_owned());
        let answer = self.call(Phase::Plan, |b, store| b.slackline_plugin_about().call_plan(store, &params, &facts))?;
        answer.map_err(|e| self.answered(Phase::Plan, e))
    }

    pub fn create(mut self, params: &str) -> Result<Instance, PluginError> {
        let params = params.to_owned();
        let made = self
            .call(Phase::Create, |b, store| b.slackline_plugin_update().program().call_create(store, &params))?
            .map_err(|e| self.answered(Phase::Create, e))?;
        Ok(Instance::new(self, made))
    }

    pub fn restore(mut self, writer: &str, state: &[u8], params: &str) -> Result<Instance, PluginError> {
        let params = params.to_owned();
        let made = self
            .call(Phase::Restore, |b, store| b.slackline_plugin_update().call_restore(store, writer, state, &params))?;
        match made {
            Ok(program) => Ok(Instance::new(self, program)),
            Err(e) => {
                let e = self.answered(Phase::Restore, e);
                let message = format!("{}; the state was written by {writer}, and stays as it is", e.message);
                Err(PluginError::new(e.kind, message))
            }
        }
    }

    /// The error of a call that returned one.
    fn answered(&mut self, phase: Phase, error: WitError) -> PluginError {
        let error = HostError::from(error);
        let kind = match error {
            HostError::Limit(_) => PluginErrorKind::Limit,
            HostError::Cancelled => PluginErrorKind::Cancelled,
            _ => PluginErrorKind::Failed,
        };
        // The contract carries which limit it was and nothing more.
        let advice = match error {
            HostError::Limit(Limit::Memory) => "; raise it with `[limits] memory`, or have the plugin keep less",
            HostError::Limit(Limit::Handles) => "; the plugin must drop buffers and tables that it is done with",
            _ => "",
        };
        let text: String = error.to_string().chars().take(4096).collect();
        let plugin = &self.store.data().plugin;
        PluginError::new(kind, format!("plugin {plugin} answered {phase} with an error: {text}{advice}"))
    }
}

/// A plugin's program in its sandbox.
pub struct Instance {
    /// `None` after a failure: a store is not used again.
    sandbox: Option<Sandbox>,
    program: ResourceAny,
    name: Arc<str>,
    /// What the store's counters said when it was dropped.
    last: Stats,
}

impl Instance {
    fn new(sandbox: Sandbox, program: ResourceAny) -> Self {
        let name = sandbox.store.data().plugin.clone();
        Self { sandbox: Some(sandbox), program, name, last: Stats::default() }
    }

    /// Time and traffic of its host calls so far.
    pub fn stats(&self) -> Stats {
        self.sandbox.as_ref().map_or(self.last, |s| s.store.data().stats)
    }

    fn call<R>(
        &mut self,
        phase: Phase,
        export: impl FnOnce(GuestProgram<'_>, &mut Store<State>, ResourceAny) -> wasmtime::Result<Result<R, WitError>>,
    ) -> Result<R, PluginError> {
        let program = self.program;
        let Some(sandbox) = &mut self.sandbox else {
            let message = format!("plugin {} failed before, and its instance is gone: make a new one", self.name);
            return Err(PluginError::new(PluginErrorKind::Failed, message));
        };
        let called = sandbox
            .call(phase, |b, store| export(b.slackline_plugin_update().program(), store, program))
            .and_then(|answer| answer.map_err(|e| sandbox.answered(phase, e)));
        if called.is_err() {
            self.fail();
        }
        called
    }

    /// Drops the store, and refuses what is asked from here on.
    fn fail(&mut self) {
        self.last = self.stats();
        self.sandbox = None;
    }

    /// Lends `batch` to an export.
    fn with_batch(
        &mut self,
        phase: Phase,
        batch: &Batch,
        export: impl FnOnce(
            GuestProgram<'_>,
            &mut Store<State>,
            ResourceAny,
            Resource<BatchView>,
        ) -> wasmtime::Result<Result<(), WitError>>,
    ) -> Result<(), PluginError> {
        let view = BatchView(batch.clone());
        self.call(phase, |guest, store, program| {
            let state = store.data_mut();
            state.batch_rows = view.0.rows();
            let held = state.resources.push(view)?;
            let lent = Resource::new_borrow(held.rep());
            let answer = export(guest, store, program, lent)?;
            store.data_mut().resources.delete(held)?;
            Ok(answer)
        })
    }
}

impl Program for Instance {
    fn prepare(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.with_batch(Phase::Prepare, batch, |g, store, p, b| g.call_prepare(store, p, b))
    }

    fn step(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.with_batch(Phase::Step, batch, |g, store, p, b| g.call_step(store, p, b))
    }

    fn end_clock(&mut self, ended: Clock) -> Result<(), PluginError> {
        self.call(Phase::EndClock, |g, store, p| g.call_end_clock(store, p, ended))
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<(), PluginError> {
        self.with_batch(Phase::Evaluate, batch, |g, store, p, b| g.call_evaluate(store, p, b))
    }

    fn predict(&mut self, batch: &Batch) -> Result<Vec<(String, Buffer)>, PluginError> {
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.store.data_mut().outputs.clear();
        }
        self.with_batch(Phase::Predict, batch, |g, store, p, b| g.call_predict(store, p, b))?;
        Ok(self.sandbox.as_mut().map(|s| take_outputs(s.store.data_mut())).unwrap_or_default())
    }

    fn save(&mut self) -> Result<Vec<u8>, PluginError> {
        let saved = self.call(Phase::Save, |g, store, p| g.call_save(store, p))?;
        let bound = self.sandbox.as_ref().map_or(0, |s| s.store.data().limits.saved_bytes);
        if saved.len() > bound {
            self.fail();
            let message = format!(
                "plugin {} saved {} bytes, where {bound} are allowed: what matters belongs into tables and local state",
                self.name,
                saved.len()
            );
            return Err(PluginError::new(PluginErrorKind::Limit, message));
        }
        Ok(saved)
    }

    fn memory_bytes(&self) -> u64 {
        self.sandbox.as_ref().map_or(0, |s| s.store.data().ledger.instance_bytes())
    }
}
