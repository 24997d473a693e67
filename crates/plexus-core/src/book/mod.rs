//! The approval book: making what is asked and answered durable, telling those who wait, and seeing to deadlines. It
//! knows neither sessions nor doors nor who may answer what. It rests on a [`Ledger`] and on `tokio` only, so that
//! `explore/` can run this very source under a scheduler that tries the orders in which things may happen.

mod deadlines;
mod expiry;
mod news;
mod signals;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_protocol::{ApprovalId, ApprovalStatus, Decision, SessionId};
use plexus_store::{ApprovalRow, Change, Committed, Ledger, Open, Refusal, StoreError};
use tokio::time::sleep;

use crate::clock::now;
use crate::kill_point::kill_point;
use crate::metrics::Metrics;

pub(crate) use deadlines::Deadlines;
pub(crate) use news::News;
pub(crate) use signals::{Signals, Topic, next};

/// How long a store that fails is left alone.
const BEFORE_ANOTHER_TRY: Duration = Duration::from_millis(200);

/// The book. What it holds in memory is only who waits for what; the ledger is the truth.
pub(crate) struct Book {
    ledger: Arc<dyn Ledger>,
    metrics: Arc<Metrics>,
    signals: Signals,
    expiry: Deadlines,
}

/// What became of an answer.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// It counts; this was made with it.
    Now(Box<Committed>),
    /// Another one came first; this is how the approval ended.
    Before(Box<ApprovalRow>),
}

impl Book {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, metrics: Arc<Metrics>) -> Self {
        Self { ledger, metrics, signals: Signals::default(), expiry: Deadlines::default() }
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Takes up what an earlier hub left open, and returns it.
    pub(crate) async fn take_up(&self) -> Result<Vec<ApprovalRow>, StoreError> {
        let open = self.ledger.open_approvals(Open::All).await?;
        for row in &open {
            self.expiry.set(row.approval.id, row.approval.expires_at);
        }
        Ok(open)
    }

    /// Makes changes durable. Whoever waits for them is told by [`Book::tell`], which the ledger's observer calls: a
    /// caller that vanishes in between leaves nobody untold of what is durable.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Committed, StoreError> {
        let since = Instant::now();
        let answer = self.ledger.commit(now(), changes).await;
        self.metrics.committed(since.elapsed(), &answer);
        answer
    }

    /// This has become durable.
    pub(crate) fn tell(&self, committed: &Committed) {
        let mut sessions: Vec<SessionId> = committed.events.iter().map(|event| event.session).collect();
        for row in &committed.approvals {
            sessions.push(row.approval.session_id);
            if row.approval.status == ApprovalStatus::Pending {
                self.expiry.set(row.approval.id, row.approval.expires_at);
            } else {
                self.expiry.set(row.approval.id, None);
                self.signals.wake(&Topic::Approval(row.approval.id));
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
    }

    /// Brings an approval to its end, if it is still open, and makes some more durable with it.
    pub(crate) async fn resolve(
        &self,
        approval: ApprovalId,
        status: ApprovalStatus,
        decision: Decision,
        mut more: Vec<Change>,
    ) -> Result<Resolved, StoreError> {
        let decision = Box::new(decision);
        more.insert(0, Change::Resolve { approval, status, decision });
        match self.commit(more).await {
            Ok(made) => Ok(Resolved::Now(Box::new(made))),
            Err(StoreError::Refused(Refusal::AlreadyResolved(row))) => Ok(Resolved::Before(row)),
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of an approval, however long it takes, to pass it on; `None` when there is no such approval.
    ///
    /// That it is passed on is noted before it is: after a crash, an answer that was neither noted nor fetched in time
    /// is known to be lost.
    pub(crate) async fn answer_of(&self, approval: ApprovalId) -> Option<ApprovalRow> {
        let mut signal = self.signals.subscribe(Topic::Approval(approval));
        loop {
            let row = self.held(|| self.ledger.approval(approval)).await?;
            if row.approval.status == ApprovalStatus::Pending {
                next(&mut signal).await;
                continue;
            }
            kill_point("permit", "decided");
            if row.approval.delivered_at.is_none() {
                self.held(|| self.commit(vec![Change::Delivered(approval)])).await;
            }
            kill_point("permit", "noted");
            return Some(row);
        }
    }

    /// Tries until the store can do it: what cannot be stored or read is held, never answered.
    pub(crate) async fn held<T, F>(&self, step: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut held = None;
        loop {
            match step().await {
                Ok(done) => return done,
                Err(error) => {
                    tracing::warn!(%error, "held until the store can be used");
                    held.get_or_insert_with(|| self.metrics.hold());
                    sleep(BEFORE_ANOTHER_TRY).await;
                }
            }
        }
    }
}
