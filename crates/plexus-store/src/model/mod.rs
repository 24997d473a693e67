//! The plain data a store keeps: sessions and what happens in them, what is asked, by whom things may be done, what is told,
//! and what may be removed.

mod approvals;
mod authority;
mod feed;
mod old;
mod sessions;

pub use approvals::{
    ApprovalRow, BudgetRow, CallInput, CallRow, Held, NewApproval, Open, PermitStream, Tally,
};
pub use authority::{
    AuditCheck, AuditFilter, AuditFrom, NewRule, RuleAuthority, RuleChange, RuleRow, TokenRow,
};
pub use feed::{FeedKind, FeedRow};
pub use old::{FinishedRun, OldRecords, Removable};
pub use sessions::{
    EventRow, EventsOfTurn, LivingSession, NewSession, RunKey, RunRow, RunState, SessionConfig, SessionRow,
    TurnRow, TurnState, TurnStatus,
};
