//! The border: one set of internal types and functions with two bodies. In a component they are the contract's imports,
//! elsewhere the backend installed on the thread. Nothing outside this folder asks which.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;

#[cfg(target_arch = "wasm32")]
mod wasm;
#[cfg(target_arch = "wasm32")]
pub use wasm::*;
