//! Makes a worktree: branch, checkout, copies. The index of the fresh checkout is the body of the answer.

use std::time::SystemTime;

use plexus_worktree::{Baseline, Made, Plan};
use serde::{Deserialize, Serialize};

use crate::fault::{FaultAbout, WorktreeFault};
use crate::request::{Input, Kind, Output, Request, Verb};

/// Makes a planned worktree.
#[derive(Debug, Serialize, Deserialize)]
pub struct MakeWorktree {
    /// What is to be made.
    pub plan: Plan,
}

/// What a new worktree began as; its index is the body of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct MadeWorktree {
    /// The modification time of the index.
    pub modified: SystemTime,
    /// What copying changed.
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
    /// The index of some millions of files.
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
