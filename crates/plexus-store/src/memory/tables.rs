//! The tables of the store in memory.

use plexus_protocol::arbor::NodeSummary;
use plexus_protocol::audit::AuditEntry;
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, NodeId, SessionId, TemplateName, TreeId, UnixSeconds};
use serde_json::Value;

use super::table::Table;
use crate::rows::TurnKey;
use crate::{
    ApprovalRow, BudgetRow, CallRow, EventRow, FeedRow, PermitStream, RuleRow, RunKey, RunRow, SessionRow,
    TemplateRow, TokenRow, TurnRow,
};

/// All tables.
#[derive(Default)]
pub(crate) struct Tables {
    pub(super) sessions: Table<SessionId, Session>,
    pub(super) runs: Table<RunKey, Run>,
    pub(super) turns: Table<TurnKey, TurnRow>,
    pub(super) events: Table<EventKey, EventRow>,
    pub(super) feed: Table<u64, FeedRow>,
    pub(super) positions: Table<PositionKey, u64>,
    pub(super) approvals: Table<ApprovalId, StoredApproval>,
    /// By the number of the feed entry that asked them.
    pub(super) previous_addressees: Table<u64, Previous>,
    pub(super) calls: Table<u64, Call>,
    pub(super) permit_streams: Table<String, PermitStream>,
    pub(super) budgets: Table<BudgetKey, Budget>,
    pub(super) budget_waits: Table<BudgetWait, ()>,
    pub(super) rules: Table<u64, Rule>,
    pub(super) tokens: Table<u64, Token>,
    pub(super) templates: Table<TemplateName, TemplateRow>,
    pub(crate) audit: Table<u64, Entry>,
    pub(super) trees: Table<TreeId, Tree>,
    pub(super) nodes: Table<NodeId, StoredNode>,
    /// The nodes in the order of their creation.
    pub(super) node_order: Table<u64, NodeId>,
}

#[derive(Clone)]
pub(super) struct Session {
    /// Its place in the order of creation.
    pub(super) ordinal: usize,
    pub(super) row: SessionRow,
}

#[derive(Clone)]
pub(super) struct Run {
    pub(super) row: RunRow,
    pub(super) token_hash: Option<String>,
    pub(super) ended_at: Option<UnixSeconds>,
    pub(super) files: Files,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    Kept,
    Removed,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey {
    pub(super) turn: TurnKey,
    pub(super) seq: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PositionKey {
    pub(super) reader: String,
    pub(super) turn: TurnKey,
}

/// Whether a call or an approval still holds its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKeyState {
    Held,
    Released,
}

#[derive(Clone)]
pub(super) struct StoredApproval {
    pub(super) row: ApprovalRow,
    pub(super) key: CallKeyState,
}

#[derive(Clone)]
pub(super) struct Previous {
    pub(super) key: String,
    pub(super) approval: ApprovalId,
    pub(super) may_still_decide: bool,
}

#[derive(Clone)]
pub(super) struct Call {
    pub(super) row: CallRow,
    pub(super) at: UnixSeconds,
    pub(super) key: CallKeyState,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BudgetKey {
    pub(super) session: SessionId,
    pub(super) limit: BudgetLimit,
}

#[derive(Clone)]
pub(super) struct Budget {
    pub(super) row: BudgetRow,
    pub(super) notified: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BudgetWait {
    pub(super) session: SessionId,
    pub(super) approval: ApprovalId,
}

#[derive(Clone)]
pub(super) struct Rule {
    pub(super) row: RuleRow,
    pub(super) revoked_at: Option<UnixSeconds>,
}

#[derive(Clone)]
pub(super) struct Token {
    pub(super) row: TokenRow,
    pub(super) hash: String,
    pub(super) revoked_at: Option<UnixSeconds>,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(super) hash: String,
    pub(crate) entry: AuditEntry,
    /// The entry as JSON: the text that the hash covers.
    pub(super) text: String,
}

#[derive(Clone, Copy)]
pub(super) struct Tree {
    /// Its place in the order of creation.
    pub(super) ordinal: usize,
    pub(super) root: NodeId,
    pub(super) created_at: UnixSeconds,
}

#[derive(Clone)]
pub(super) struct StoredNode {
    pub(super) ordinal: u64,
    pub(super) tree: TreeId,
    pub(super) summary: NodeSummary,
    pub(super) content: Value,
    pub(super) uuid: Option<String>,
}

/// Applies a method to every table.
macro_rules! every_table {
    ($tables:expr, $method:ident) => {{
        $tables.sessions.$method();
        $tables.runs.$method();
        $tables.turns.$method();
        $tables.events.$method();
        $tables.feed.$method();
        $tables.positions.$method();
        $tables.approvals.$method();
        $tables.previous_addressees.$method();
        $tables.calls.$method();
        $tables.permit_streams.$method();
        $tables.budgets.$method();
        $tables.budget_waits.$method();
        $tables.rules.$method();
        $tables.tokens.$method();
        $tables.templates.$method();
        $tables.audit.$method();
        $tables.trees.$method();
        $tables.nodes.$method();
        $tables.node_order.$method();
    }};
}

impl Tables {
    /// How many permission rules were created and revoked so far.
    pub(super) fn count_rule_changes(&self) -> u64 {
        self.rules.values().map(|rule| 1 + u64::from(rule.revoked_at.is_some())).sum()
    }

    /// Keeps the writes of the current transaction.
    pub(super) fn commit(&mut self) {
        every_table!(self, commit);
    }

    /// Undoes the writes of the current transaction.
    pub(super) fn roll_back(&mut self) {
        every_table!(self, roll_back);
    }
}
