//! Where a client goes, as people type it.

use rustls::pki_types::ServerName;
use tonic::codegen::http::uri::Authority;

use crate::error::{Result, WireError};

/// A parsed address.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Without the brackets of IPv6.
    pub host: String,
    pub port: u16,
    /// What the address itself says about TLS.
    pub tls: Option<bool>,
    /// As it was typed, without the scheme.
    pub shown: String,
}

impl Address {
    /// `host:port`, `http://host:port` or `https://host:port`.
    pub(crate) fn parse(typed: &str) -> Result<Self> {
        let wrong = |why: &str| {
            WireError::malformed(format!(
                "{typed:?} is not an address: {why}; give host:port, http://host:port or https://host:port"
            ))
        };
        let (tls, rest) = match typed.split_once("://") {
            None => (None, typed),
            Some(("http", rest)) => (Some(false), rest),
            Some(("https", rest)) => (Some(true), rest),
            Some(_) => return Err(wrong("its scheme is neither http nor https")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: Authority = rest.parse().map_err(|_| wrong("it is not a host and a port"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user name"));
        }
        let port = authority.port_u16().ok_or_else(|| wrong("it has no port"))?;
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        Ok(Self { host: host.to_owned(), port, tls, shown: rest.to_owned() })
    }

    /// The name that the peer's certificate must have.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>> {
        ServerName::try_from(self.host.clone())
            .map_err(|_| WireError::malformed(format!("{:?} is neither a DNS name nor an IP address", self.host)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_what_people_type() {
        let parse = |typed: &str| Address::parse(typed).map(|a| (a.host, a.port, a.tls)).ok();
        assert_eq!(parse("localhost:7070"), Some(("localhost".into(), 7070, None)));
        assert_eq!(parse("http://127.0.0.1:1/"), Some(("127.0.0.1".into(), 1, Some(false))));
        assert_eq!(parse("https://[::1]:9"), Some(("::1".into(), 9, Some(true))));
        for bad in ["", "host", "host:", ":1", "host:99999", "ftp://host:1", "https://", "a b:1", "u@h:1", "h:1/path"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
