//! Files as they have to be handled where a child works: never through a link, never waiting for a FIFO, never more
//! memory than was asked for; and the hub's own, written so that a crash leaves the old or the new.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A regular file to read from; a link, a FIFO or anything else is an error.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// What a file, or the target of a link, holds; `None` when that is more than `limit`.
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

/// What tells a file from another one at the same place.
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
    /// Of what is there now.
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

    /// Whether that is still there. One of another size is not read.
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

/// Makes a directory, and those above it that are missing, for its user alone.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a directory that is not there yet, and those above it that are missing; another removal may at the same time
/// take away the one it goes into, as empty.
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

/// Replaces a file of the hub's in one step that survives a crash.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Has the names in a directory survive a crash.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether an error only says that there is nothing.
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
