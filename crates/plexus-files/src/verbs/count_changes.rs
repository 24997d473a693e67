//! Counts the changes of a session in its worktree. The body of the request is the worktree's initial index.

use plexus_protocol::worktree::{BranchState, Worktree, WorktreeChanges};
use plexus_worktree::{Baseline, changes};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Counts the changes in a worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct CountChanges {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes.
    pub baseline: Baseline,
}

impl From<CountChanges> for Request {
    fn from(verb: CountChanges) -> Self {
        Self::CountChanges(verb)
    }
}

impl Verb for CountChanges {
    type Answer = Result<(WorktreeChanges, BranchState), WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let counted = input
            .initial_state(self.baseline)
            .and_then(|initial_state| changes(&self.worktree, &initial_state));
        (counted.map_err(Into::into), Output::default())
    }
}
