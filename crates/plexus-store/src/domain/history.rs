//! What stored approvals and audit entries say about the past. Their inputs may be large and are skipped, not parsed into
//! values.

use plexus_protocol::audit::AuditKind;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, Decider, Right, SessionId, UnixSeconds};
use serde::Deserialize;

use crate::{ApprovalSpan, AuditFact, SpanEnd};

/// The parts of a stored approval that this module reads.
#[derive(Deserialize)]
struct Question {
    id: ApprovalId,
    session_id: SessionId,
    tool_name: String,
    created_at: UnixSeconds,
    asked_of: AskedOf,
    #[serde(default)]
    passed: Vec<Step>,
}

/// The parts of an escalation.
#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    from: Option<AskedOf>,
    at: UnixSeconds,
}

/// The parts of a decision.
#[derive(Deserialize)]
struct Answer {
    by: Decider,
    right: Right,
}

/// The parts of an audit entry.
#[derive(Deserialize)]
struct Entry {
    at: UnixSeconds,
    kind: AuditKind,
    status: String,
    by: Decider,
    right: Option<Right>,
    session_id: Option<SessionId>,
    approval_id: Option<ApprovalId>,
    tool_name: Option<String>,
    asked_of: Option<AskedOf>,
    #[serde(default)]
    passed: Vec<Step>,
    asked_at: Option<UnixSeconds>,
}

/// How a stored approval ended.
pub(crate) struct StoredEnd<'a> {
    pub(crate) at: UnixSeconds,
    pub(crate) status: ApprovalStatus,
    /// The decision as JSON.
    pub(crate) decision: &'a str,
}

/// The span of an approval as it is stored; `None` if it cannot be read.
pub(crate) fn approval_span(question: &str, end: Option<&StoredEnd<'_>>) -> Option<ApprovalSpan> {
    let Question { id, session_id, tool_name, created_at, asked_of, passed } =
        serde_json::from_str(question).ok()?;
    let resolved = match end {
        None => None,
        Some(StoredEnd { at, status, decision }) => {
            let Answer { by, right } = serde_json::from_str(decision).ok()?;
            Some(SpanEnd { at: *at, status: *status, by, right })
        }
    };
    Some(ApprovalSpan {
        approval: id,
        session: session_id,
        tool_name,
        asked_at: created_at,
        passed: steps(passed),
        asked_of,
        resolved,
    })
}

/// What an audit entry says about answers; `None` if it says nothing, or cannot be read.
pub(crate) fn audit_fact(entry: &str) -> Option<AuditFact> {
    let entry: Entry = serde_json::from_str(entry).ok()?;
    match entry.kind {
        AuditKind::Decision => Some(AuditFact::Decision(ApprovalSpan {
            approval: entry.approval_id?,
            session: entry.session_id?,
            tool_name: entry.tool_name.unwrap_or_default(),
            asked_at: entry.asked_at.unwrap_or(entry.at),
            passed: steps(entry.passed),
            asked_of: entry.asked_of?,
            resolved: Some(SpanEnd {
                at: entry.at,
                status: serde_json::from_value(entry.status.into()).ok()?,
                by: entry.by,
                right: entry.right?,
            }),
        })),
        AuditKind::Gate => Some(AuditFact::Gate {
            at: entry.at,
            session: entry.session_id,
            status: match entry.status.as_str() {
                "allow" => ApprovalStatus::Allowed,
                "deny" => ApprovalStatus::Denied,
                _ => return None,
            },
        }),
        AuditKind::Token | AuditKind::Policy | AuditKind::Session | AuditKind::Template | AuditKind::Host => {
            None
        }
    }
}

fn steps(passed: Vec<Step>) -> Vec<(AskedOf, UnixSeconds)> {
    passed.into_iter().filter_map(|step| Some((step.from?, step.at))).collect()
}
