//! Bytes by their BLAKE3 (plugins' components), and small documents by name (dictionaries, manifest, plan).

use crate::control::Change;
use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

impl State {
    /// Keeps `bytes`, once however often they are put, and gives their BLAKE3 in hex.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<String> {
        let digest = blake3::hash(bytes);
        let key = blob_key(&digest);
        // A damaged copy is put again rather than kept.
        if !matches!(self.control().get("the blob", &key), Ok(Some(_))) {
            self.control().write(&[Change::put(key, bytes.to_vec())])?;
        }
        Ok(digest.to_hex().to_string())
    }

    /// The bytes with this digest (hex, with or without `blake3:` before it), verified.
    pub fn blob(&self, digest: &str) -> Result<Vec<u8>> {
        let hex = digest.strip_prefix("blake3:").unwrap_or(digest);
        let hash = blake3::Hash::from_hex(hex)
            .map_err(|e| Error::invalid(format!("{digest:?} is not a BLAKE3 digest in hex: {e}")))?;
        let what = format!("blob {hex} of {}", self.dir().display());
        let bytes = self
            .control()
            .get(&what, &blob_key(&hash))?
            .ok_or_else(|| Error::new(ErrorKind::Missing, format!("there is no {what}")))?;
        if blake3::hash(&bytes) != hash {
            return Err(Error::damaged(format!("{what} is damaged: its bytes have another digest")));
        }
        Ok(bytes)
    }

    /// Keeps `bytes` under `name`, instead of what was there.
    pub fn put_document(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.control().write(&[Change::put(document_key(name)?, bytes.to_vec())])
    }

    /// What [`State::put_document`] kept under `name`.
    pub fn document(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.control().get(&format!("document {name:?} of {}", self.dir().display()), &document_key(name)?)
    }
}

fn blob_key(digest: &blake3::Hash) -> Vec<u8> {
    [b"blob/", digest.as_bytes().as_slice()].concat()
}

fn document_key(name: &str) -> Result<Vec<u8>> {
    if name.is_empty() || name.len() > 255 {
        return Err(Error::invalid(format!("a document's name has 1 to 255 bytes, not {}", name.len())));
    }
    Ok([b"document/", name.as_bytes()].concat())
}
