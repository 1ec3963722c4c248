//! Version 1 of the control plane: what `proto/v1/control.proto` says, as Rust.

#![allow(missing_docs)]
#![allow(clippy::all)]
#![allow(rustdoc::all)]

tonic::include_proto!("slackline.control.v1");

/// The encoded file descriptor set, which reflection serves.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/control.bin"));
