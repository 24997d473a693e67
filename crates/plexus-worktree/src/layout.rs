//! Checks that a git directory has the layout that git creates, before anything is written to it. libgit2 follows links:
//! with a link or a redirection in the directory, a child could make the hub append to a file, or write objects and
//! references, anywhere.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::error::at;
use crate::{Result, WorktreeError};

/// Files that make git use the objects of another directory. If that directory is deleted, the new commits are damaged.
const ALTERNATES: [&str; 2] = ["objects/info/alternates", "objects/info/http-alternates"];

/// Checks everything that libgit2 writes in the git directory `repo` when it adds objects and moves `branch`.
pub(crate) fn check_layout(repo: &Path, branch: &str) -> Result<()> {
    check_references(repo, branch)?;
    for file in ALTERNATES.map(|file| repo.join(file)) {
        if found(&file)?.is_some() {
            return Err(WorktreeError::Refused(format!(
                "{} makes git use the objects of another directory, so Plexus neither commits nor merges here. Use git in a \
                 terminal, or run `git repack -a -d` and delete the file",
                file.display()
            )));
        }
    }
    check_dirs(repo, Path::new("objects/info"))?;
    check_dirs(repo, Path::new("objects/pack"))?;
    for first in 0..=u8::MAX {
        check_dirs(repo, &Path::new("objects").join(format!("{first:02x}")))?;
    }
    Ok(())
}

/// Checks everything that is written in the git directory `repo` when `branch` is created or moved.
pub(crate) fn check_references(repo: &Path, branch: &str) -> Result<()> {
    check_place(repo)?;
    let reference = Path::new("refs/heads").join(branch);
    let log = Path::new("logs").join(&reference);
    for file in [&reference, &log, Path::new("logs/HEAD"), Path::new("packed-refs")] {
        check_file(repo, file)?;
    }
    Ok(())
}

/// Checks git's directory about the worktree with this name.
pub(crate) fn check_admin_dir(repo: &Path, name: &str) -> Result<()> {
    check_place(repo)?;
    let admin = Path::new("worktrees").join(name);
    check_dirs(repo, &admin)?;
    check_dirs(repo, &admin.join("logs"))?;
    check_file(repo, &admin.join("logs/HEAD"))
}

/// Checks that the git directory is still at the recorded path.
fn check_place(repo: &Path) -> Result<()> {
    let is_same = repo.canonicalize().map_err(at(repo))? == repo;
    if is_same && repo.is_dir() { Ok(()) } else { Err(WorktreeError::Moved(repo.to_owned())) }
}

/// Checks that each part of `path` below `repo` is a directory, or missing.
fn check_dirs(repo: &Path, path: &Path) -> Result<()> {
    let mut dir = repo.to_owned();
    for part in path.components() {
        dir.push(part);
        match found(&dir)? {
            None => break,
            Some(metadata) if metadata.is_dir() => {}
            Some(_) => return Err(strange(&dir, "is not a directory")),
        }
    }
    Ok(())
}

/// Checks that `path` below `repo` is a file that has no other name, or is missing. An empty directory is fine: git
/// leaves one for a deleted branch.
fn check_file(repo: &Path, path: &Path) -> Result<()> {
    check_dirs(repo, path.parent().unwrap_or(path))?;
    let path = repo.join(path);
    match found(&path)? {
        Some(metadata) if metadata.is_file() && metadata.nlink() > 1 => {
            Err(strange(&path, "is a hard link to a file with another name"))
        }
        Some(metadata) if !metadata.is_file() && !metadata.is_dir() => Err(strange(&path, "is not a file")),
        _ => Ok(()),
    }
}

fn found(path: &Path) -> Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

fn strange(path: &Path, why: &str) -> WorktreeError {
    WorktreeError::Refused(format!(
        "{} {why} of the repository, so Plexus writes nothing to this repository. Find out what put it there, and replace it",
        path.display()
    ))
}
