//! The SDK of Slackline: write a distributed machine-learning algorithm as one Rust type.
//!
//! A plugin implements [`Plugin`] and names itself to [`export!`]. Compiled for `wasm32-unknown-unknown` and wrapped as a
//! component, it runs in the workers of a cluster; compiled natively it runs in [`testing::TestHost`], so `cargo test`
//! needs neither a cluster nor WebAssembly. The same source serves both: wrappers go through one internal border
//! (`sys`), whose two bodies are the contract's imports (`wit/v0.1`) and the [`native::Backend`] of the thread.
//!
//! What to read first: [`Plugin`], then [`Table`] (the model), [`Batch`] (the data), [`LocalState`] (what outlives an
//! instance), [`Rng`], [`telemetry`].
//!
//! This crate knows nothing of the host's crates: it sees the contract alone.

#[cfg(any(test, target_arch = "wasm32"))]
mod alloc;
mod batch;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod bindings;
mod buffer;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
mod element;
mod error;
pub mod kernels;
mod manifest;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
pub mod output;
pub mod plugin;
pub mod rng;
pub mod run;
mod sys;
mod table;
pub mod telemetry;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use batch::{Batch, partition_rows};
pub use buffer::{Buffer, LocalState};
pub use element::{DType, Element, Float, TableElement, ValuesMut, ValuesRef, VecMut};
pub use error::{Error, Limit, Result};
pub use manifest::{
    ColumnFacts, ColumnWant, DatasetFacts, Encode, Facts, Goal, Init, Layout, Manifest, MetricSpec, Plan, TableSpec,
    Then, View,
};
pub use plugin::Plugin;
pub use rng::Rng;
pub use table::{SparseRows, Table, TableInfo};

/// The versions that the SDK's traits mean.
pub use schemars;
pub use serde;
pub use serde_json;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use wit_bindgen;
#[cfg(target_arch = "wasm32")]
extern crate self as slackline_guest;

/// Makes a plugin the component's. In a native build it only checks that the type is a plugin, so that many plugins link
/// into one test or benchmark.
#[cfg(not(target_arch = "wasm32"))]
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        const _: () = {
            const fn is_plugin<P: $crate::Plugin>() {}
            is_plugin::<$plugin>();
        };
    };
}

/// Makes a plugin the component's. In a native build it only checks that the type is a plugin, so that many plugins link
/// into one test or benchmark.
#[cfg(target_arch = "wasm32")]
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        const _: () = {
            type SlacklineComponent = $crate::component::Component<$plugin>;
    $crate::bindings::export_component!(SlacklineComponent with_types_in $crate::bindings);
        };
    };
}
