//! The lifecycle of a turn. A session has one turn at a time, and each turn ends once.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{Event, title_of};
use serde_json::Value;

use super::{Commit, feed, no_such};
use crate::rows::{SessionUpdate, Stored, TurnKey, TurnUpdate};
use crate::{FeedEntry, Refusal, TurnStatus};

/// How a turn ends.
pub(super) struct Ending<'a> {
    pub(super) status: TurnStatus,
    pub(super) last: &'a Event,
    pub(super) summary: Option<&'a str>,
    pub(super) cost_usd: f64,
}

impl Commit<'_> {
    pub(super) fn start_turn(&mut self, key: TurnKey, prompt: &str, woken_to: Option<u64>) -> Stored<()> {
        let TurnKey { session, turn } = key;
        let row = self.existing_session(session)?;
        let latest = self.rows.turn(TurnKey { session, turn: row.latest_turn })?;
        let is_running = latest.is_some_and(|latest| latest.status == TurnStatus::Running);
        if is_running || turn != row.latest_turn + 1 {
            return Err(Refusal::TurnInProgress(row.latest_turn).into());
        }
        self.rows.insert_turn(key, prompt, self.at)?;
        // The hub's own prompt, which wakes a session, is no title.
        if row.title.is_none()
            && woken_to.is_none()
            && let Some(title) = title_of(prompt)
        {
            self.rows.update_session(session, SessionUpdate::Title(&title))?;
        }
        if row.archived_at.is_some() {
            self.rows.update_session(session, SessionUpdate::ArchivedAt(None))?;
        }
        let woken_to = row.woken_to.max(woken_to.unwrap_or(0));
        self.rows.update_session(session, SessionUpdate::LatestTurn { turn, woken_to })?;
        self.spend(session, BudgetLimit::Turns, 1)
    }

    pub(super) fn bind_turn(&mut self, key: TurnKey, run: u32, prompt_uuid: &str) -> Stored<()> {
        let updated = self.rows.update_turn(key, TurnUpdate::Bound { run, prompt_uuid })?;
        updated.then_some(()).ok_or_else(|| no_such(key.session))
    }

    pub(super) fn progress(&mut self, key: TurnKey, progress: &Value) -> Stored<()> {
        let updated = self.rows.update_turn(key, TurnUpdate::Progress(progress))?;
        updated.then_some(()).ok_or_else(|| no_such(key.session))
    }

    pub(super) fn end_turn(&mut self, key: TurnKey, ending: &Ending<'_>) -> Stored<()> {
        let Ending { status, last, summary, cost_usd } = *ending;
        if self.rows.turn(key)?.is_none_or(|turn| turn.status != TurnStatus::Running) {
            return Ok(());
        }
        let session = self.session(key.session)?;
        self.rows
            .update_turn(key, TurnUpdate::Ended { status, at: self.at, head: session.head, cost_usd })?;
        self.event(key, last)?;
        self.rows.update_session(session.id, SessionUpdate::CostUsd(session.cost_usd + cost_usd))?;
        self.stop_waiting_for_budget(session.id)?;
        if let Some(cost) = BudgetLimit::CostUsd.units(cost_usd) {
            self.spend(session.id, BudgetLimit::CostUsd, cost)?;
        }
        for to in feed::supervisors(&*self.rows, session.id)? {
            let (turn, summary) = (key.turn, summary.map(str::to_owned));
            self.feed(to, session.id, FeedEntry::Finished { turn, status, summary })?;
        }
        Ok(())
    }
}
