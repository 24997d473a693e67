//! Worktree errors in the form that a helper process sends to the hub: the part of the request at fault, and a message.

use plexus_worktree::WorktreeError;
use serde::{Deserialize, Serialize};

/// Why work on a worktree failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct WorktreeFault {
    /// The part of the request that the caller has to change.
    pub about: FaultAbout,
    /// The error message.
    pub message: String,
}

/// The part of a request that a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAbout {
    /// The working directory, or its repository.
    WorkingDir,
    /// The base revision.
    Base,
    /// The files to copy.
    Copy,
    /// The reviewed state, which is no longer the present one.
    Review,
    /// The state of the repository, which does not permit the operation.
    Repository,
    /// No part of the request.
    Nothing,
}

impl From<WorktreeError> for WorktreeFault {
    fn from(error: WorktreeError) -> Self {
        let about = match &error {
            WorktreeError::NoRepository(_)
            | WorktreeError::BadRepository { .. }
            | WorktreeError::Bare(_)
            | WorktreeError::NoCommits(_)
            | WorktreeError::NotInTree(_) => FaultAbout::WorkingDir,
            WorktreeError::NoSuchBase { .. } | WorktreeError::AmbiguousBase { .. } => FaultAbout::Base,
            WorktreeError::Copy { .. } => FaultAbout::Copy,
            WorktreeError::Changed | WorktreeError::BranchChanged(_) => FaultAbout::Review,
            WorktreeError::Refused(_) => FaultAbout::Repository,
            WorktreeError::Moved(_)
            | WorktreeError::NoRecord
            | WorktreeError::TooMuch
            | WorktreeError::Git(_)
            | WorktreeError::Io { .. } => FaultAbout::Nothing,
        };
        Self { about, message: error.to_string() }
    }
}
