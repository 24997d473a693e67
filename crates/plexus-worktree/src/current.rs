//! Reads one file of a working tree that other processes may change concurrently. It opens each parent directory without
//! following links, so that no link leads outside the tree.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use git2::{ObjectType, Oid};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::Result;
use crate::error::at;

/// The mode of a submodule in a git tree.
pub(crate) const GITLINK: u32 = 0o160_000;
/// The mode of a symbolic link in a git tree.
pub(crate) const LINK: u32 = 0o120_000;

/// The version of a file in a git tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) id: Oid,
}

/// What a working tree has at a path.
#[derive(Debug)]
pub(crate) enum Current {
    Missing,
    /// A regular file, or a symbolic link with its target as content.
    File {
        mode: u32,
        content: Vec<u8>,
    },
    /// A file over the limit, with its size.
    TooLarge(u64),
    /// A directory, a FIFO or something else that git does not store.
    Other,
}

impl Current {
    /// Reads at most `limit` bytes at a path relative to `root`.
    pub(crate) fn read(root: &Path, path: &Path, limit: u64) -> Result<Self> {
        read(root, path, limit).map_err(at(&root.join(path)))
    }

    /// Its mode in git, if git would store it and it was read.
    pub(crate) fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } => Some(*mode),
            Self::Missing | Self::TooLarge(_) | Self::Other => None,
        }
    }

    /// The content as git would store it without any conversion.
    pub(crate) fn entry(&self) -> Result<Option<Entry>> {
        match self {
            Self::File { mode, content } => {
                Ok(Some(Entry { mode: *mode, id: Oid::hash_object(ObjectType::Blob, content)? }))
            }
            Self::Missing | Self::TooLarge(_) | Self::Other => Ok(None),
        }
    }

    /// Whether this is exactly the version `entry`; `None` means that the file is missing.
    pub(crate) fn is(&self, entry: Option<Entry>) -> Result<bool> {
        let (Self::File { mode, content }, Some(entry)) = (self, entry) else {
            return Ok(matches!((self, entry), (Self::Missing, None)));
        };
        if *mode != entry.mode {
            return Ok(false);
        }
        Ok(Oid::hash_object(ObjectType::Blob, content)? == entry.id)
    }
}

/// Opens the directory that contains `path`, below `root`, and returns it with the name of the file in it. `None` if one
/// of the parents is missing or is not a directory.
pub(crate) fn parent_dir<'a>(root: &Path, path: &'a Path) -> io::Result<Option<(OwnedFd, &'a OsStr)>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(rustix::fs::CWD, root, flags, Mode::empty())?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        dir = match openat(&dir, part, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            dir => dir?,
        };
    }
    Ok(Some((dir, name)))
}

fn read(root: &Path, path: &Path, limit: u64) -> io::Result<Current> {
    match parent_dir(root, path)? {
        Some((dir, name)) => read_in(&dir, name, limit),
        None => Ok(Current::Missing),
    }
}

/// Reads at most `limit` bytes of the file with this name in a directory.
pub(crate) fn read_in(dir: &OwnedFd, name: &OsStr, limit: u64) -> io::Result<Current> {
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Current::Missing),
        stat => stat?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let content = readlinkat(dir, name, Vec::new())?.into_bytes();
            Ok(Current::File { mode: LINK, content })
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(dir, name, flags, Mode::empty())?);
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Ok(Current::Other);
            }
            let program = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
            let mut content = Vec::new();
            file.take(limit + 1).read_to_end(&mut content)?;
            if content.len() as u64 > limit {
                return Ok(Current::TooLarge(metadata.len()));
            }
            Ok(Current::File { mode: if program { 0o100_755 } else { 0o100_644 }, content })
        }
        _ => Ok(Current::Other),
    }
}

pub(crate) fn has_crlf(content: &[u8]) -> bool {
    content.windows(2).any(|pair| pair == b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_the_path_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        let read = |path: &str| Current::read(&root, Path::new(path), 10).unwrap();
        assert!(matches!(read("real/file"), Current::File { mode: 0o100_644, .. }));
        assert!(matches!(read("link/file"), Current::Missing));
        assert!(matches!(read("link"), Current::File { mode: LINK, content } if content == b"real"));
        assert!(matches!(read("real"), Current::Other));
        assert!(matches!(read("real/file/below"), Current::Missing));
        assert!(Current::read(&root, Path::new("../root/real/file"), 10).is_err());
    }
}
