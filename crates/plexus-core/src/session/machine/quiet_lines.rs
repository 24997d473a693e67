//! Lines that change nothing that must survive a restart: token deltas, echoes of the hub's own answers, and the cost of a running turn. They
//! cause no commit of their own. The next commit covers them; a hub that starts before it reads them again, which changes nothing. If no other
//! commit follows, they are stored after a moment: a page shows the cost, and the metrics show how much of a journal is not stored.

use std::time::{Duration, Instant};

use plexus_store::{Change, RunKey};

use super::lines::Batch;
use super::progress::Progress;
use super::{AfterCommit, Machine};

/// How much of a journal may be read without a commit.
const MAX_UNSTORED_BYTES: u64 = 64 * 1024;
/// How long a new cost waits for another commit.
const COST_WITHIN: Duration = Duration::from_millis(300);
/// How long other lines wait for another commit.
const LINES_WITHIN: Duration = Duration::from_secs(2);

/// What was read from a process since the last commit.
#[derive(Debug, Default)]
pub(super) struct Unstored {
    bytes: u64,
    /// The run and the end of the last line.
    end: Option<(RunKey, u64)>,
    /// Whether the progress of the turn has a new cost.
    has_cost: bool,
    /// When the lines have to be stored.
    pub(super) store_by: Option<Instant>,
}

impl Machine {
    /// Decides whether the lines of a batch, with this many bytes up to `end`, wait for the next commit. `before` is the progress of the turn
    /// before the batch.
    pub(super) fn postpone(
        &mut self,
        batch: &Batch,
        before: Option<&Progress>,
        bytes: u64,
        end: (RunKey, u64),
    ) -> bool {
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
            unstored.end = Some(end);
            unstored.has_cost |= cost_changed;
            let by = self.now.instant + if cost_changed { COST_WITHIN } else { LINES_WITHIN };
            unstored.store_by = Some(unstored.store_by.map_or(by, |earlier| earlier.min(by)));
        }
        postponed
    }

    /// The next commit covers everything that was read. Returns whether it has to contain the progress because of postponed lines.
    pub(super) fn take_unstored_cost(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| std::mem::take(&mut process.unstored).has_cost)
    }

    /// No other commit followed in time.
    pub(super) fn store_quiet_lines(&mut self) {
        let Some(process) = self.process.as_mut() else { return };
        let Unstored { end, has_cost, .. } = std::mem::take(&mut process.unstored);
        let mut changes = Vec::new();
        if has_cost && self.turn.is_some() {
            changes.push(self.progress());
        }
        changes.extend(end.map(|(run, end)| Change::JournalOffset(run, end)));
        self.commit_then(changes, AfterCommit::Nothing);
    }
}
