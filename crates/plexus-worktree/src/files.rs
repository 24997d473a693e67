//! File operations for directories where a child works: they follow no links, never wait for a FIFO, and limit their
//! memory. Also atomic, crash-safe writes of the hub's own files.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Opens a regular file for reading. A link, a FIFO or any other type is an error.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The content of a file, or the target of a link; `None` if the content is larger than `limit`.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    use std::os::unix::ffi::OsStringExt;
    if path.symlink_metadata()?.is_symlink() {
        return Ok(Some(path.read_link()?.into_os_string().into_vec()));
    }
    let file = open_regular(path)?;
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

/// Identifies the type and content of a file at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    kind: Kind,
    size: u64,
    sha256: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    File,
    Program,
    Link,
}

impl Fingerprint {
    /// The fingerprint of the current file.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let metadata = path.symlink_metadata()?;
        let (kind, size) = if metadata.is_symlink() {
            let target = path.read_link()?;
            hash.update(target.as_os_str().as_encoded_bytes());
            (Kind::Link, target.as_os_str().len() as u64)
        } else {
            let mut file = open_regular(path)?;
            let size = feed(&mut hash, &mut file)?;
            let program = metadata.permissions().mode() & 0o100 != 0;
            (if program { Kind::Program } else { Kind::File }, size)
        };
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { kind, size, sha256 })
    }

    /// Whether the file still has this fingerprint. A file of another size is not read.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        let same_size = path.symlink_metadata().is_ok_and(|metadata| metadata.len() == self.size);
        same_size && Self::of(path).is_ok_and(|now| now == *self)
    }
}

fn feed(hash: &mut Sha256, file: &mut File) -> io::Result<u64> {
    let mut piece = [0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(size),
            Ok(read) => {
                hash.update(&piece[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates a directory and its missing parents, accessible only to the user.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a new directory and its missing parents. Retries, because a concurrent removal may delete the empty parent.
pub(crate) fn new_dir(path: &Path, mode: u32) -> io::Result<()> {
    let mut tries = 10;
    loop {
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(mode).create(parent)?;
        }
        match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries > 0 => tries -= 1,
            outcome => return outcome,
        }
    }
}

/// Replaces a file of the hub atomically and crash-safely.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Syncs a directory, so that its entries survive a crash.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Ignores the error that a file does not exist.
pub(crate) fn missing_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    #[test]
    fn a_fifo_or_a_link_is_never_read_as_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let [fifo, link, file] = ["fifo", "link", "file"].map(|name| dir.path().join(name));
        mkfifoat(CWD, &fifo, Mode::RUSR).unwrap();
        std::fs::write(&file, "12345").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&fifo).is_err() && open_regular(&link).is_err() && open_regular(&file).is_ok());
        assert_eq!(read_at_most(&file, 5).unwrap().unwrap(), b"12345");
        assert_eq!(read_at_most(&file, 4).unwrap(), None);
        assert_eq!(read_at_most(&link, 5).unwrap().unwrap(), file.as_os_str().as_encoded_bytes());
        assert!(Fingerprint::of(&fifo).is_err());
    }

    #[test]
    fn a_fingerprint_knows_content_kind_and_absence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let one = Fingerprint::of(&path).unwrap();
        assert!(one.is_of(&path));
        std::fs::write(&path, "two").unwrap();
        assert!(!one.is_of(&path), "of the same size");
        std::fs::write(&path, "one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!one.is_of(&path), "a program");
        std::fs::remove_file(&path).unwrap();
        assert!(!one.is_of(&path));
    }
}
