//! A private certificate authority, so that a cluster has TLS without anybody's help.
//!
//! The names of a cluster's processes are its own business, so the authority is too: who holds its certificate trusts
//! those that it issued, and nobody else's. All keys are ECDSA P-256, which every TLS stack speaks.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::{Result, WireError};

const AUTHORITY_YEARS: i64 = 10;
const LEAF_YEARS: i64 = 2;
// Clocks of two machines differ; a certificate should be good at once on both.
const SKEW: Duration = Duration::hours(1);

/// What a certificate is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// To be connected to.
    Server,
    /// To connect to where mutual TLS is asked for.
    Client,
    /// Both: host processes of a cluster.
    Both,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Issued {
    /// May be shown to anybody.
    pub certificate_pem: String,
    /// Secret: goes to a file by [`write_private`].
    pub key_pem: String,
}

/// A private certificate authority.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority, good for ten years, that may issue certificates of processes but no further authorities.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = params(name, &[], AUTHORITY_YEARS)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = new_key()?;
        let certificate = params.self_signed(&key).map_err(|error| cannot("make an authority", error))?;
        Ok(Self { certificate_pem: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    /// The authority of these two texts, which must belong together.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self> {
        let key = KeyPair::from_pem(key_pem)
            .map_err(|error| WireError::malformed(format!("the authority's key is not a PEM private key: {error}")))?;
        let not_certificate =
            |why: String| WireError::malformed(format!("not the PEM certificate of an authority: {why}"));
        let der = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
            .map_err(|error| not_certificate(error.to_string()))?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| not_certificate(error.to_string()))?;
        if !parsed.is_ca() {
            return Err(not_certificate("it may not issue others".into()));
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(WireError::malformed("the authority's certificate and key do not belong together"));
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|error| not_certificate(error.to_string()))?;
        Ok(Self { certificate_pem: certificate_pem.to_owned(), issuer })
    }

    /// The certificate, which is what others need in order to trust those that this authority issued.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The secret key: who has it can issue.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for the process `name`, good for two years, under which `hosts` (DNS names and IP addresses) can be
    /// connected to.
    pub fn issue(&self, name: &str, hosts: &[String], usage: Usage) -> Result<Issued> {
        if usage != Usage::Client && hosts.is_empty() {
            return Err(WireError::malformed(format!(
                "a server's certificate names the hosts that it is reached under; none were given for {name}"
            )));
        }
        let mut params = params(name, hosts, LEAF_YEARS)?;
        params.use_authority_key_identifier_extension = true;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match usage {
            Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Usage::Both => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        };
        let key = new_key()?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(|error| cannot("issue a certificate", error))?;
        Ok(Issued { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

/// Writes a secret to a new file that only its owner can read. A file that is there already stays as it is.
pub fn write_private(path: &Path, pem: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => WireError::file(path, "is there already; a key is never overwritten, move it away"),
        _ => WireError::file(path, error),
    })?;
    file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| WireError::file(path, error))
}

/// The common name of a certificate: the process that it was issued for.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned())
}

fn params(name: &str, hosts: &[String], years: i64) -> Result<CertificateParams> {
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        return Err(WireError::malformed(format!("a certificate's name has 1 to 64 printable bytes, not {name:?}")));
    }
    for host in hosts {
        ServerName::try_from(host.as_str())
            .map_err(|_| WireError::malformed(format!("{host:?} is neither a DNS name nor an IP address")))?;
    }
    let mut params = CertificateParams::new(hosts).map_err(|error| cannot("name the hosts", error))?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::now_utc();
    params.not_before = now - SKEW;
    params.not_after = now + Duration::days(365 * years);
    Ok(params)
}

fn new_key() -> Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| cannot("make a key", error))
}

fn cannot(what: &str, error: rcgen::Error) -> WireError {
    WireError::malformed(format!("cannot {what}: {error}"))
}
