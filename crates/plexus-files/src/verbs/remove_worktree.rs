//! Deletes a worktree with its branch.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::remove;
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Deletes a worktree, whatever its content.
#[derive(Debug, Serialize, Deserialize)]
pub struct RemoveWorktree {
    /// The worktree.
    pub worktree: Worktree,
}

impl From<RemoveWorktree> for Request {
    fn from(verb: RemoveWorktree) -> Self {
        Self::RemoveWorktree(verb)
    }
}

impl Verb for RemoveWorktree {
    type Answer = Result<(), WorktreeFault>;

    const KIND: Kind = Kind::Create;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (remove(&self.worktree).map_err(Into::into), Output::default())
    }
}
