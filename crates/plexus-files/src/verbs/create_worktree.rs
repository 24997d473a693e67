//! Creates a worktree: branch, checkout, copies. The body of the answer is the index of the fresh checkout.

use std::time::SystemTime;

use plexus_worktree::{Baseline, FreshCheckout, Plan};
use serde::{Deserialize, Serialize};

use crate::fault::{FaultAbout, WorktreeFault};
use crate::request::{Input, Kind, Output, Request, Verb};

/// Creates a planned worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreateWorktree {
    /// The plan of the worktree.
    pub plan: Plan,
}

/// The initial state of a new worktree. The body of the answer is its index.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreatedWorktree {
    /// The modification time of the index.
    pub modified: SystemTime,
    /// The differences that copying caused.
    pub baseline: Baseline,
}

impl From<CreateWorktree> for Request {
    fn from(verb: CreateWorktree) -> Self {
        Self::CreateWorktree(verb)
    }
}

impl Verb for CreateWorktree {
    type Answer = Result<CreatedWorktree, WorktreeFault>;

    const KIND: Kind = Kind::Create;
    /// Enough for the index of some millions of files.
    const MAX_BODY: u64 = 512 * 1024 * 1024;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        match self.plan.create().map_err(WorktreeFault::from).and_then(with_index) {
            Ok((created, index)) => (Ok(created), index),
            Err(fault) => (Err(fault), Output::default()),
        }
    }
}

fn with_index(created: FreshCheckout) -> Result<(CreatedWorktree, Output), WorktreeFault> {
    let FreshCheckout { index, baseline } = created;
    let metadata = index.metadata().and_then(|metadata| Ok((metadata.modified()?, metadata.len())));
    let (modified, length) = metadata.map_err(|error| WorktreeFault {
        about: FaultAbout::Nothing,
        message: format!("its index: {error}"),
    })?;
    Ok((CreatedWorktree { modified, baseline }, Output::new(index, length)))
}
