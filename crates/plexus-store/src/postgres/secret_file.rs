//! Reads files that contain a password or a private key. Other users must not be able to read them.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

/// The largest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why a file with a secret cannot be used.
#[derive(Debug, Error)]
pub(super) enum SecretFileError {
    /// Other users can read or change it.
    #[error("{path} is accessible to other users (mode {mode:03o}): run `chmod 600 {path}`")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is a directory, a pipe or a device, or larger than any secret.
    #[error("{0} is not a file of at most 1 MiB")]
    NotAFile(PathBuf),
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl SecretFileError {
    /// Whether the file does not exist.
    pub(super) fn is_missing(&self) -> bool {
        let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(self, Self::Io { source, .. } if kinds.contains(&source.kind()))
    }
}

/// Reads a file that only its owner can access.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let failed = |source| SecretFileError::Io { path: path.to_owned(), source };
    // Opening a pipe must not wait for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(SecretFileError::NotAFile(path.to_owned()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Exposed { path: path.to_owned(), mode });
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_private_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        assert!(read(&path).unwrap_err().is_missing());
        std::fs::write(&path, "secret").unwrap();
        for mode in [0o600, 0o400] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).unwrap(), b"secret");
        }
        for mode in [0o640, 0o604, 0o602, 0o610] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = read(&path).unwrap_err();
            assert!(matches!(error, SecretFileError::Exposed { .. }), "{mode:o}: {error}");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        assert!(matches!(read(dir.path()), Err(SecretFileError::NotAFile(_))));
    }

    #[test]
    fn a_pipe_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert!(matches!(read(&path), Err(SecretFileError::NotAFile(_))));
    }
}
