//! Loads the state of a session that an earlier hub left, and attaches to its process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use plexus_agent::{Keeper, RunDir};
use plexus_claude::SentId;
use plexus_protocol::{Event, SessionId};
use plexus_store::{RunRow, RunState, Store, StoreError};

use super::child::Child;
use super::machine::{Input, RecoveredRun, Snapshot, unread_files};
use super::owner::{Closing, Owner};
use crate::attachments;
use crate::processes::run_process;

/// The pause before another try.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How many events of the running turn are read to find the latest text of each agent.
const LATEST_EVENTS: u64 = 100;

/// Why a session cannot be recovered now.
#[derive(Debug, thiserror::Error)]
enum RecoveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the store has no keeper for the run")]
    NoKeeper,
    #[error("cannot use the run directory: {0}")]
    Files(#[from] std::io::Error),
}

/// The latest events of a turn, oldest first. An unreadable one is skipped.
async fn latest_events(store: &dyn Store, id: SessionId, turn: u64) -> Result<Vec<Event>, StoreError> {
    let count = store.event_count(id, turn).await?;
    let (mut from, mut events) = (count.saturating_sub(LATEST_EVENTS), Vec::new());
    while from < count {
        let page = store.events(id, turn, from, count - from).await?;
        let Some(last) = page.last() else { break };
        from = last.seq + 1;
        events.extend(page.into_iter().filter_map(|row| serde_json::from_value(row.event.value()).ok()));
    }
    Ok(events)
}

impl Owner {
    /// Continues where the earlier hub stopped.
    pub(super) async fn recover(&mut self) -> Result<(), Closing> {
        let snapshot = loop {
            match self.snapshot().await {
                Ok(snapshot) => break snapshot,
                Err(error) => {
                    tracing::warn!(session = %self.machine.id(), %error, "cannot recover a session; trying \
                        again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        };
        self.step(Input::Recovered(Box::new(snapshot))).await
    }

    async fn snapshot(&mut self) -> Result<Snapshot, RecoveryError> {
        let parts = self.parts.clone();
        let (store, id) = (&parts.store, self.machine.id());
        let turn = store.turn(id, self.machine.latest_turn()).await?;
        let events = match &turn {
            Some(turn) if turn.ended_at.is_none() => latest_events(&**store, id, turn.turn).await?,
            _ => Vec::new(),
        };
        let mut files = HashMap::new();
        for turn in turn.iter().filter(|turn| turn.ended_at.is_none()) {
            for node in unread_files(&turn.progress) {
                if let Some(found) = store.node(node).await? {
                    files.insert(node, attachments::stored(&found.content));
                }
            }
        }
        let mut runs = Vec::new();
        for row in store.open_runs().await?.into_iter().filter(|run| run.key.session == id) {
            let (calls, approvals) =
                (store.calls_without_result(row.key).await?, store.approvals_without_result(row.key).await?);
            let sent = match row.state {
                RunState::Running | RunState::Ending => self.attach(&row)?,
                RunState::Starting | RunState::External | RunState::Ended => HashSet::new(),
            };
            runs.push(RecoveredRun { row, calls, approvals, sent });
        }
        Ok(Snapshot { turn, events, runs, unread_files: files })
    }

    /// Attaches to the process of a run. A process that has ended meanwhile is handled like any other that ends.
    fn attach(&mut self, run: &RunRow) -> Result<HashSet<SentId>, RecoveryError> {
        let dir = RunDir::new(self.parts.settings.run_dir(run.key));
        let process = run.process.clone().ok_or(RecoveryError::NoKeeper)?;
        let identity = run_process::from_stored(process);
        let keeper = Keeper::attach(&identity)?;
        match &keeper {
            Some(_) => self.parts.keepers.insert(self.machine.id(), identity.pid),
            None => dir.restore()?,
        }
        let (child, sent) = Child::open(run.key, dir, keeper, run.journal_offset, &self.parts.watch)?;
        self.child = Some(child);
        Ok(sent)
    }
}
