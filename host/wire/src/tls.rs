//! TLS on both sides: what a process shows of itself, whom it trusts, and in plain words why that did not work out.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, ConfigSide, Error, InvalidMessage, RootCertStore,
    ServerConfig, WantsVerifier, WantsVersions,
};

use crate::error::{Result, WireError};

// The only protocol that is spoken inside.
const ALPN: &[u8] = b"h2";
// A PEM file holds a few certificates of 1 to 2 KiB each.
const MOST_PEM_BYTES: u64 = 1024 * 1024;

/// What a process shows of itself: its certificate, those between it and the authority, and its key.
pub struct Identity {
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a PEM certificate and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let certificates = certificates(&read_pem(certificate)?).map_err(|why| WireError::file(certificate, why))?;
        let secret = key_of(&read_pem(key)?).map_err(|why| WireError::file(key, why))?;
        let identity = Self { certificates, key: secret };
        identity
            .check()
            .map_err(|why| WireError::file(key, format!("{why} (certificate: {})", certificate.display())))?;
        Ok(identity)
    }

    /// The identity of these two texts.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self> {
        let certificates = certificates(certificate_pem.as_bytes()).map_err(WireError::malformed)?;
        let key = key_of(key_pem.as_bytes()).map_err(WireError::malformed)?;
        let identity = Self { certificates, key };
        identity.check().map_err(WireError::malformed)?;
        Ok(identity)
    }

    fn check(&self) -> Result<(), String> {
        let certified =
            rustls::sign::CertifiedKey::from_der(self.certificates.clone(), self.key.clone_key(), &provider());
        match certified {
            Ok(_) => Ok(()),
            Err(Error::InconsistentKeys(_)) => Err("the key does not belong to the certificate".into()),
            Err(error) => Err(format!("the key cannot be used: {error}")),
        }
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { certificates: self.certificates.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    // Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.certificates.len()).finish_non_exhaustive()
    }
}

/// What a server shows, and, where `client_roots` (PEM) are given, whose clients alone it serves: mutual TLS.
pub fn server_config(identity: Identity, client_roots: Option<&str>) -> Result<Arc<ServerConfig>> {
    let builder = versions(ServerConfig::builder_with_provider(provider()))?;
    let builder = match client_roots {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(pem)?, provider())
                .build()
                .map_err(|error| WireError::malformed(format!("the clients' authority cannot be used: {error}")))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(identity.certificates, identity.key)
        .map_err(|error| WireError::malformed(format!("the server's certificate cannot be used: {error}")))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Whom a client trusts (PEM), and what it shows where the server asks for a certificate.
pub fn client_config(trusted: &str, identity: Option<Identity>) -> Result<Arc<ClientConfig>> {
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(trusted)?, provider())
        .build()
        .map_err(|error| WireError::malformed(format!("the authority cannot be used: {error}")))?;
    let builder = versions(ClientConfig::builder_with_provider(provider()))?.with_webpki_verifier(verifier);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.certificates, identity.key)
            .map_err(|error| WireError::malformed(format!("the client's certificate cannot be used: {error}")))?,
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// In words what came between us and `address`, where that was TLS. Everything else stays the system's error.
pub(crate) fn explain(error: &io::Error, address: &str) -> Option<WireError> {
    let tls = error.get_ref()?.downcast_ref::<Error>()?;
    Some(WireError::Tls { address: address.into(), why: why(tls) })
}

/// As [`explain`], as an error that keeps its words when only its text is kept.
pub(crate) fn explained(error: io::Error, address: &str) -> io::Error {
    match explain(&error, address) {
        Some(tls) => io::Error::new(error.kind(), tls),
        None => error,
    }
}

fn why(error: &Error) -> String {
    use AlertDescription as Alert;
    use CertificateError as Bad;
    match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "the peer's certificate is not from the authority that is trusted here; check which authority's certificate \
             was given, and that this is the right address"
                .into()
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the peer's certificate has expired; issue a new one there, or set this machine's clock".into()
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the peer's certificate is not valid yet; one of the two clocks is wrong".into()
        }
        Error::InvalidCertificate(Bad::NotValidForNameContext { expected, presented }) => format!(
            "the peer's certificate is for another name ({}), not for {}; connect under a name that it has, or issue one \
             with this name",
            presented.join(", "),
            expected.to_str()
        ),
        Error::InvalidCertificate(Bad::NotValidForName) => "the peer's certificate is for another name".into(),
        Error::InvalidCertificate(Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. }) => {
            "the peer's certificate is not good for this side of a connection".into()
        }
        Error::NoCertificatesPresented => "the peer showed no certificate, and mutual TLS asks for one".into(),
        Error::AlertReceived(Alert::CertificateRequired) => {
            "the peer serves only clients that show a certificate of its authority; give a certificate and its key".into()
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError) => {
            "the peer does not trust the authority of the certificate that was shown to it".into()
        }
        Error::AlertReceived(Alert::CertificateExpired) => {
            "the peer says that the certificate that was shown to it has expired".into()
        }
        Error::AlertReceived(
            Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate | Alert::AccessDenied,
        ) => "the peer does not accept the certificate that was shown to it".into(),
        Error::NoApplicationProtocol | Error::AlertReceived(Alert::NoApplicationProtocol) => {
            "the peer does not speak HTTP/2".into()
        }
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the peer does not speak TLS".into()
        }
        other => other.to_string(),
    }
}

fn provider() -> Arc<CryptoProvider> {
    // Given by hand everywhere: a process-wide default would depend on what else is linked.
    Arc::new(ring::default_provider())
}

fn versions<S: ConfigSide>(builder: ConfigBuilder<S, WantsVersions>) -> Result<ConfigBuilder<S, WantsVerifier>> {
    builder
        .with_safe_default_protocol_versions()
        .map_err(|error| WireError::malformed(format!("no version of tls can be used: {error}")))
}

fn roots(pem: &str) -> Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in
        certificates(pem.as_bytes()).map_err(|why| WireError::malformed(format!("the authority: {why}")))?
    {
        roots
            .add(certificate)
            .map_err(|error| WireError::malformed(format!("the authority's certificate cannot be used: {error}")))?;
    }
    Ok(Arc::new(roots))
}

/// Reads a text file that should hold PEM, of which there is never much.
pub(crate) fn read_pem(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: io::Error| WireError::file(path, error);
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MOST_PEM_BYTES {
        return Err(WireError::file(path, format!("has {size} bytes, which is no PEM file")));
    }
    std::fs::read(path).map_err(failed)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("holds no PEM certificate (BEGIN CERTIFICATE)".into()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("is not a PEM certificate: {error}")),
    }
}

fn key_of(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| format!("holds no usable PEM private key (BEGIN PRIVATE KEY): {error}"))
}
