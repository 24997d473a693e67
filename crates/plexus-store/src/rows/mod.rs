//! The row interface between the domain rules and a backend. A backend reads, inserts, updates and deletes the rows of its
//! open transaction; `crate::domain` decides which rows a change needs and what they contain.
//!
//! The interface has one trait per topic, so that a rule and its tests can name the rows they use. Every method is
//! synchronous: a backend runs a whole commit on one thread.

mod approvals;
mod authority;
mod budgets;
mod hosts;
mod nodes;
mod sessions;
mod templates;
mod turns;

pub(crate) use approvals::{
    ApprovalAndCall, ApprovalRows, ApprovalUpdate, BeforeApproval, CallKey, PreviousAddressee,
};
pub(crate) use authority::{AuthorityRows, LogEntry};
pub(crate) use budgets::{BudgetRows, Share};
pub(crate) use hosts::HostRows;
pub(crate) use nodes::{LeafNode, NewNode, NodeRows};
pub(crate) use sessions::{NewRun, RunUpdate, SessionIdentity, SessionRows, SessionUpdate};
pub(crate) use templates::TemplateRows;
pub(crate) use turns::{EndOfTurn, EventSize, NewFeedEntry, TurnKey, TurnRows, TurnUpdate};

use crate::StoreError;

/// The result of a row operation.
pub(crate) type Stored<T> = Result<T, StoreError>;

/// All rows of a store, inside one transaction.
pub(crate) trait Rows:
    SessionRows + TurnRows + ApprovalRows + BudgetRows + AuthorityRows + NodeRows + TemplateRows + HostRows
{
}

impl<T> Rows for T where
    T: SessionRows
        + TurnRows
        + ApprovalRows
        + BudgetRows
        + AuthorityRows
        + NodeRows
        + TemplateRows
        + HostRows
{
}
