//! Why a worktree could not be planned, made, read or removed, in words its maker can act on.

use std::io;
use std::path::{Path, PathBuf};

/// Why a worktree could not be planned, made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// There is no repository to make one from.
    #[error("{0} is not in a git repository")]
    NoRepository(PathBuf),
    /// The repository cannot be opened.
    #[error("the git repository of {path} cannot be used: {why}")]
    BadRepository {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The repository has no files of its own to work in.
    #[error("the git repository of {0} is bare; give a directory of a working tree")]
    Bare(PathBuf),
    /// There is nothing to begin at.
    #[error("the git repository of {0} has no commits yet")]
    NoCommits(PathBuf),
    /// The directory to work in is not part of what is checked out.
    #[error("{0} is not part of the working tree at that revision")]
    NotInTree(PathBuf),
    /// The revision to begin at is not there.
    #[error("`{base}` names no commit of the repository: {why}")]
    NoSuchBase {
        /// As it was given.
        base: String,
        /// What git says.
        why: String,
    },
    /// Something to copy cannot be.
    #[error("`{path}` {why}")]
    Copy {
        /// As it was given.
        path: String,
        /// Why not.
        why: String,
    },
    /// What stands at its path is not the directory that was made there.
    #[error("{0} is not the directory that was made there")]
    Moved(PathBuf),
    /// It was never finished, or what the hub knew of it is gone.
    #[error("what it began as is not known")]
    NoRecord,
    /// There is more in it than can be compared in a reasonable time.
    #[error("there is too much in it to compare")]
    TooMuch,
    /// What git says.
    #[error("git: {}", .0.message())]
    Git(#[from] git2::Error),
    /// What the system says.
    #[error("{path}: {source}")]
    Io {
        /// Of what.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

/// Names the path that an I/O error is about.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> WorktreeError + '_ {
    |source| WorktreeError::Io { path: path.to_owned(), source }
}
