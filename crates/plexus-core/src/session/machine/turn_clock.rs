//! The time limit of a turn. A clock, stored with the turn, counts while the turn runs and waits for no answer.

use std::time::{Duration, Instant};

use plexus_protocol::ApprovalStatus;
use plexus_protocol::budget::BudgetLimit;
use plexus_store::{BudgetRow, Change, Committed};
use serde::{Deserialize, Serialize};

use super::{AfterCommit, BudgetUse, Effect, Machine};

/// Other sessions may draw on the same budget, so the rest of the time is checked halfway each time. A rest this short is
/// waited for in one step.
const LAST_STRETCH: Duration = Duration::from_secs(2);

/// The time a turn has run that is not counted yet. The clock stands still while the turn waits for an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Clock {
    /// When it was started, in milliseconds since 1970: the next hub continues from there.
    since_ms: Option<u64>,
    uncounted_ms: u64,
}

impl Clock {
    fn run(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    fn pause(&mut self, now_ms: u64) {
        if let Some(since) = self.since_ms.take() {
            self.uncounted_ms += now_ms.saturating_sub(since);
        }
    }

    fn is_running(&self) -> bool {
        self.since_ms.is_some()
    }

    fn uncounted(&self, now_ms: u64) -> u64 {
        self.uncounted_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// Takes the time to be counted now; the clock continues.
    fn take(&mut self, now_ms: u64) -> u64 {
        let is_running = self.is_running();
        self.pause(now_ms);
        if is_running {
            self.run(now_ms);
        }
        std::mem::take(&mut self.uncounted_ms)
    }
}

/// The known time limit of the running turn.
#[derive(Debug, Default)]
pub(super) struct TimeLimit {
    /// The turn it is known for; `None` when it has to be looked up.
    turn: Option<u64>,
    kind: Limited,
    /// When to count the time.
    pub(super) deadline: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Limited {
    #[default]
    Unlimited,
    Limited,
}

impl TimeLimit {
    /// The limit may have changed: it is looked up again.
    pub(super) fn expire(&mut self) {
        self.turn = None;
        self.deadline = None;
    }
}

impl Machine {
    /// Starts or stops the clock, depending on whether the turn waits for an answer.
    pub(super) fn update_clock(&mut self) {
        let asked = self.approvals.values().any(|open| open.status == ApprovalStatus::Pending);
        let waits = asked || !self.held.is_empty();
        let now = self.now.unix_ms;
        let Some(turn) = self.turn.as_mut() else { return };
        turn.progress.held = self.held.len();
        let clock = &mut turn.progress.clock;
        let ran = clock.is_running();
        if self.time.kind == Limited::Limited && !waits && turn.progress.budget_approval.is_none() {
            clock.run(now);
        } else {
            clock.pause(now);
        }
        if clock.is_running() != ran {
            self.time.turn = None;
        }
    }

    /// The same; returns the change that stores it, if any.
    pub(super) fn update_clock_change(&mut self) -> Option<Change> {
        let is_running =
            |machine: &Self| machine.turn.as_ref().is_some_and(|turn| turn.progress.clock.is_running());
        let ran = is_running(self);
        self.update_clock();
        (is_running(self) != ran).then(|| self.progress())
    }

    /// Counts the rest of the time of a turn that ends now.
    pub(super) fn count_last_time(&mut self) -> Option<Change> {
        self.time = TimeLimit::default();
        let spent = self.turn.as_mut()?.progress.clock.take(self.now.unix_ms);
        (spent > 0).then(|| Change::Spend(self.row.id, BudgetLimit::WallSecs, spent))
    }

    /// Looks up the time limit of the running turn, once for each turn and each change.
    pub(super) fn refresh_time_limit(&mut self) {
        let number = self.turn.as_ref().map(|turn| turn.number);
        if self.time.turn == number {
            return;
        }
        match number {
            Some(_) => self.effects.push(Effect::LoadBudget(BudgetUse::TimeLimit)),
            None => self.on_time_limit(Vec::new()),
        }
    }

    pub(super) fn on_time_limit(&mut self, rows: Vec<BudgetRow>) {
        let budget = rows.into_iter().find(|row| row.limit == BudgetLimit::WallSecs);
        self.time.kind = if budget.is_some() { Limited::Limited } else { Limited::Unlimited };
        let changed = self.update_clock_change();
        let now = self.now;
        let clock = self.turn.as_ref().map(|turn| &turn.progress.clock).filter(|clock| clock.is_running());
        let left =
            budget.zip(clock).map(|(row, clock)| row.left().saturating_sub(clock.uncounted(now.unix_ms)));
        let wait =
            left.map(Duration::from_millis).map(|left| if left > LAST_STRETCH { left / 2 } else { left });
        self.time.deadline = wait.map(|wait| now.instant + wait);
        self.time.turn = self.turn.as_ref().map(|turn| turn.number);
        self.commit(changed.into_iter().collect());
    }

    /// Counts the time that the turn has run. When none is left, the store creates a budget approval.
    pub(super) fn on_time_due(&mut self) {
        self.time.expire();
        let session = self.row.id;
        let Some(turn) = self.turn.as_mut() else { return };
        let spent = turn.progress.clock.take(self.now.unix_ms);
        let waits = turn.progress.budget_approval.is_some() || !self.held.is_empty();
        let mut changes = vec![Change::Spend(session, BudgetLimit::WallSecs, spent), self.progress()];
        if !waits {
            changes.push(Change::AskBudget(session));
        }
        self.commit_then(changes, AfterCommit::TimeCounted);
    }

    pub(super) fn on_time_counted(&mut self, committed: &Committed) {
        let Some(held) = committed.held.first() else { return };
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.budget_approval = Some(held.approval);
        }
        self.update_clock();
        self.commit(vec![self.progress()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_each_moment_once_and_only_while_it_runs() {
        let mut clock = Clock::default();
        clock.run(1_000);
        clock.run(2_000);
        assert_eq!(clock.take(3_000), 2_000);
        clock.pause(3_500);
        clock.pause(9_000);
        assert_eq!(clock.take(10_000), 500, "it was paused");
        clock.run(10_000);
        let kept: Clock = serde_json::from_value(serde_json::to_value(&clock).unwrap()).unwrap();
        assert_eq!(kept.clone().take(12_000), 2_000, "the next hub continues to count");
    }
}
