//! Creates a worktree: branch, checkout, copies. The body of the answer is the index of the fresh checkout.

use std::time::SystemTime;

use plexus_worktree::{Baseline, Made, Plan};
use serde::{Deserialize, Serialize};

use crate::fault::{FaultAbout, WorktreeFault};
use crate::request::{Input, Kind, Output, Request, Verb};

/// Creates a planned worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct MakeWorktree {
    /// The plan of the worktree.
    pub plan: Plan,
}

/// The initial state of a new worktree. The body of the answer is its index.
#[derive(Debug, Serialize, Deserialize)]
pub struct MadeWorktree {
    /// The modification time of the index.
    pub modified: SystemTime,
    /// The differences that copying caused.
    pub baseline: Baseline,
}

impl From<MakeWorktree> for Request {
    fn from(verb: MakeWorktree) -> Self {
        Self::MakeWorktree(verb)
    }
}

impl Verb for MakeWorktree {
    type Answer = Result<MadeWorktree, WorktreeFault>;

    const KIND: Kind = Kind::Make;
    /// Enough for the index of some millions of files.
    const MAX_BODY: u64 = 512 * 1024 * 1024;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        match self.plan.make().map_err(WorktreeFault::from).and_then(handed_over) {
            Ok((made, index)) => (Ok(made), index),
            Err(fault) => (Err(fault), Output::default()),
        }
    }
}

fn handed_over(made: Made) -> Result<(MadeWorktree, Output), WorktreeFault> {
    let Made { index, baseline } = made;
    let metadata = index.metadata().and_then(|metadata| Ok((metadata.modified()?, metadata.len())));
    let (modified, length) = metadata.map_err(|error| WorktreeFault {
        about: FaultAbout::Nothing,
        message: format!("its index: {error}"),
    })?;
    Ok((MadeWorktree { modified, baseline }, Output::new(index, length)))
}
