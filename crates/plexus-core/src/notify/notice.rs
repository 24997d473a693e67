//! The content of a notification: a title and a text for people, and all data as JSON for programs. Text from a child
//! is truncated and escaped here, before any program gets it.

use plexus_protocol::{Approval, ApprovalKind, MAX_TEXT_BYTES, SessionId, shorten};
use plexus_store::{BudgetNotice, TurnStatus};
use serde_json::{Value, json};

use crate::summary::{about, line};
use plexus_book::now;

/// A finished turn.
pub(super) struct FinishedTurn<'a> {
    pub(super) session: SessionId,
    pub(super) turn: u64,
    pub(super) status: TurnStatus,
    pub(super) summary: Option<&'a str>,
}

/// The session of a notification.
#[derive(Debug)]
pub(super) struct NoticeSession {
    /// Its name.
    pub(super) name: String,
    /// Its path as the operator sees it.
    pub(super) path: String,
}

/// One notification.
#[derive(Debug)]
pub(super) struct Notice {
    /// `approval`, `turn` or `limit`.
    pub(super) kind: &'static str,
    /// The path of the session it is about, as the operator sees it.
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
    pub(super) fn approval(approval: &Approval) -> Self {
        let name = approval.session_label();
        let title = match approval.kind {
            ApprovalKind::Tool => format!("{name} wants to use {}", approval.tool_name),
            ApprovalKind::Question => format!("{name} asks a question"),
            ApprovalKind::Plan => format!("{name} shows a plan"),
            ApprovalKind::Budget => format!("{name} needs more budget"),
        };
        let text = line(about(&approval.input).unwrap_or_default());
        let open_secs = now().saturating_sub(approval.created_at);
        let data = json!({"type": "approval", "open_secs": open_secs, "approval": approval});
        Self { kind: "approval", session: name.to_owned(), title: line(&title), text, data }
    }

    /// A turn finished.
    pub(super) fn turn(ended: &FinishedTurn<'_>, about: &NoticeSession) -> Self {
        let FinishedTurn { session, turn, status, summary } = ended;
        let mut result = json!(summary);
        shorten(&mut result, MAX_TEXT_BYTES);
        let status = json!(status);
        let status = status.as_str().unwrap_or("failed");
        let text = line(result.as_str().unwrap_or_default());
        let NoticeSession { name, path } = about;
        let data = json!({
            "type": "turn", "session_id": session, "session_name": name, "session_path": path, "turn": turn,
            "status": status, "result": result,
        });
        Self { kind: "turn", session: path.clone(), title: format!("{path}: turn {status}"), text, data }
    }

    /// A budget runs low.
    pub(super) fn limit(budget: &BudgetNotice, about: &NoticeSession) -> Self {
        let mut data = budget.to_json();
        data["type"] = json!("limit");
        data["session_path"] = json!(about.path);
        let title = format!("{}: budget {} almost used up", about.path, budget.limit.as_str());
        let text = format!("{} of {} used, {} left", budget.used, budget.granted, budget.left);
        Self { kind: "limit", session: about.path.clone(), title, text, data }
    }
}
