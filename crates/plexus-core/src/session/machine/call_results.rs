//! Results of calls. A result without an error means that the call ran. If it never reached the gate, was denied or has an open approval,
//! it bypassed the gate, and `lines` stops the session.

use plexus_claude::GateAnswer;
use plexus_protocol::ApprovalStatus;
use plexus_store::{Change, RunKey};

use super::Machine;
use super::answers::withdraw;
use super::approvals::Call;

impl Machine {
    /// Handles the result of a call: its id can be used again, and its open approval is withdrawn. Returns how the call bypassed the
    /// gate if its result is a success.
    pub(super) fn on_tool_result(
        &mut self,
        key: RunKey,
        tool_use_id: &str,
        changes: &mut Vec<Change>,
    ) -> Option<&'static str> {
        let call = self.calls.remove(tool_use_id);
        self.progress_mut().hook_decisions.remove(tool_use_id);
        self.held.retain(|held| held.tool_use_id() != tool_use_id);
        let open = self.approvals.remove(tool_use_id);
        if let Some(open) = &open {
            // Has no effect on a resolved approval.
            changes.push(withdraw(open.id, "the call finished without an answer"));
        }
        if call.is_some() || open.is_some() {
            changes.push(Change::ReleaseKeys(key, tool_use_id.to_owned()));
        }
        if !self.row.config.loopback_enabled {
            return None;
        }
        match (call, open.map(|open| open.status)) {
            (None, _) => Some("ran without passing the gate"),
            (Some(Call { answer: GateAnswer::Deny { .. }, .. }), _) => {
                Some("ran although the gate denied it")
            }
            (_, Some(ApprovalStatus::Pending)) => Some("ran while its approval was open"),
            (_, Some(ApprovalStatus::Denied | ApprovalStatus::Expired)) => Some("ran although it was denied"),
            _ => None,
        }
    }
}
