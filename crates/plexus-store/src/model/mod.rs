//! The plain data of a store: sessions, approvals, authority, templates, feed entries, and rows that can be removed.

mod approvals;
mod authority;
mod feed;
mod old;
mod sessions;
mod templates;

pub use approvals::{
    ApprovalRow, BudgetRow, CallIds, CallInput, CallRow, HeldForBudget, NewApproval, OpenFilter,
    PermitStream, Tally, Verdict,
};
pub use authority::{
    AuditCheck, AuditFilter, AuditFrom, NewRule, RuleAuthority, RuleChange, RuleRow, RulesInForce, TokenKey,
    TokenRow,
};
pub(crate) use feed::FeedColumns;
pub use feed::{BudgetNotice, FeedEntry, FeedKind, FeedRow, Resolution};
pub use old::{FinishedRun, OldRecords, Removable};
pub use sessions::{
    EventJson, EventRow, EventsOfTurn, NewSession, OpenCall, RunKey, RunProcess, RunRow, RunState,
    SessionConfig, SessionRow, SessionWithState, TurnRow, TurnState, TurnStatus, UnfinishedCall,
};
pub use templates::TemplateRow;
