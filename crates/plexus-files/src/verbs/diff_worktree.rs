//! Compares a worktree with what it began as, file by file. The index it began with is the body of the request.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, WorktreeDiff, diff};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Compares a worktree with what it began as.
#[derive(Debug, Serialize, Deserialize)]
pub struct DiffWorktree {
    /// Which worktree.
    pub worktree: Worktree,
    /// What does not count as changed.
    pub baseline: Baseline,
    /// One file of it, if not all.
    pub only: Option<String>,
}

impl From<DiffWorktree> for Request {
    fn from(verb: DiffWorktree) -> Self {
        Self::DiffWorktree(verb)
    }
}

impl Verb for DiffWorktree {
    type Answer = Result<WorktreeDiff, WorktreeFault>;

    const KIND: Kind = Kind::Look;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let began = input.began(self.baseline);
        let compared = began.and_then(|began| diff(&self.worktree, &began, self.only.as_deref()));
        (compared.map_err(Into::into), Output::default())
    }
}
