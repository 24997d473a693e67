//! The rows of budgets, and of the sessions that wait for a budget approval.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, SessionId};

use super::Stored;
use crate::BudgetRow;

/// Budgets and the sessions that wait for more.
pub(crate) trait BudgetRows {
    /// Whether any session has a budget.
    fn any_budget(&mut self) -> Stored<bool>;
    /// What a session was granted of one limit.
    fn share(&self, session: SessionId, limit: BudgetLimit) -> Stored<Option<Share>>;
    /// The sessions that have a grant of this limit, deleted ones included.
    fn sessions_with(&self, limit: BudgetLimit) -> Stored<Vec<SessionId>>;
    /// Inserts or replaces a grant. [`Share::deleted`] is not stored here: it is the session's.
    fn put_share(&mut self, share: &Share) -> Stored<()>;

    /// The budget approvals that this session waits for.
    fn budget_waits(&self, session: SessionId) -> Stored<Vec<ApprovalId>>;
    /// Whether any session waits for this budget approval.
    fn is_waited_for(&self, approval: ApprovalId) -> Stored<bool>;
    /// The session waits for this budget approval; it may do so already.
    fn insert_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()>;
    /// The session stops waiting for this budget approval.
    fn delete_budget_wait(&mut self, session: SessionId, approval: ApprovalId) -> Stored<()>;
    /// Every session stops waiting for this budget approval.
    fn delete_budget_waits(&mut self, approval: ApprovalId) -> Stored<()>;
}

/// A grant of one limit to one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) row: BudgetRow,
    /// Whether the sessions above were notified that most of it is used.
    pub(crate) notified: bool,
    /// Whether the session is deleted.
    pub(crate) deleted: bool,
}
