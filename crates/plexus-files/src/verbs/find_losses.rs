//! Finds the work that is lost if a worktree is deleted. The body of the request is the worktree's initial
//! index, if it is known.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, losses};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Finds the work that is lost with a worktree; the answer has a clause for each kind of loss.
#[derive(Debug, Serialize, Deserialize)]
pub struct FindLosses {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes, if they are known.
    pub baseline: Option<Baseline>,
}

impl From<FindLosses> for Request {
    fn from(verb: FindLosses) -> Self {
        Self::FindLosses(verb)
    }
}

impl Verb for FindLosses {
    type Answer = Result<Vec<String>, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let initial_state = self.baseline.and_then(|baseline| input.initial_state(baseline).ok());
        let found = losses(&self.worktree, initial_state.as_ref());
        let found = found.map(|losses| losses.iter().map(ToString::to_string).collect());
        (found.map_err(Into::into), Output::default())
    }
}
