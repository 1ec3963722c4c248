//! Generates the control plane's messages, clients and servers, in Rust alone: no `protoc` is asked for.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

const PROTO: &str = "proto/v1/control.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let set = protox::compile([PROTO], ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    // Reflection serves the very set that the code is generated from.
    fs::write(out.join("control.bin"), set.encode_to_vec())?;
    // `Bytes`, so that a chunk is a slice of what was received rather than a copy of it.
    tonic_prost_build::configure().bytes(".").compile_fds(set)?;
    Ok(())
}
