//! Finds what a user needs to push a worktree's branch. The body of the request is the worktree's initial index.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, Pushable, pushable};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Finds the commit and the remotes of a worktree's branch.
#[derive(Debug, Serialize, Deserialize)]
pub struct FindPushable {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes.
    pub baseline: Baseline,
}

impl From<FindPushable> for Request {
    fn from(verb: FindPushable) -> Self {
        Self::FindPushable(verb)
    }
}

impl Verb for FindPushable {
    type Answer = Result<Pushable, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let found = input
            .initial_state(self.baseline)
            .and_then(|initial_state| pushable(&self.worktree, &initial_state));
        (found.map_err(Into::into), Output::default())
    }
}
