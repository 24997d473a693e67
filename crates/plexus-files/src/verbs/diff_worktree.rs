//! Compares a worktree with its initial state, file by file. The body of the request is the worktree's initial index.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, Shown, WorktreeDiff, diff};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Compares a worktree with its initial state.
#[derive(Debug, Serialize, Deserialize)]
pub struct DiffWorktree {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes.
    pub baseline: Baseline,
    /// The part of the changes to show.
    pub shown: Shown,
}

impl From<DiffWorktree> for Request {
    fn from(verb: DiffWorktree) -> Self {
        Self::DiffWorktree(verb)
    }
}

impl Verb for DiffWorktree {
    type Answer = Result<WorktreeDiff, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let initial_state = input.initial_state(self.baseline);
        let compared =
            initial_state.and_then(|initial_state| diff(&self.worktree, &initial_state, &self.shown));
        (compared.map_err(Into::into), Output::default())
    }
}
