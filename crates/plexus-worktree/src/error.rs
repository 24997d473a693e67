//! The errors of planning, creating, comparing, committing, merging and deleting a worktree, in words that the caller can act on.
//! `plexus-core` turns them into error kinds.

use std::io;
use std::path::{Path, PathBuf};

/// Why an operation on a worktree failed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The directory is not in a repository.
    #[error(
        "{0} is not in a git repository; run `git init` there, or create the session without `isolation`"
    )]
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
    #[error(
        "{0} is not a directory of the working tree at the base revision; choose another directory or base"
    )]
    NotInTree(PathBuf),
    /// The base revision does not exist.
    #[error("`{base}` is not a commit of the repository: {why}")]
    NoSuchBase {
        /// The revision, as given.
        base: String,
        /// The message of git.
        why: String,
    },
    /// The base revision means several commits.
    #[error("`{base}` is ambiguous. Write {names}")]
    AmbiguousBase {
        /// The revision, as given.
        base: String,
        /// The unambiguous names of the commits that it means.
        names: String,
    },
    /// A requested file cannot be copied.
    #[error("`{path}` {why}")]
    Copy {
        /// The path, as given.
        path: String,
        /// The reason.
        why: String,
    },
    /// The path of the worktree, or of the user's checkout, no longer leads to the recorded directory.
    #[error("{0} was moved or replaced since the session was created")]
    Moved(PathBuf),
    /// The worktree was never completed, or the hub's record of it is missing.
    #[error("the hub has no record of the worktree's initial state; compare it with git")]
    NoRecord,
    /// The worktree has too many files or changes to compare in a reasonable time.
    #[error("the worktree has too many files to compare; use git in it")]
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
