//! The one trait that a plugin is.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::manifest::{Facts, Manifest, Plan};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// An algorithm. An instance holds nothing that matters: the host drops it and makes it anew at any clock's end, so
/// what must last goes into tables and [`LocalState`](crate::LocalState).
pub trait Plugin: Sized + 'static {
    /// Its parameters. Their JSON schema goes into the manifest, and the host checks a job's `[params]` against it.
    type Params: DeserializeOwned + JsonSchema;

    /// What it is, whatever the job. Pure.
    fn manifest() -> Manifest;

    /// The tables of a job. Pure.
    fn plan(params: &Self::Params, facts: &Facts) -> Result<Plan>;

    /// A fresh instance for a worker; tables and local state can be opened here.
    fn create(params: Self::Params) -> Result<Self>;

    /// Every batch of the partition once, in order, before the first step, when the manifest asks for it.
    fn prepare(&mut self, batch: &Batch) -> Result<()> {
        let _ = batch;
        Ok(())
    }

    /// One bounded quantum of training.
    fn step(&mut self, batch: &Batch) -> Result<()>;

    /// The clock `ended` is over; increments made here still belong to it.
    fn end_clock(&mut self, ended: u32) -> Result<()> {
        let _ = ended;
        Ok(())
    }

    /// Adds a batch to the metrics and changes nothing.
    fn evaluate(&mut self, batch: &Batch) -> Result<()>;

    /// Puts the columns that the manifest promises.
    fn predict(&mut self, batch: &Batch) -> Result<()> {
        let _ = batch;
        Err(Error::Other("this plugin does not predict".into()))
    }

    /// What [`Plugin::restore`] wants back. Small.
    fn save(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// An instance from what [`Plugin::save`] of the version with the digest `writer` gave. An error keeps the old
    /// version running.
    fn restore(writer: &str, state: &[u8], params: Self::Params) -> Result<Self> {
        let _ = (writer, state);
        Self::create(params)
    }
}

/// The manifest of `P` with the schema of its parameters, as the host gets it.
pub fn describe<P: Plugin>() -> Manifest {
    let mut manifest = P::manifest();
    manifest.params = schemars::schema_for!(P::Params).to_value();
    manifest
}

/// The parameters of `P` from a JSON object.
pub fn params<P: Plugin>(json: &str) -> Result<P::Params> {
    serde_json::from_str(json).map_err(|e| Error::Invalid(format!("params: {e}")))
}

/// The tables of a job, from JSON to typed documents.
pub fn plan<P: Plugin>(params_json: &str, facts: &Facts) -> Result<Plan> {
    P::plan(&params::<P>(params_json)?, facts)
}
