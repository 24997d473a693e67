//! The errors of planning, creating, reading and deleting a worktree, in words that the session's creator can act on.

use std::io;
use std::path::{Path, PathBuf};

/// Why a worktree could not be planned, created, read or deleted.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The directory is not in a repository.
    #[error("{0} is not in a git repository")]
    NoRepository(PathBuf),
    /// The repository cannot be opened.
    #[error("cannot use the git repository of {path}: {why}")]
    BadRepository {
        /// The path where the repository was searched.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The repository has no working tree.
    #[error("the git repository of {0} is bare; use a directory of a working tree")]
    Bare(PathBuf),
    /// The repository has no commit to start from.
    #[error("the git repository of {0} has no commits yet; create one first")]
    NoCommits(PathBuf),
    /// The working directory does not exist in the checked-out revision.
    #[error("{0} is not part of the working tree at that revision")]
    NotInTree(PathBuf),
    /// The base revision does not exist.
    #[error("`{base}` is not a commit of the repository: {why}")]
    NoSuchBase {
        /// The revision, as given.
        base: String,
        /// The message of git.
        why: String,
    },
    /// A requested file cannot be copied.
    #[error("`{path}` {why}")]
    Copy {
        /// The path, as given.
        path: String,
        /// The reason.
        why: String,
    },
    /// The path of the worktree no longer leads to the created directory.
    #[error("{0} is not the directory that Plexus created there")]
    Moved(PathBuf),
    /// The worktree was never completed, or the hub's record of it is missing.
    #[error("the hub has no record of its initial state")]
    NoRecord,
    /// The worktree has too many files to compare in a reasonable time.
    #[error("it has too many files to compare")]
    TooMuch,
    /// The worktree is not in the reviewed state.
    #[error("The worktree changed since you reviewed it. Review the diff again")]
    Changed,
    /// A branch is not in the reviewed state.
    #[error("The branch `{0}` changed since you reviewed it. Review the diff again")]
    BranchChanged(String),
    /// The state of the repository does not permit the operation.
    #[error("{0}")]
    Refused(String),
    /// An error of git.
    #[error("git: {}", .0.message())]
    Git(#[from] git2::Error),
    /// An I/O error.
    #[error("{path}: {source}")]
    Io {
        /// The path that failed.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Names the path that an I/O error is about.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> WorktreeError + '_ {
    |source| WorktreeError::Io { path: path.to_owned(), source }
}
