//! Reads the start of one regular file. It follows links: in the sandbox they lead only to files that an agent could
//! read itself. A FIFO, a device or a directory is an error, and no read waits for another process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::HelperError;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Reads at most `limit` bytes of a regular file. The content is the body of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadFile {
    /// An absolute path.
    pub path: PathBuf,
    /// At most [`ReadFile::MAX_BODY`].
    pub limit: u64,
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The bytes from the start of the file.
    pub content: Vec<u8>,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// Whether the file is longer than `content`.
    pub truncated: bool,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum FileError {
    /// The file does not exist.
    #[error("no such file")]
    NotFound,
    /// The path leads to a directory, a device, a socket or a FIFO.
    #[error("not a regular file")]
    NotRegular,
    /// The path is relative.
    #[error("not an absolute path")]
    Relative,
    /// The operating system reported an error.
    #[error("{0}")]
    Io(String),
    /// The helper process failed.
    #[error(transparent)]
    Helper(#[from] HelperError),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::IsADirectory => Self::NotRegular,
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<ReadFile> for Request {
    fn from(verb: ReadFile) -> Self {
        Self::ReadFile(verb)
    }
}

impl Verb for ReadFile {
    /// The size of the file.
    type Answer = Result<u64, FileError>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 64 * 1024 * 1024;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        match read(&self.path, self.limit.min(Self::MAX_BODY)) {
            Ok((content, size)) => (Ok(size), content.into()),
            Err(error) => (Err(error), Output::default()),
        }
    }
}

/// The first `limit` bytes of a regular file, and its size.
pub(crate) fn read(path: &Path, limit: u64) -> Result<(Vec<u8>, u64), FileError> {
    let file = open_regular(path)?;
    let mut content = Vec::new();
    (&file).take(limit).read_to_end(&mut content)?;
    // The size is read after the content: a file that grows meanwhile is larger than the content.
    let size = file.metadata()?.len().max(content.len() as u64);
    Ok((content, size))
}

/// Opens a regular file without blocking. The file type is checked on the open file, not on the path.
pub(crate) fn open_regular(path: &Path) -> Result<File, FileError> {
    if !path.is_absolute() {
        return Err(FileError::Relative);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    // A socket cannot be opened by path, nor can a device without a driver.
    let no_device = rustix::io::Errno::NXIO.raw_os_error();
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == no_device => FileError::NotRegular,
        _ => error.into(),
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(FileError::NotRegular) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    #[test]
    fn the_start_of_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        for (limit, content) in [(0, ""), (4, "1234"), (5, "12345"), (6, "12345")] {
            assert_eq!(read(&path, limit).unwrap(), (content.as_bytes().to_vec(), 5));
        }
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert_eq!(read(&dir.path().join("link"), 5).unwrap().1, 5);
    }

    #[test]
    fn only_regular_files_are_read_and_other_files_do_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&fifo, &socket, dir.path(), Path::new("/dev/zero")] {
            assert_eq!(read(path, 5), Err(FileError::NotRegular), "{}", path.display());
        }
        assert_eq!(read(&dir.path().join("none"), 5), Err(FileError::NotFound));
        assert_eq!(read(Path::new("Cargo.toml"), 5), Err(FileError::Relative));
    }
}
