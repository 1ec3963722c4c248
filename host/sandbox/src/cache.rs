//! The cache of compiled components. What it holds is native code that runs with the host's rights, so that every entry
//! carries a keyed hash that only the owner of the folder can make, and one without it is compiled again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"slkaot\x00\x01";
const HEADER: usize = MAGIC.len() + blake3::OUT_LEN;
/// Bytes of all entries at most: hundreds of plugins. The one that was used longest ago goes first.
const CACHE_BYTES: u64 = 512 << 20;

/// Compiled components on disk.
pub(crate) struct AotCache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
}

impl AotCache {
    /// Opens the cache in `dir`, and makes folder and key where they are missing.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let path = dir.join(KEY_FILE);
        let key = match read_key(&path)? {
            Some(key) => key,
            None => make_key(dir, &path)?,
        };
        Ok(Self { dir: dir.into(), key })
    }

    fn path(&self, id: &blake3::Hash) -> PathBuf {
        self.dir.join(format!("{id}.aot"))
    }

    fn mac(&self, id: &blake3::Hash, code: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.key).update(id.as_bytes()).update(code).finalize()
    }

    /// The code stored as `id`; `None` when there is none that can be trusted.
    pub fn get(&self, id: &blake3::Hash) -> Option<Vec<u8>> {
        let path = self.path(id);
        let mut bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => {
                tracing::warn!(path = %path.display(), error = %e, "compiled code cannot be read, and is compiled again");
                return None;
            }
        };
        let mac = bytes.get(MAGIC.len()..HEADER).and_then(|mac| <[u8; blake3::OUT_LEN]>::try_from(mac).ok());
        // Hashes compare in constant time.
        let trusted = bytes.starts_with(MAGIC) && mac.is_some_and(|mac| self.mac(id, &bytes[HEADER..]) == mac);
        if !trusted {
            tracing::warn!(path = %path.display(), "compiled code is torn or not ours, and is compiled again");
            return None;
        }
        bytes.drain(..HEADER);
        // For the order in which entries go. A folder that cannot be written only makes it coarser.
        let _ = File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Stores `code` as `id`, whole or not at all.
    pub fn put(&self, id: &blake3::Hash, code: &[u8]) -> io::Result<()> {
        let (temporary, mut file) = temporary(&self.dir)?;
        let written = file
            .write_all(MAGIC)
            .and_then(|()| file.write_all(self.mac(id, code).as_bytes()))
            .and_then(|()| file.write_all(code))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, self.path(id)));
        if written.is_err() {
            // The first error is the one worth reporting.
            let _ = fs::remove_file(&temporary);
        }
        written?;
        self.evict(id, CACHE_BYTES)
    }

    /// Removes what was used longest ago until all entries together have `most` bytes, and never `kept`. Another process
    /// may do the same, or be reading: a file that is gone was removed, and one that is open stays readable.
    fn evict(&self, kept: &blake3::Hash, most: u64) -> io::Result<()> {
        let kept = self.path(kept);
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let path = entry.path();
            if let (Some("aot"), Ok(meta)) = (path.extension().and_then(|e| e.to_str()), entry.metadata()) {
                entries.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), path));
            }
        }
        let mut bytes: u64 = entries.iter().map(|(_, len, _)| len).sum();
        entries.sort();
        for (_, len, path) in entries.into_iter().filter(|(.., path)| *path != kept) {
            if bytes <= most {
                break;
            }
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => bytes -= len,
            }
        }
        Ok(())
    }
}

/// A new file that only its owner reads.
fn temporary(dir: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = [0u8; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let path = dir.join(format!("{:016x}.tmp", u64::from_le_bytes(name)));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

/// The key; `None` when there is none, or none that can be trusted.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let meta = file.metadata()?;
    let mut key = [0; KEY_BYTES];
    let whole = meta.len() == KEY_BYTES as u64 && file.read_exact(&mut key).is_ok();
    if !whole || meta.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the cache's key is torn or open to others: a new one is made");
        fs::remove_file(path)?;
        return Ok(None);
    }
    Ok(Some(key))
}

/// Makes a key, unless another process is quicker: then that one's.
fn make_key(dir: &Path, path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let (temporary, mut file) = temporary(dir)?;
    file.write_all(&key)?;
    file.sync_all()?;
    // A link, not a rename: it fails when the key exists, and never shows half a key.
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Ok(()) => Ok(key),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            read_key(path)?.ok_or_else(|| io::Error::other("the cache's key vanished while it was made"))
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn entries_survive_reopening_and_belong_to_their_id() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (blake3::hash(b"a"), blake3::hash(b"b"));
        AotCache::open(dir.path()).unwrap().put(&a, b"code").unwrap();
        let cache = AotCache::open(dir.path()).unwrap();
        assert_eq!(cache.get(&a).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get(&b), None);
        fs::rename(cache.path(&a), cache.path(&b)).unwrap();
        assert_eq!(cache.get(&b), None, "an entry under another id");
    }

    #[test]
    fn a_changed_or_torn_entry_is_not_given_out() {
        let dir = tempfile::tempdir().unwrap();
        let cache = AotCache::open(dir.path()).unwrap();
        let id = blake3::hash(b"x");
        cache.put(&id, b"some code").unwrap();
        let whole = fs::read(cache.path(&id)).unwrap();
        for len in 0..whole.len() {
            fs::write(cache.path(&id), &whole[..len]).unwrap();
            assert_eq!(cache.get(&id), None, "torn at {len}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(cache.path(&id), &changed).unwrap();
            assert_eq!(cache.get(&id), None, "changed at {at}");
        }
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_what_was_just_stored_never() {
        let dir = tempfile::tempdir().unwrap();
        let cache = AotCache::open(dir.path()).unwrap();
        let ids: Vec<blake3::Hash> = (0u8..4).map(|i| blake3::hash(&[i])).collect();
        for (age, id) in [40, 30, 20, 10].into_iter().zip(&ids) {
            cache.put(id, &[7; 1000]).unwrap();
            let then = SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().write(true).open(cache.path(id)).unwrap().set_modified(then).unwrap();
        }
        let there = || ids.iter().map(|id| cache.path(id).exists()).collect::<Vec<_>>();
        // The oldest is used, and so is the newest of all.
        assert!(cache.get(&ids[0]).is_some());
        let entry = (HEADER + 1000) as u64;
        cache.evict(&ids[3], 4 * entry).unwrap();
        assert_eq!(there(), [true; 4]);
        cache.evict(&ids[3], 2 * entry).unwrap();
        assert_eq!(there(), [true, false, false, true]);
        cache.evict(&ids[3], 0).unwrap();
        assert_eq!(there(), [false, false, false, true]);
        assert!(dir.path().join(KEY_FILE).exists());
    }

    #[test]
    fn a_key_that_others_can_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let key = AotCache::open(dir.path()).unwrap().key;
        let path = dir.path().join(KEY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(AotCache::open(dir.path()).unwrap().key, key);
    }
}
