//! Commits: the only way to write. A commit is published when it is durable, and wakes the tasks that wait for it.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_protocol::claudecode::Channel;
use plexus_protocol::{ApprovalId, ApprovalStatus, SessionId};
use plexus_store::{Change, Changed, Committed, Ledger, StoreError};
use tokio::time::sleep;

use crate::answers::Answers;
use crate::runtime::now;
use crate::signals::{Signals, Topic};

/// The pause before another try when the store is unavailable.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Measures commits.
pub trait Meter: Send + Sync {
    /// A commit was accepted or refused after this time.
    fn committed(&self, after: Duration, outcome: &Result<Committed, StoreError>);
    /// Counts one waiting change or answer until the returned value is dropped.
    fn hold(&self) -> Box<dyn Any + Send>;
}

/// Writes to the ledger, and the tasks that wait for it.
pub struct Commits {
    ledger: Arc<dyn Ledger>,
    meter: Arc<dyn Meter>,
    signals: Signals,
    answers: Answers,
}

impl Commits {
    /// Writes to this ledger.
    pub fn new(ledger: Arc<dyn Ledger>, meter: Arc<dyn Meter>) -> Self {
        Self { ledger, meter, signals: Signals::default(), answers: Answers::default() }
    }

    /// The tasks that wait, by topic.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The tasks that wait for the answer to an approval.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    pub(crate) fn ledger(&self) -> &dyn Ledger {
        &*self.ledger
    }

    /// Commits changes durably. The observer of the ledger calls [`Commits::publish`], so waiting tasks are notified even if
    /// the caller is dropped meanwhile.
    ///
    /// # Errors
    /// When the store refuses the changes, or is unavailable.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<Committed, StoreError> {
        let since = Instant::now();
        let over_mcp = |change: &Change| match change {
            Change::Ask(asked) if asked.channel == Channel::Mcp => Some(asked.approval.id),
            _ => None,
        };
        let expected: Vec<ApprovalId> = changes.iter().filter_map(over_mcp).collect();
        expected.iter().for_each(|approval| self.answers.expect(*approval));
        let outcome = self.ledger.commit(now(), changes).await;
        if outcome.is_err() {
            expected.iter().for_each(|approval| self.answers.expect_no_more(*approval));
        }
        self.meter.committed(since.elapsed(), &outcome);
        outcome
    }

    /// Wakes the tasks that wait for something in this commit.
    pub fn publish(&self, committed: &Committed) {
        let mut sessions: Vec<SessionId> = committed.events.iter().map(|event| event.session).collect();
        for row in &committed.approvals {
            sessions.push(row.approval.session_id);
            if row.approval.status != ApprovalStatus::Pending {
                self.answers.pass(row);
            }
        }
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            self.signals.wake(&Topic::Session(session));
        }
        for entry in &committed.feed {
            self.signals.wake(&Topic::Feed(entry.to.clone()));
        }
        for token in &committed.ended_tokens {
            self.signals.wake(&Topic::Token(token.to_string()));
        }
        if !committed.feed.is_empty() {
            self.signals.wake(&Topic::AnyFeed);
        }
        self.signals.wake(&Topic::AnyCommit);
    }

    /// Wakes the tasks that wait for something that other hubs have committed.
    pub fn publish_remote(&self, changed: &Changed) {
        let resolved = changed.approvals.iter().filter(|(_, approval)| !approval.is_pending);
        resolved.for_each(|(id, _)| self.answers.wake(*id));
        let mut sessions = changed.sessions.clone();
        sessions.extend(changed.approvals.values().map(|approval| approval.session));
        sessions.into_iter().for_each(|session| self.signals.wake(&Topic::Session(session)));
        changed.ended_tokens.iter().for_each(|token| self.signals.wake(&Topic::Token(token.clone())));
        changed.feed.iter().for_each(|to| self.signals.wake(&Topic::Feed(to.clone())));
        if !changed.feed.is_empty() {
            self.signals.wake(&Topic::AnyFeed);
        }
        self.signals.wake(&Topic::AnyCommit);
    }

    /// Wakes all waiting tasks: other hubs may have committed anything.
    pub fn publish_unknown(&self) {
        self.answers.wake_all();
        self.signals.wake_all();
    }

    /// Retries a step until the store succeeds. Until then the change is held and nothing is answered.
    pub async fn retry<T, F>(&self, step: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut held = None;
        loop {
            match step().await {
                Ok(done) => return done,
                Err(error) => {
                    tracing::warn!(%error, "waiting until the store is available");
                    held.get_or_insert_with(|| self.meter.hold());
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
