//! wire

mod address;
mod auth;
mod certs;
mod client;
mod connection;
mod dial;
mod error;
mod incoming;
pub mod limits;
mod plaintext;
mod refusal;
mod serve;
mod tls;
mod upload;
#[allow(missing_docs)]
pub mod v1;

pub use auth::{Authenticate, Caller, same_token};
pub use certs::{Authority, Issued, Usage, write_private};
pub use client::{Authorized, Bearer, Client, Endpoint, Secret};
pub use connection::Peer;
pub use error::{Result, WireError};
pub use limits::ServeLimits;
pub use plaintext::{PlaintextRule, is_loopback};
pub use refusal::{Kind, Refusal, refusal};
pub use serve::{Readiness, Services, serve};
pub use tls::{Identity, client_config, server_config};
pub use tonic;
pub use upload::{Chunks, Upload, chunks, chunks_of, upload};
