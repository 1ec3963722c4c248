//! Where TLS may be left out: between processes of one machine, and elsewhere only when a person said so.

use std::net::SocketAddr;

use crate::error::{Result, WireError};

/// Who may be talked to in the clear. Servers and clients ask the same rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaintextRule {
    /// Loopback addresses only.
    #[default]
    LoopbackOnly,
    /// Everyone: a person accepted that tokens and data can be read on the way.
    Anywhere,
}

impl PlaintextRule {
    /// What `--allow-plaintext` comes to.
    pub fn allow(plaintext: bool) -> Self {
        if plaintext { Self::Anywhere } else { Self::LoopbackOnly }
    }

    /// Refuses an address that this rule does not allow.
    pub fn check(self, address: &SocketAddr) -> Result<()> {
        match self {
            Self::LoopbackOnly if !is_loopback(address) => Err(WireError::Plaintext { address: address.to_string() }),
            _ => Ok(()),
        }
    }
}

/// Whether what is sent there stays on this machine. An unspecified address does not: it listens to every network.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_this_machine() {
        let check = |text: &str| is_loopback(&text.parse().expect("address"));
        for inside in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(inside), "{inside}");
        }
        for outside in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1", "128.0.0.1:1"] {
            assert!(!check(outside), "{outside}");
        }
    }
}
