//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is written beside its place and takes it in [`AtomicFile::commit`]; dropped before, it leaves nothing.
pub struct AtomicFile {
    out: BufWriter<NamedTempFile>,
    to: PathBuf,
}

impl AtomicFile {
    /// Begins the file that will be at `to`.
    pub fn create(to: &Path) -> io::Result<Self> {
        let dir = match to.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".slackline-");
        #[cfg(unix)]
        {
            // What any new file gets; a temporary file would be for its owner alone.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        Ok(Self { out: BufWriter::with_capacity(1 << 18, builder.tempfile_in(dir)?), to: to.to_owned() })
    }

    /// The file below, with everything written so far in it.
    pub fn file(&mut self) -> io::Result<&mut File> {
        self.out.flush()?;
        Ok(self.out.get_mut().as_file_mut())
    }

    /// Puts the file in its place, also over an older one.
    pub fn commit(self) -> io::Result<()> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.to).map_err(|e| e.error)?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("a.txt");
        std::fs::write(&to, "old").unwrap();
        let mut dropped = AtomicFile::create(&to).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "old");
        let mut kept = AtomicFile::create(&to).unwrap();
        kept.write_all(b"new").unwrap();
        kept.commit().unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(AtomicFile::create(&dir.path().join("no/such/folder.txt")).is_err());
    }
}
