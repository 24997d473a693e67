//! The reply to a child whose call was decided: it runs, perhaps with an edited input, or the child reads why it does not run.

use plexus_claude::PermissionResult;
use plexus_protocol::ApprovalStatus;
use plexus_protocol::claudecode::PermissionMode;
use plexus_store::ApprovalRow;
use serde_json::{Value, json};

/// The mode change that accompanies an approved plan, or a call whose decider chose a mode. It applies to this session only; nothing is written to settings.
fn set_mode(mode: PermissionMode) -> Value {
    json!({"type": "setMode", "mode": mode.as_str(), "destination": "session"})
}

/// The result of a resolved approval for the child. The input is always taken from the store.
pub(crate) fn permission_result(row: &ApprovalRow) -> PermissionResult {
    let decision = row.approval.decision.as_ref();
    let message = decision.and_then(|decision| decision.message.clone());
    let deny = |message: String| PermissionResult::Deny {
        message,
        interrupt: decision.is_some_and(|d| d.interrupt),
    };
    match row.approval.status {
        ApprovalStatus::Allowed => PermissionResult::Allow {
            updated_input: decision
                .and_then(|decision| decision.updated_input.clone())
                .unwrap_or_else(|| row.approval.input.clone()),
            updated_permissions: decision
                .and_then(|decision| decision.mode)
                .into_iter()
                .map(set_mode)
                .collect(),
        },
        ApprovalStatus::Denied => deny(message.unwrap_or_else(|| "This call was denied.".to_owned())),
        ApprovalStatus::Expired => deny(
            "Nobody answered in time, so this call did not run. This is not a denial: you may try it again."
                .to_owned(),
        ),
        ApprovalStatus::Withdrawn | ApprovalStatus::Pending => {
            deny(message.unwrap_or_else(|| "This approval request was withdrawn.".to_owned()))
        }
    }
}
