//! Prepares a commit of a worktree: writes its objects, and changes no branch. The body of the request is the worktree's
//! initial index.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{Baseline, CommitRequest, PreparedCommit, prepare_commit};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Prepares a commit.
#[derive(Debug, Serialize, Deserialize)]
pub struct PrepareCommit {
    /// The worktree.
    pub worktree: Worktree,
    /// The initial differences, which do not count as changes.
    pub baseline: Baseline,
    /// The parameters of the commit.
    pub request: CommitRequest,
}

impl From<PrepareCommit> for Request {
    fn from(verb: PrepareCommit) -> Self {
        Self::PrepareCommit(verb)
    }
}

impl Verb for PrepareCommit {
    type Answer = Result<PreparedCommit, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, input: Input) -> (Self::Answer, Output) {
        let prepared = input
            .initial_state(self.baseline)
            .and_then(|initial_state| prepare_commit(&self.worktree, &initial_state, &self.request));
        (prepared.map_err(Into::into), Output::default())
    }
}
