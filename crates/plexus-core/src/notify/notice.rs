//! The content of a notification: a title and a text for people, and all data as JSON for programs. Text from a child
//! is truncated and escaped here, before any program gets it.

use plexus_protocol::{ApprovalKind, MAX_TEXT_BYTES, SessionId, shorten};
use plexus_store::{ApprovalRow, BudgetNotice, TurnStatus};
use serde_json::{Value, json};

use crate::view::{self, about, line};
use plexus_book::now;

/// A finished turn.
pub(super) struct FinishedTurn<'a> {
    pub(super) session: SessionId,
    pub(super) turn: u64,
    pub(super) status: TurnStatus,
    pub(super) summary: Option<&'a str>,
}

/// One notification.
#[derive(Debug)]
pub(super) struct Notice {
    /// `approval`, `turn` or `limit`.
    pub(super) kind: &'static str,
    /// The session it is about.
    pub(super) session: String,
    /// A title of a few words.
    pub(super) title: String,
    /// The text, in one line.
    pub(super) text: String,
    /// All data, as JSON.
    pub(super) data: Value,
}

impl Notice {
    /// An approval has been open for some time.
    pub(super) fn approval(row: ApprovalRow) -> Self {
        let approval = view::approval(row, MAX_TEXT_BYTES);
        let name = approval.session_name.to_string();
        let title = match approval.kind {
            ApprovalKind::Tool => format!("{name} wants to use {}", approval.tool_name),
            ApprovalKind::Question => format!("{name} asks a question"),
            ApprovalKind::Plan => format!("{name} shows a plan"),
            ApprovalKind::Budget => format!("{name} needs more budget"),
        };
        let text = line(about(&approval.input).unwrap_or_default());
        let open_secs = now().saturating_sub(approval.created_at);
        let data = json!({"type": "approval", "open_secs": open_secs, "approval": approval});
        Self { kind: "approval", session: name, title: line(&title), text, data }
    }

    /// A turn finished.
    pub(super) fn turn(ended: &FinishedTurn<'_>, name: &str) -> Self {
        let FinishedTurn { session, turn, status, summary } = ended;
        let mut result = json!(summary);
        shorten(&mut result, MAX_TEXT_BYTES);
        let status = json!(status);
        let status = status.as_str().unwrap_or("failed");
        let text = line(result.as_str().unwrap_or_default());
        let data = json!({
            "type": "turn", "session_id": session, "session_name": name, "turn": turn, "status": status,
            "result": result,
        });
        Self { kind: "turn", session: name.to_owned(), title: format!("{name}: turn {status}"), text, data }
    }

    /// A budget runs low.
    pub(super) fn limit(budget: &BudgetNotice, name: &str) -> Self {
        let mut data = budget.to_json();
        data["type"] = json!("limit");
        let title = format!("{name}: budget {} almost used up", budget.limit.as_str());
        let text = format!("{} of {} used, {} left", budget.used, budget.granted, budget.left);
        Self { kind: "limit", session: name.to_owned(), title, text, data }
    }
}
