//! Prepares a merge of a worktree's branch in memory: writes its objects, and changes no branch.

use plexus_protocol::worktree::Worktree;
use plexus_worktree::{MergeRequest, PreparedMerge, prepare_merge};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Prepares a merge.
#[derive(Debug, Serialize, Deserialize)]
pub struct PrepareMerge {
    /// The worktree.
    pub worktree: Worktree,
    /// The parameters of the merge.
    pub request: MergeRequest,
}

impl From<PrepareMerge> for Request {
    fn from(verb: PrepareMerge) -> Self {
        Self::PrepareMerge(verb)
    }
}

impl Verb for PrepareMerge {
    type Answer = Result<PreparedMerge, WorktreeFault>;

    const KIND: Kind = Kind::Compare;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (prepare_merge(&self.worktree, &self.request).map_err(Into::into), Output::default())
    }
}
