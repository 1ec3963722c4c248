//! The control plane on the wire: what a user's client and the coordinator say to each other, and how they come to
//! trust each other before they do.
//!
//! # Why a crate
//!
//! gRPC brings a world with it: protobuf, HTTP/2, an async runtime, TLS. This crate (and the binary that wires it) is the
//! only one that knows tonic, prost and rustls, so that the rest of Slackline speaks of callers, refusals and limits.
//! What must hold for every call is decided here, once: who is asked for a token, how large a message may be, how many
//! connections there may be and for how long, where plaintext is allowed, and what a failure reads like. Someone who
//! writes a service or a command cannot forget any of it.
//!
//! It decides nothing about plugins, datasets or jobs: services are given to [`serve()`], and tokens are known by an
//! [`Authenticate`].
//!
//! # Where to look
//!
//! - The contract is `proto/v1/control.proto`; [`v1`] is that as Rust, generated without `protoc`.
//! - A server is [`serve()`]; its bounds are [`ServeLimits`], with reasons in [`limits`]; its health is [`Readiness`].
//! - A service finds who is asking with [`Caller::of`] and from where with [`Peer::of`], and refuses with [`refusal`].
//! - A client is [`Client::connect`]; what a call's status comes to is [`Client::error`] or [`WireError::of`]; large
//!   bodies go through [`chunks`] and [`upload()`].
//! - Certificates come from an [`Authority`], are shown as an [`Identity`], and become TLS in [`server_config`] and
//!   [`client_config`].
//!
//! # What holds
//!
//! - Every request of the six services is asked for its token before anything of it is read; health and reflection tell
//!   nothing of any tenant and ask for none.
//! - A peer gets neither a task of the server's nor a byte of HTTP/2 before it has ended its handshake, under a timeout,
//!   in a place of a bounded number. Nothing is allocated by its word: messages are bounded before they are read.
//! - A refusal keeps its [`Kind`], message and hints, in any script; whatever a peer sends is cut to a bounded length and
//!   cleaned of control characters before it can reach a terminal.
//! - Without TLS, only this machine is talked to, by [`PlaintextRule`] on both sides.
//! - Keys and tokens are never in `Debug` output, and tokens are compared in constant time ([`same_token`]).
//!
//! # A client
//!
//! ```no_run
//! use slackline_wire::v1::ListPluginsRequest;
//! use slackline_wire::{Client, Endpoint, Result};
//!
//! # async fn list() -> Result<()> {
//! let mut endpoint = Endpoint::new("127.0.0.1:7070");
//! endpoint.token = Some("from a file".into());
//! let client = Client::connect(endpoint).await?;
//! let reply = client.plugins().list(ListPluginsRequest {}).await.map_err(|status| client.error(&status))?;
//! for revision in reply.into_inner().revisions {
//!     println!("{}@{}", revision.plugin, revision.number);
//! }
//! # Ok(())
//! # }
//! ```

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
mod sending;
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
pub use sending::Sending;
pub use serve::{Readiness, Services, serve};
pub use tls::{Identity, client_config, server_config};
pub use tonic;
pub use upload::{Chunks, Upload, chunks, chunks_of, upload};
