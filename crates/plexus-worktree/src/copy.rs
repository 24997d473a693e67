//! Copies files and directories into a new worktree so that it builds. They come from the original checkout, and git
//! does not track them. Whatever links either tree contains, nothing is read from outside that checkout, and nothing is
//! written outside the worktree.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::at;
use crate::files::{missing_is_fine, open_regular};
use crate::{Result, WorktreeError};

/// One file or directory to copy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Copy {
    from: PathBuf,
    /// The path relative to the root of either tree.
    within: PathBuf,
}

impl Copy {
    /// Validates a requested copy.
    pub(crate) fn of(root: &Path, given: &str) -> Result<Self> {
        let bad = |why: &str| Err(WorktreeError::Copy { path: given.to_owned(), why: why.to_owned() });
        let mut within = PathBuf::new();
        for part in Path::new(given).components() {
            match part {
                Component::Normal(part) if part.eq_ignore_ascii_case(".git") => {
                    return bad("is inside the .git directory");
                }
                Component::Normal(part) => within.push(part),
                Component::CurDir => {}
                _ => return bad("must be a path below the root of the repository"),
            }
        }
        let Some(parent) = within.parent() else {
            return bad("must be a path below the root of the repository");
        };
        let from = root.join(&within);
        let there = root.join(parent).canonicalize().and_then(|real| Ok((real, from.symlink_metadata()?)));
        match there {
            Err(error) if error.kind() == io::ErrorKind::NotFound => bad("is not in the repository"),
            Err(error) => bad(&format!("cannot be read: {error}")),
            Ok((real, _)) if real != root.join(parent) => bad("is behind a symbolic link"),
            Ok((_, metadata)) if !is_copied(&metadata) => bad("is neither a file nor a directory"),
            Ok(_) => Ok(Self { from, within }),
        }
    }

    /// Rejects a copy from outside `dir`.
    pub(crate) fn check_within(&self, dir: &Path) -> Result<()> {
        if self.from.starts_with(dir) {
            return Ok(());
        }
        let why = "is not in the working directory of the calling session".to_owned();
        Err(WorktreeError::Copy { path: self.within.display().to_string(), why })
    }

    /// Copies the file or directory into another tree.
    pub(crate) fn copy_to(&self, root: &Path) -> Result<()> {
        let mut to = root.to_owned();
        for part in self.within.parent().into_iter().flat_map(Path::components) {
            to.push(part);
            real_dir(&to)?;
        }
        let mut waiting = vec![(self.from.clone(), root.join(&self.within))];
        while let Some((from, to)) = waiting.pop() {
            let metadata = from.symlink_metadata().map_err(at(&from))?;
            if metadata.is_dir() {
                real_dir(&to)?;
                for entry in from.read_dir().map_err(at(&from))? {
                    let name = entry.map_err(at(&from))?.file_name();
                    if !name.eq_ignore_ascii_case(".git") {
                        waiting.push((from.join(&name), to.join(&name)));
                    }
                }
                let mode = Permissions::from_mode(metadata.permissions().mode() | 0o700);
                std::fs::set_permissions(&to, mode).map_err(at(&to))?;
            } else if is_copied(&metadata) {
                one(&from, &metadata, &to).map_err(at(&from))?;
            }
        }
        Ok(())
    }
}

fn is_copied(metadata: &Metadata) -> bool {
    metadata.is_file() || metadata.is_dir() || metadata.is_symlink()
}

/// Ensures a real directory in the worktree. The revision may have a link there, and nothing may be written through it.
fn real_dir(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(WorktreeError::Io {
            path: path.to_owned(),
            source: io::Error::new(
                io::ErrorKind::NotADirectory,
                "this path is not a directory in the revision",
            ),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::create_dir(path).map_err(at(path)),
        Err(error) => Err(at(path)(error)),
    }
}

/// Copies a file or a link, and replaces an existing one. Keeps timestamps, because build tools compare them.
fn one(from: &Path, metadata: &Metadata, to: &Path) -> io::Result<()> {
    missing_is_fine(std::fs::remove_file(to))?;
    if metadata.is_symlink() {
        return symlink(from.read_link()?, to);
    }
    let mut source = open_regular(from)?;
    let mut copy: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_permissions(Permissions::from_mode(metadata.permissions().mode() & 0o777))?;
    copy.set_modified(metadata.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let [root, to] = ["root", "to"].map(|name| real.join(name));
        for path in [&root.join("sub/.git"), &root.join(".git"), &to] {
            std::fs::create_dir_all(path).unwrap();
        }
        std::fs::write(real.join("secret"), "s").unwrap();
        (dir, root, to)
    }

    #[test]
    fn only_paths_in_the_checkout_can_be_copied() {
        let (dir, root, _to) = tree();
        symlink(dir.path(), root.join("out")).unwrap();
        std::fs::write(root.join("plain"), "").unwrap();
        for (given, why) in [
            ("/etc/passwd", "below the root"),
            ("../secret", "below the root"),
            ("sub/../../secret", "below the root"),
            ("out/secret", "symbolic link"),
            (".git/config", "the .git directory"),
            ("sub/.GIT", "the .git directory"),
            ("", "below the root"),
            (".", "below the root"),
            ("nowhere", "not in the repository"),
            ("plain/below", "cannot be read"),
        ] {
            let error = Copy::of(&root, given).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(&format!("`{given}`")), "{given}: {error}");
        }
        assert!(Copy::of(&root, "./sub/").is_ok() && Copy::of(&root, "out").is_ok());
    }

    #[test]
    fn modes_times_and_links_are_kept_and_git_is_left_out() {
        let (_dir, root, to) = tree();
        std::fs::create_dir(root.join("sub/deep")).unwrap();
        std::fs::write(root.join("sub/deep/run"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(root.join("sub/deep/run"), Permissions::from_mode(0o4755)).unwrap();
        symlink("../../secret", root.join("sub/link")).unwrap();
        Copy::of(&root, "sub").unwrap().copy_to(&to).unwrap();
        let copied = to.join("sub/deep/run").metadata().unwrap();
        assert_eq!(copied.permissions().mode() & 0o7777, 0o755);
        assert_eq!(
            copied.modified().unwrap(),
            root.join("sub/deep/run").metadata().unwrap().modified().unwrap()
        );
        assert_eq!(to.join("sub/link").read_link().unwrap(), Path::new("../../secret"));
        assert!(!to.join("sub/.git").exists());
    }

    #[test]
    fn nothing_is_written_through_a_link_of_the_revision() {
        let (dir, root, to) = tree();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("a/secret"), "new").unwrap();
        symlink(dir.path(), to.join("a")).unwrap();
        assert!(Copy::of(&root, "a/secret").unwrap().copy_to(&to).is_err());
        assert!(Copy::of(&root, "a").unwrap().copy_to(&to).is_err());
        std::fs::remove_file(to.join("a")).unwrap();
        std::fs::create_dir(to.join("a")).unwrap();
        symlink(dir.path().join("secret"), to.join("a/secret")).unwrap();
        Copy::of(&root, "a/secret").unwrap().copy_to(&to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("a/secret")).unwrap(), "new");
        assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "s");
    }
}
