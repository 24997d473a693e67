//! How long turns run, where that is limited: a clock that is kept with the turn, and when it is looked at. It counts while
//! a turn runs and nothing of it waits for an answer.

use std::time::{Duration, SystemTime};

use plexus_protocol::ApprovalStatus;
use plexus_protocol::budget::BudgetLimit;
use plexus_store::Change;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::owner::{Closing, Owner};

/// Time that runs out is looked at halfway each time, as others may draw on the same limit; this much is waited for whole.
const LAST_STRETCH: Duration = Duration::from_secs(2);

/// How long a turn has run that was not counted yet. It stands still while something of the turn waits for an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Clock {
    /// Since when it runs, in milliseconds since 1970: a hub that comes back counts on from there.
    since_ms: Option<u64>,
    uncounted_ms: u64,
}

impl Clock {
    fn run(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    fn stand_still(&mut self, now_ms: u64) {
        if let Some(since) = self.since_ms.take() {
            self.uncounted_ms += now_ms.saturating_sub(since);
        }
    }

    fn runs(&self) -> bool {
        self.since_ms.is_some()
    }

    fn uncounted(&self, now_ms: u64) -> u64 {
        self.uncounted_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// What is to be counted now; it goes on as it was.
    fn take(&mut self, now_ms: u64) -> u64 {
        let runs = self.runs();
        self.stand_still(now_ms);
        if runs {
            self.run(now_ms);
        }
        std::mem::take(&mut self.uncounted_ms)
    }
}

/// What is known of the time limit of the turn in progress.
#[derive(Debug, Default)]
pub(super) struct Time {
    /// The turn that was looked at.
    turn: Option<u64>,
    /// Whether its time is limited.
    limited: bool,
    /// When to look again.
    pub(super) by: Option<Instant>,
}

impl Owner {
    /// Takes note of what the turn waits for, and lets its clock run, or stand still, as it should now.
    pub(super) fn keep_clock(&mut self) {
        let asked = self.asks.values().any(|ask| ask.status == ApprovalStatus::Pending);
        let waits = asked || !self.held.is_empty();
        let Some(turn) = self.turn.as_mut() else { return };
        turn.progress.held = self.held.len();
        let clock = &mut turn.progress.clock;
        let ran = clock.runs();
        if self.time.limited && !waits && turn.progress.asked_for_more.is_none() {
            clock.run(now_ms());
        } else {
            clock.stand_still(now_ms());
        }
        if clock.runs() != ran {
            self.time.turn = None;
        }
    }

    /// The same, with what is to be stored of it.
    pub(super) fn clock_changes(&mut self) -> Option<Change> {
        let runs = |owner: &Self| owner.turn.as_ref().is_some_and(|turn| turn.progress.clock.runs());
        let ran = runs(self);
        self.keep_clock();
        (runs(self) != ran).then(|| self.progress())
    }

    /// What the turn that ends now has run since it was counted last.
    pub(super) fn last_time(&mut self) -> Option<Change> {
        self.time = Time::default();
        let spent = self.turn.as_mut()?.progress.clock.take(now_ms());
        (spent > 0).then(|| Change::Spend(self.row.id, BudgetLimit::WallSecs, spent))
    }

    /// What is known of the time limit may not be so any more.
    pub(super) fn look_at_time_again(&mut self) {
        self.time = Time { turn: None, by: None, limited: self.time.limited };
    }

    /// Finds out how long the turn in progress may run, once for each turn and each change.
    pub(super) async fn look_at_time(&mut self) -> Result<(), Closing> {
        let number = self.turn.as_ref().map(|turn| turn.number);
        if self.time.turn == number {
            return Ok(());
        }
        let (hub, id) = (self.hub.clone(), self.row.id);
        let limits = match number {
            Some(_) => hub.book().held(|| hub.store().budget(id)).await,
            None => Vec::new(),
        };
        let limit = limits.into_iter().find(|row| row.limit == BudgetLimit::WallSecs);
        self.time.limited = limit.is_some();
        let changed = self.clock_changes();
        let clock = self.turn.as_ref().map(|turn| &turn.progress.clock).filter(|clock| clock.runs());
        let left = limit.zip(clock).map(|(row, clock)| row.left().saturating_sub(clock.uncounted(now_ms())));
        let wait =
            left.map(Duration::from_millis).map(|left| if left > LAST_STRETCH { left / 2 } else { left });
        self.time.by = wait.map(|wait| Instant::now() + wait);
        self.time.turn = number;
        self.commit_held(changed.into_iter().collect()).await
    }

    /// Counts the time that the turn has run; where none is left, more is asked for.
    pub(super) async fn on_time(&mut self) -> Result<(), Closing> {
        self.look_at_time_again();
        let Some(turn) = self.turn.as_mut() else { return Ok(()) };
        let spent = turn.progress.clock.take(now_ms());
        let session = self.row.id;
        let spend = Change::Spend(session, BudgetLimit::WallSecs, spent);
        let waits = self.turn.as_ref().is_some_and(|turn| turn.progress.asked_for_more.is_some());
        let mut changes = vec![spend, self.progress()];
        if !waits && self.held.is_empty() {
            changes.push(Change::AskBudget(session));
        }
        let made = self.store_held(changes).await?;
        let Some(held) = made.held.first() else { return Ok(()) };
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.asked_for_more = Some(held.approval);
        }
        self.keep_clock();
        self.commit_held(vec![self.progress()]).await
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_only_while_it_runs_and_nothing_twice() {
        let mut clock = Clock::default();
        clock.run(1_000);
        clock.run(2_000);
        assert_eq!(clock.take(3_000), 2_000);
        clock.stand_still(3_500);
        clock.stand_still(9_000);
        assert_eq!(clock.take(10_000), 500, "it stood still since");
        clock.run(10_000);
        let kept: Clock = serde_json::from_value(serde_json::to_value(&clock).unwrap()).unwrap();
        assert_eq!(kept.clone().take(12_000), 2_000, "the next hub counts on");
    }
}
