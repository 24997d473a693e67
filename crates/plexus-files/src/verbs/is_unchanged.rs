//! Checks whether a worktree can be deleted without losing work. The body of the request is the worktree's initial
//! index, if it is known.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, is_unchanged};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Checks whether a worktree is unchanged.
#[derive(Debug, Serialize, Deserialize)]
pub struct IsUnchanged {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes, if they are known.
    pub baseline: Option<Baseline>,
}

impl From<IsUnchanged> for Request {
    fn from(verb: IsUnchanged) -> Self {
        Self::IsUnchanged(verb)
    }
}

impl Verb for IsUnchanged {
    type Answer = Result<bool, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let initial_state = self.baseline.and_then(|baseline| input.initial_state(baseline).ok());
        (is_unchanged(&self.worktree, initial_state.as_ref()).map_err(Into::into), Output::default())
    }
}
