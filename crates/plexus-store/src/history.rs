//! Reads of past activity: when sessions worked, how long approvals were open, and who answered them. Each read is bounded,
//! and none returns prompts or inputs, which may be large.

use async_trait::async_trait;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, Decider, Right, SessionId, UnixSeconds};

use crate::{StoreError, TurnStatus};

/// A period of time. Its end is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its first second.
    pub from: UnixSeconds,
    /// The second after its last.
    pub to: UnixSeconds,
}

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTurn {
    /// Its session.
    pub session: SessionId,
    /// Its number.
    pub turn: u64,
    /// How it ended.
    pub status: TurnStatus,
    /// When it started.
    pub started_at: UnixSeconds,
    /// When it ended.
    pub ended_at: UnixSeconds,
    /// Its cost in dollars.
    pub cost_usd: f64,
}

/// How long an approval was open, and who was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalSpan {
    /// The approval.
    pub approval: ApprovalId,
    /// Its session.
    pub session: SessionId,
    /// The tool.
    pub tool_name: String,
    /// When it was requested.
    pub asked_at: UnixSeconds,
    /// Its earlier addressees, and when it left each of them.
    pub passed: Vec<(AskedOf, UnixSeconds)>,
    /// Its last addressee.
    pub asked_of: AskedOf,
    /// How it was resolved; `None` while it is pending.
    pub resolved: Option<SpanEnd>,
}

/// How an approval was resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEnd {
    /// When.
    pub at: UnixSeconds,
    /// Its final status.
    pub status: ApprovalStatus,
    /// Who resolved it.
    pub by: Decider,
    /// By which right.
    pub right: Right,
}

/// An answer, from an entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditFact {
    /// An approval was resolved.
    Decision(ApprovalSpan),
    /// The gate answered a call by rule.
    Gate {
        /// When.
        at: UnixSeconds,
        /// The session of the call.
        session: Option<SessionId>,
        /// `Allowed` or `Denied`.
        status: ApprovalStatus,
    },
}

/// The answers of a period, and whether they are complete.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditFacts {
    /// Newest first.
    pub facts: Vec<AuditFact>,
    /// If the period has more entries than one read returns: the time of the oldest entry that was read.
    pub complete_from: Option<UnixSeconds>,
}

/// A limit on a read of the audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditBound {
    /// The maximum number of entries.
    pub entries: u64,
    /// The maximum size of all entries together.
    pub bytes: u64,
}

/// The number of calls of one session in one part of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCount {
    /// The part, from 0.
    pub part: u64,
    /// The session.
    pub session: SessionId,
    /// How many calls the gate saw.
    pub calls: u64,
}

/// A session and its creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionParent {
    /// The session, deleted or not.
    pub id: SessionId,
    /// Its creator.
    pub answers_to: AskedOf,
}

/// The part of a store that reads past activity.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// The turns that ended at or after the start of the period and had started before its end, the latest end first, at
    /// most `limit`.
    async fn ended_turns(&self, period: Period, limit: u64) -> Result<Vec<EndedTurn>, StoreError>;
    /// The approvals that were resolved in the period and are still stored, the latest first, at most `limit`.
    async fn resolved_approvals(&self, period: Period, limit: u64) -> Result<Vec<ApprovalSpan>, StoreError>;
    /// The pending approvals, oldest first.
    async fn open_approval_spans(&self) -> Result<Vec<ApprovalSpan>, StoreError>;
    /// The answers in the audit entries of the period.
    async fn audit_facts(&self, period: Period, bound: AuditBound) -> Result<AuditFacts, StoreError>;
    /// The calls that the gate saw in the period and that are still stored, counted by session and by part of `part_secs`
    /// seconds. Of more than `limit` calls, only the latest are counted.
    async fn call_counts(
        &self,
        period: Period,
        part_secs: u64,
        limit: u64,
    ) -> Result<Vec<CallCount>, StoreError>;
    /// Every session with its creator, deleted ones included, oldest first.
    async fn session_parents(&self) -> Result<Vec<SessionParent>, StoreError>;
}
