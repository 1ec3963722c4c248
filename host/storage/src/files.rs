//! Uploaded files by their BLAKE3, streamed to disk and verified before they count.
//!
//! Files rather than records: datasets are large, and processes that read them want a path.

use crate::error::{Error, ErrorKind, Result};
use crate::folder::sync_dir;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PARTIAL: &str = "partial-";

/// A folder of files whose names are their digests.
pub struct BlobFiles {
    dir: PathBuf,
    next: AtomicU64,
}

/// A file that is on its way. Dropped before [`Upload::finish`], it is gone.
pub struct Upload<'a> {
    files: &'a BlobFiles,
    path: PathBuf,
    file: File,
    hasher: blake3::Hasher,
    expected: u64,
    written: u64,
}

impl BlobFiles {
    /// Opens the folder `dir`, making it when it is missing, and removes what unfinished uploads left.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|e| Error::file("make", dir, &e))?;
        for entry in fs::read_dir(dir).map_err(|e| Error::file("read", dir, &e))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                fs::remove_file(entry.path()).map_err(|e| Error::file("remove", &entry.path(), &e))?;
            }
        }
        Ok(Self { dir: dir.to_owned(), next: AtomicU64::new(0) })
    }

    /// Begins a file of exactly `bytes` bytes.
    pub fn upload(&self, bytes: u64) -> Result<Upload<'_>> {
        let path = self.dir.join(format!("{PARTIAL}{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&path).map_err(|e| Error::file("write", &path, &e))?;
        Ok(Upload { files: self, path, file, hasher: blake3::Hasher::new(), expected: bytes, written: 0 })
    }

    /// Where the file with this digest lies, if it is there.
    pub fn path(&self, digest: &str) -> Result<Option<PathBuf>> {
        let path = self.place(digest)?;
        Ok(path.is_file().then_some(path))
    }

    /// Its bytes, verified; at most `limit` of them.
    pub fn read(&self, digest: &str, limit: u64) -> Result<Vec<u8>> {
        let path = self.place(digest)?;
        let file = File::open(&path).map_err(|e| Error::file("read", &path, &e))?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| Error::file("read", &path, &e))?;
        if bytes.len() as u64 > limit {
            return Err(Error::invalid(format!("{} has more than {limit} bytes", path.display())));
        }
        if format!("blake3:{}", blake3::hash(&bytes).to_hex()) != digest {
            return Err(Error::damaged(format!("{} is damaged: its bytes have another digest", path.display())));
        }
        Ok(bytes)
    }

    /// Removes the files whose digest is not `needed`.
    pub fn retain(&self, needed: impl Fn(&str) -> bool) -> Result<()> {
        for entry in fs::read_dir(&self.dir).map_err(|e| Error::file("read", &self.dir, &e))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if blake3::Hash::from_hex(&name).is_ok() && !needed(&format!("blake3:{name}")) {
                fs::remove_file(entry.path()).map_err(|e| Error::file("remove", &entry.path(), &e))?;
            }
        }
        Ok(())
    }

    /// The name comes from outside, so it becomes a path only by way of a digest.
    fn place(&self, digest: &str) -> Result<PathBuf> {
        let hash = digest.strip_prefix("blake3:").and_then(|hex| blake3::Hash::from_hex(hex).ok());
        let hash = hash.ok_or_else(|| Error::invalid(format!("{digest:?} is not a BLAKE3 digest")))?;
        Ok(self.dir.join(hash.to_hex().as_str()))
    }
}

impl Upload<'_> {
    /// Takes the next bytes.
    pub fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.written = self.written.saturating_add(chunk.len() as u64);
        if self.written > self.expected {
            return Err(Error::invalid(format!("more came than the {} bytes that were announced", self.expected)));
        }
        self.hasher.update(chunk);
        self.file.write_all(chunk).map_err(|e| Error::file("write", &self.path, &e))
    }

    /// Makes the file durable under its digest, which must be `digest`.
    pub fn finish(self, digest: &str) -> Result<PathBuf> {
        if self.written != self.expected {
            let (got, expected) = (self.written, self.expected);
            return Err(Error::invalid(format!("only {got} of the {expected} bytes that were announced came")));
        }
        let found = format!("blake3:{}", self.hasher.finalize().to_hex());
        if found != digest {
            return Err(Error::new(
                ErrorKind::Damaged,
                format!("what came has digest {found}, not {digest}: it was damaged on its way, send it again"),
            ));
        }
        let to = self.files.place(digest)?;
        self.file.sync_all().map_err(|e| Error::file("sync", &self.path, &e))?;
        fs::rename(&self.path, &to).map_err(|e| Error::file("write", &to, &e))?;
        sync_dir(&self.files.dir)?;
        Ok(to)
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        // After `finish` there is nothing under this name.
        let _ = fs::remove_file(&self.path);
    }
}
