//! Fills a data directory with history before a hub starts: finished turns with their texts, and approvals that a person answered. It writes
//! through the store in large commits, because a hub would need hours for as much.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use plexus_protocol::{ApprovalStatus, Event, SessionId, SessionName, UnixSeconds};
use plexus_store::{Change, Durability, Ledger as _, RunKey, RunState, SqlStore, TurnStatus, samples};
use serde_json::json;

use crate::report::progress;

/// Events of one turn, and turns of one session.
const EVENTS_PER_TURN: usize = 1_000;
const TURNS_PER_SESSION: usize = 10;
/// How long ago the history starts.
const AGE_SECS: u64 = 30 * 24 * 60 * 60;

/// The amount of stored history.
#[derive(Args, Clone, Copy)]
pub(crate) struct HistorySize {
    /// Answered approvals in the history
    #[arg(long, default_value_t = 100_000)]
    pub(crate) approvals: usize,

    /// Events in the history, in addition to those of the approvals
    #[arg(long, default_value_t = Self::EVENTS)]
    pub(crate) events: usize,

    /// Mean bytes of text in each of these events; they have half as many to one and a half times as many
    #[arg(long, default_value_t = 2000)]
    pub(crate) event_bytes: usize,
}

impl HistorySize {
    /// The events of a complete run.
    pub(crate) const EVENTS: usize = 1_000_000;

    fn turns(self) -> usize {
        self.events.div_ceil(EVENTS_PER_TURN).max(1)
    }

    /// A history of one turn, which is as large as each turn of this history.
    pub(crate) fn one_turn(self) -> Self {
        let turns = self.turns();
        Self { approvals: self.approvals / turns, events: self.events / turns, ..self }
    }

    /// The number of sessions with history.
    pub(crate) fn sessions(self) -> usize {
        self.turns().div_ceil(TURNS_PER_SESSION)
    }

    /// Settings under which a hub accepts as many sessions, and more.
    pub(crate) fn config(self) -> String {
        format!("durability = \"full\"\nlimits.sessions = {}\n", self.sessions() + 1_000)
    }
}

impl std::fmt::Display for HistorySize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { approvals, events, event_bytes } = self;
        write!(f, "{approvals} approvals and {events} events of {event_bytes} bytes")
    }
}

/// Creates the store in a data directory. Returns the sessions, oldest first.
pub(crate) async fn fill(data_dir: &Path, size: HistorySize) -> anyhow::Result<Vec<SessionId>> {
    progress(&format!("writing {size}"));
    let store = SqlStore::sqlite(&data_dir.join("plexus.db"), Durability::Normal)?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() - AGE_SECS;
    let turns = size.turns();
    let mut sessions = Vec::new();
    for number in 0..size.sessions() {
        let name = SessionName::try_from(format!("old-{number}")).map_err(anyhow::Error::msg)?;
        let new = samples::session(name.clone());
        let key = RunKey { session: new.id, run: 1 };
        sessions.push(new.id);
        let run = Change::StartRun { key, state: RunState::Starting, token_hash: None };
        let first = number * TURNS_PER_SESSION;
        let at = |turn: usize| start + AGE_SECS * turn as u64 / turns as u64;
        store.commit(at(first), vec![Change::CreateSession(Box::new(new)), run]).await?;
        for turn in first..turns.min(first + TURNS_PER_SESSION) {
            // The remainders are spread over the turns.
            let share = |all: usize| all * (turn + 1) / turns - all * turn / turns;
            let turn_size =
                HistorySize { approvals: share(size.approvals), events: share(size.events), ..size };
            let number = (turn - first + 1) as u64;
            store.commit(at(turn), one_turn(key, &name, number, at(turn), turn_size)).await?;
            if (turn + 1).is_multiple_of(100) {
                progress(&format!("{} of {turns} turns are written", turn + 1));
            }
        }
        store.commit(at(first + TURNS_PER_SESSION), vec![Change::EndRun(key, json!({"code": 0}))]).await?;
    }
    Ok(sessions)
}

/// A finished turn: its texts, then its approvals.
fn one_turn(key: RunKey, name: &SessionName, turn: u64, at: UnixSeconds, size: HistorySize) -> Vec<Change> {
    let session = key.session;
    let text = |number: usize| {
        // Texts of one size would fit badly into the pages of the database. A prime spreads the sizes evenly.
        let bytes = size.event_bytes / 2 + number * 7919 % (size.event_bytes + 1);
        let text = format!("{number:x<bytes$}");
        Event::Content { text, parent_tool_use_id: None, truncated: None }
    };
    let prompt = format!("Check part {turn}");
    let mut changes = vec![Change::StartTurn { session, turn, prompt, woken_to: None }];
    changes.extend((0..size.events).map(|number| Change::Event(session, turn, Arc::new(text(number)))));
    for number in 0..size.approvals {
        let mut new = samples::approval(key, name.clone(), &format!("toolu_{turn}_{number}"), at);
        new.turn = turn;
        let approval = new.approval.id;
        let decision = Box::new(samples::allow());
        changes.push(Change::Ask(Box::new(new)));
        changes.push(Change::Resolve { approval, status: ApprovalStatus::Allowed, decision });
    }
    let (status, last) = (TurnStatus::Complete, Box::new(text(size.events)));
    changes.push(Change::EndTurn { session, turn, status, last, summary: None, cost_usd: 0.01 });
    changes
}
