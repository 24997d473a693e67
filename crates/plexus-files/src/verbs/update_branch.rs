//! Completes a prepared commit or merge: moves the branch, with the working tree that has it checked out.

use plexus_worktree::{BranchUpdate, update};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Moves a branch.
#[derive(Debug, Serialize, Deserialize)]
pub struct UpdateBranch {
    /// The prepared update.
    pub update: BranchUpdate,
}

impl From<UpdateBranch> for Request {
    fn from(verb: UpdateBranch) -> Self {
        Self::UpdateBranch(verb)
    }
}

impl Verb for UpdateBranch {
    type Answer = Result<(), WorktreeFault>;

    const KIND: Kind = Kind::Create;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (update(&self.update).map_err(Into::into), Output::default())
    }
}
