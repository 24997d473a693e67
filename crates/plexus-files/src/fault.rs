//! Errors of worktrees as they travel from a helper process to the hub: what they are about, and in which words.

use plexus_worktree::WorktreeError;
use serde::{Deserialize, Serialize};

/// Why work on a worktree failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct WorktreeFault {
    /// What has to be changed so that it works.
    pub about: FaultAbout,
    /// In words.
    pub message: String,
}

/// The part of a request that a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAbout {
    /// The working directory, or its repository.
    WorkingDir,
    /// The revision to begin at.
    Base,
    /// The files to copy.
    Copy,
    /// None of it.
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
            WorktreeError::NoSuchBase { .. } => FaultAbout::Base,
            WorktreeError::Copy { .. } => FaultAbout::Copy,
            WorktreeError::Moved(_)
            | WorktreeError::NoRecord
            | WorktreeError::TooMuch
            | WorktreeError::Git(_)
            | WorktreeError::Io { .. } => FaultAbout::Nothing,
        };
        Self { about, message: error.to_string() }
    }
}
