//! The plain data a store keeps: sessions and what happens in them, what is asked, by whom things may be done, what is told,
//! and what may be removed.

mod approvals;
mod authority;
mod feed;
mod old;
mod sessions;

pub use approvals::{
    ApprovalRow, BudgetRow, CallInput, CallRow, Held, NewApproval, Open, PermitStream, Tally, Verdict,
};
pub use authority::{
    AuditCheck, AuditFilter, AuditFrom, NewRule, RuleAuthority, RuleChange, RuleRow, TokenKey, TokenRow,
};
pub(crate) use feed::FeedColumns;
pub use feed::{BudgetNotice, FeedEntry, FeedKind, FeedRow, Resolution};
pub use old::{FinishedRun, OldRecords, Removable};
pub use sessions::{
    EventRow, EventsOfTurn, LivingSession, NewSession, RunKey, RunProcess, RunRow, RunState, SessionConfig,
    SessionRow, TurnRow, TurnState, TurnStatus,
};
