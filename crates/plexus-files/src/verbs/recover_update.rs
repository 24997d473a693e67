//! Completes or reports an update of a branch that was interrupted.

use plexus_worktree::{BranchUpdate, Recovered, recover};
use serde::{Deserialize, Serialize};

use crate::fault::WorktreeFault;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Recovers an interrupted update.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecoverUpdate {
    /// The interrupted update.
    pub update: BranchUpdate,
}

impl From<RecoverUpdate> for Request {
    fn from(verb: RecoverUpdate) -> Self {
        Self::RecoverUpdate(verb)
    }
}

impl Verb for RecoverUpdate {
    type Answer = Result<Recovered, WorktreeFault>;

    const KIND: Kind = Kind::Create;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (recover(&self.update).map_err(Into::into), Output::default())
    }
}
