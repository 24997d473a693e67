//! Records the differences from the index of the fresh checkout after setup. The body of the request is that index.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, WorktreeError};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Records the differences from the index.
#[derive(Debug, Serialize, Deserialize)]
pub struct TakeBaseline {
    /// The worktree.
    pub worktree: Worktree,
}

impl From<TakeBaseline> for Request {
    fn from(verb: TakeBaseline) -> Self {
        Self::TakeBaseline(verb)
    }
}

impl Verb for TakeBaseline {
    type Answer = Result<Baseline, WorktreeFault>;

    const KIND: Kind = Kind::Create;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let index = input.path().ok_or(WorktreeError::NoRecord);
        let taken = index.and_then(|index| Baseline::take(&self.worktree, index));
        (taken.map_err(Into::into), Output::default())
    }
}
