//! How much is how much: the bounds that both sides keep to, each with its reason.

use std::time::Duration;

use crate::plaintext::PlaintextRule;

/// Bytes in a piece of an upload or download: large enough that the cost per message vanishes, small enough that many
/// streams share a connection fairly and a piece is soon free again.
pub const CHUNK: usize = 256 * 1024;

/// Bytes that one message may have at most, either way. The largest that is meant to be sent is a [`CHUNK`]; rows,
/// inspections and job files need less than this, and what needs more is a stream.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Connections of one server: each costs a descriptor (a process often has 1,024 to 4,096 more) and some 100 KiB at
/// most while idle.
pub const MAX_CONNECTIONS: usize = 1024;

/// Calls at the same time on one connection. A client needs a few; each may hold a [`MAX_MESSAGE`].
pub const MAX_STREAMS: u32 = 128;

/// Bytes of the headers of one call: a token, a deadline, and what gRPC adds.
pub const MAX_HEADERS: u32 = 16 * 1024;

/// Silence after which a peer is asked whether it is still there: below the minute after which many routers forget a
/// connection.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// How long it may take to answer that.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// From an accepted connection to the first bytes of HTTP/2, TLS included. A handshake is two round trips and a
/// millisecond of computing; who takes longer holds a place that others want.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long calls may go on after a server was asked to stop.
pub const GRACE: Duration = Duration::from_secs(10);

/// What one server allows. The defaults are the constants of this module.
#[derive(Clone, Debug)]
pub struct ServeLimits {
    /// Connections at the same time; one more is closed at once.
    pub connections: usize,
    /// Calls at the same time on one connection.
    pub streams: u32,
    /// How long a connection may take until it speaks HTTP/2.
    pub handshake: Duration,
    /// Silence after which a peer is asked whether it is still there.
    pub keepalive_interval: Duration,
    /// How long it may take to answer that.
    pub keepalive_timeout: Duration,
    /// How long calls may go on after shutdown was asked for.
    pub grace: Duration,
    /// Whether other machines may be served without TLS.
    pub plaintext: PlaintextRule,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            connections: MAX_CONNECTIONS,
            streams: MAX_STREAMS,
            handshake: HANDSHAKE_TIMEOUT,
            keepalive_interval: KEEPALIVE_INTERVAL,
            keepalive_timeout: KEEPALIVE_TIMEOUT,
            grace: GRACE,
            plaintext: PlaintextRule::LoopbackOnly,
        }
    }
}
