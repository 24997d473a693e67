//! Lines that change nothing that must survive a restart: token deltas, echoes of the hub's own answers, and the cost of a running turn. They
//! cause no commit of their own. The next commit covers them; a hub that starts before it reads them again, which changes nothing. The cost is
//! stored after a moment even if no other commit follows, because a page shows it.

use std::time::{Duration, Instant};

use plexus_store::Change;

use super::lines::Batch;
use super::progress::Progress;
use super::{AfterCommit, Machine};

/// How much of a journal may be read without a commit.
const MAX_UNSTORED_BYTES: u64 = 64 * 1024;
/// How long a new cost waits for another commit.
const COST_WITHIN: Duration = Duration::from_millis(300);

/// What was read from a process since the last commit.
#[derive(Debug, Default)]
pub(super) struct Unstored {
    bytes: u64,
    /// When the new cost in the progress of the turn has to be stored.
    pub(super) cost_by: Option<Instant>,
}

impl Machine {
    /// Decides whether the lines of a batch wait for the next commit. `before` is the progress of the turn before the batch.
    pub(super) fn postpone(&mut self, batch: &Batch, before: Option<&Progress>, bytes: u64) -> bool {
        let after = self.turn.as_ref().map(|turn| &turn.progress);
        let changes_only_cost = match (before, after) {
            (Some(before), Some(after)) => {
                *after == Progress { running_cost: after.running_cost, ..before.clone() }
            }
            (before, after) => before.is_none() && after.is_none(),
        };
        let cost_changed = before.map(|p| p.running_cost) != after.map(|p| p.running_cost);
        let Some(unstored) = self.process.as_mut().map(|process| &mut process.unstored) else { return false };
        let postponed = batch.is_quiet() && changes_only_cost && unstored.bytes + bytes <= MAX_UNSTORED_BYTES;
        if postponed {
            unstored.bytes += bytes;
            if cost_changed {
                unstored.cost_by.get_or_insert(self.now.instant + COST_WITHIN);
            }
        }
        postponed
    }

    /// The next commit covers everything that was read. Returns whether it has to contain the progress because of postponed lines.
    pub(super) fn take_unstored_cost(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| std::mem::take(&mut process.unstored).cost_by.is_some())
    }

    /// No other commit followed in time.
    pub(super) fn store_cost(&mut self) {
        if let Some(process) = self.process.as_mut() {
            process.unstored.cost_by = None;
        }
        let changes: Vec<Change> = self.turn.is_some().then(|| self.progress()).into_iter().collect();
        self.commit_then(changes, AfterCommit::Nothing);
    }
}
