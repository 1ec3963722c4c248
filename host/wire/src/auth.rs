//! Who is calling: every request of the six services is asked for its token before anything of it is read.

use std::sync::Arc;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::error::{Result, WireError};
use crate::refusal::Refusal;

const HEADER: &str = "authorization";
const SCHEME: &str = "Bearer";

/// Knows tokens. Called on the connection's task for each request, so it must not block; an implementor compares by
/// [`same_token`].
pub trait Authenticate: Send + Sync + 'static {
    /// Who that is, or a refusal with a hint on how to get in.
    fn authenticate(&self, token: Option<&str>) -> Result<Caller, Refusal>;
}

/// Who sent a request. Services find it in the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose names the request is about.
    pub tenant: String,
    /// Which of the tenant's tokens it was.
    pub name: String,
}

impl Caller {
    /// The caller of a request that came through [`crate::serve()`].
    pub fn of<T>(request: &Request<T>) -> Option<&Self> {
        request.extensions().get()
    }
}

/// Whether two tokens are the same, in a time that tells nothing of where they differ or how long they are.
pub fn same_token(a: &[u8], b: &[u8]) -> bool {
    // `blake3::Hash` compares in constant time, and equal hashes are equal tokens.
    blake3::hash(a) == blake3::hash(b)
}

/// Asks for the token on the server's side.
#[derive(Clone)]
pub(crate) struct Gate(pub Arc<dyn Authenticate>);

impl Interceptor for Gate {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let caller = self.0.authenticate(token_of(&request))?;
        request.extensions_mut().insert(caller);
        Ok(request)
    }
}

/// A token as a client sends it.
pub(crate) fn bearer(token: &str) -> Result<MetadataValue<Ascii>> {
    let usable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = usable.then(|| format!("{SCHEME} {token}").parse().ok()).flatten();
    let mut value: MetadataValue<Ascii> = value.ok_or_else(|| {
        WireError::malformed("a token is one word of printable ascii; look whether it was copied whole, without spaces")
    })?;
    // Keeps it out of HPACK's table and out of debug output.
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn with_token(request: &mut Request<()>, token: &MetadataValue<Ascii>) {
    request.metadata_mut().insert(HEADER, token.clone());
}

fn token_of<T>(request: &Request<T>) -> Option<&str> {
    let (scheme, token) = request.metadata().get(HEADER)?.to_str().ok()?.split_once(' ')?;
    // RFC 7235: the scheme's case does not matter.
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_through_the_header_unchanged() {
        let mut request = Request::new(());
        with_token(&mut request, &bearer("abc.DEF-123").expect("token"));
        assert_eq!(token_of(&request), Some("abc.DEF-123"));
        for bad in ["", "two words", "new\nline", "ümlaut"] {
            assert!(bearer(bad).is_err(), "{bad:?}");
        }
        assert!(same_token(b"abc", b"abc") && !same_token(b"abc", b"abd") && !same_token(b"abc", b"abcd"));
    }
}
