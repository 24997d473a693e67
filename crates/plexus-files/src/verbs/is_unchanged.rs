//! Says whether a worktree can be deleted without a loss. The index it began with, if it is known, is the body of the
//! request.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, is_unchanged};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Asks whether nothing was changed in a worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct IsUnchanged {
    /// Which worktree.
    pub worktree: Worktree,
    /// What does not count as changed, if that is known.
    pub baseline: Option<Baseline>,
}

impl From<IsUnchanged> for Request {
    fn from(verb: IsUnchanged) -> Self {
        Self::IsUnchanged(verb)
    }
}

impl Verb for IsUnchanged {
    type Answer = Result<bool, WorktreeFault>;

    const KIND: Kind = Kind::Look;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let began = self.baseline.and_then(|baseline| input.began(baseline).ok());
        (is_unchanged(&self.worktree, began.as_ref()).map_err(Into::into), Output::default())
    }
}
