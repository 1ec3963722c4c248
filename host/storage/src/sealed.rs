//! The envelope of every control record: a version and a checksum over its key and content.
//!
//! RocksDB checks its blocks, but a record that was put under another key, or written by another release, would pass.

use crate::error::{Error, ErrorKind, Result};

const MAGIC: [u8; 3] = *b"slk";
const VERSION: u8 = 1;
const HEAD: usize = MAGIC.len() + 1 + blake3::OUT_LEN;

/// `content` in its envelope, bound to `key`.
pub(crate) fn seal(key: &[u8], content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + content.len());
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(sum(key, content).as_bytes());
    out.extend_from_slice(content);
    out
}

/// The content of `sealed`, which was read under `key`. `what` names the record in errors.
pub(crate) fn unseal<'a>(what: &str, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8]> {
    let (Some(head), Some(content)) = (sealed.get(..HEAD), sealed.get(HEAD..)) else {
        return Err(Error::damaged(format!("{what} is damaged: {} bytes are too few for a record", sealed.len())));
    };
    let (tag, checksum) = head.split_at(MAGIC.len() + 1);
    if tag[..MAGIC.len()] != MAGIC {
        return Err(Error::damaged(format!("{what} is damaged: it does not begin as a record")));
    }
    if checksum != sum(key, content).as_bytes() {
        return Err(Error::damaged(format!("{what} is damaged: its checksum differs")));
    }
    if tag[MAGIC.len()] != VERSION {
        let kind = if tag[MAGIC.len()] > VERSION { ErrorKind::NewerVersion } else { ErrorKind::OlderVersion };
        let found = tag[MAGIC.len()];
        return Err(Error::new(kind, format!("{what} has record version {found}, this release reads {VERSION}")));
    }
    Ok(content)
}

fn sum(key: &[u8], content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes()).update(key).update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_found() {
        let good = seal(b"key", b"some content");
        assert_eq!(unseal("it", b"key", &good).unwrap(), b"some content");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal("it", b"key", &bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_under_another_key_or_cut_short_is_refused() {
        let good = seal(b"key", b"content");
        assert_eq!(unseal("it", b"kez", &good).unwrap_err().kind(), ErrorKind::Damaged);
        for n in 0..good.len() {
            assert_eq!(unseal("it", b"key", &good[..n]).unwrap_err().kind(), ErrorKind::Damaged);
        }
    }
}
