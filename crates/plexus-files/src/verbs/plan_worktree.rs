//! Inspects a repository and plans a worktree. It creates only the directory for worktrees.

use plexus_worktree::Plan;
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Plans a worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanWorktree {
    /// The parameters of the worktree.
    pub request: plexus_worktree::Request,
}

impl From<PlanWorktree> for Request {
    fn from(verb: PlanWorktree) -> Self {
        Self::PlanWorktree(verb)
    }
}

impl Verb for PlanWorktree {
    type Answer = Result<Plan, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (Plan::of(&self.request).map_err(Into::into), Output::default())
    }
}
