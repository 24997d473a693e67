//! Resolves approvals: delivers answers to the child, and withdraws approvals that the child no longer waits for.

use plexus_agent::TIMING;
use plexus_protocol::claudecode::PermissionMode;
use plexus_protocol::{ApprovalId, ApprovalStatus, Decision};
use plexus_store::{ApprovalRow, Change, RunKey};
use serde_json::{Value, json};

use super::Machine;
use super::lines::Batch;
use crate::attachments::Attachments;
use crate::policy as gate;
use crate::reply_to_child::permission_result;

/// An approval of a call that has no result yet.
#[derive(Debug)]
pub(super) struct OpenApproval {
    pub(super) id: ApprovalId,
    pub(super) digest: String,
    pub(super) status: ApprovalStatus,
    /// The decision, once there is one.
    pub(super) decision: Option<Decision>,
    pub(super) request_id: Option<String>,
    pub(super) run: u32,
}

/// How the outcome of an approval affects the running turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnEffect {
    Interrupts,
    None,
}

impl Machine {
    /// An approval of this session was resolved: sends the answer to a child on its control channel.
    pub(super) fn on_resolved(&mut self, row: ApprovalRow) {
        tracing::trace!(target: TIMING, mark = "answer_taken", id = %row.approval.id);
        let mut changes = Vec::new();
        let effect = self.apply_answer(&row);
        let sets_mode = mode_set_by(&row).is_some();
        if sets_mode {
            self.note_mode_applied(row.approval.id);
            changes.push(Change::Configure(self.row.id, Box::new(self.row.config.clone())));
        }
        if sets_mode || effect == TurnEffect::Interrupts {
            changes.push(self.progress());
        }
        changes.extend(self.update_clock_change());
        self.commit(changes);
        self.kill_point("answer", "noted");
        let delivered = self.deliver(&row);
        self.kill_point("answer", "sent");
        self.commit(delivered.into_iter().collect());
        self.kill_point("answer", "delivered");
        self.send_note(&row);
    }

    /// An allow has no room for a message: the message of an allow reaches the child as a message of its own.
    fn send_note(&mut self, row: &ApprovalRow) {
        let message = row.approval.decision.as_ref().and_then(|decision| decision.message.as_deref());
        if let Some(message) = message
            && row.approval.status == ApprovalStatus::Allowed
            && self.turn.as_ref().is_some_and(|turn| turn.number == row.turn)
        {
            let note = format!("Note on the allowed {} call: {message}", row.approval.tool_name);
            // A turn that was interrupted meanwhile needs no note.
            let _ = self.add_message(note, &Attachments::default());
        }
    }

    /// Records how an approval ended, and returns how that affects the running turn.
    pub(super) fn apply_answer(&mut self, row: &ApprovalRow) -> TurnEffect {
        if let Some(open) = self.approvals.values_mut().find(|open| open.id == row.approval.id) {
            open.status = row.approval.status;
            open.decision.clone_from(&row.approval.decision);
        }
        if let Some(mode) = mode_set_by(row) {
            self.row.config.permission_mode = mode;
        }
        let interrupts = row.approval.decision.as_ref().is_some_and(|decision| decision.interrupt);
        match self.turn.as_mut() {
            Some(turn) if interrupts && turn.number == row.turn => {
                turn.progress.interrupted = true;
                TurnEffect::Interrupts
            }
            _ => TurnEffect::None,
        }
    }

    /// Notes that the mode of an answer is stored, so that recovery does not set it again. Forgets calls that have a result.
    fn note_mode_applied(&mut self, approval: ApprovalId) {
        let waiting: Vec<ApprovalId> = self.approvals.values().map(|open| open.id).collect();
        let applied = &mut self.progress_mut().modes_applied;
        applied.retain(|id| waiting.contains(id));
        applied.push(approval);
    }

    /// Sends an answer to a child that waits on its control channel. Over MCP the request itself waits for it.
    pub(super) fn deliver(&mut self, row: &ApprovalRow) -> Option<Change> {
        let request_id = row.request_id.as_ref()?;
        let process = self.process.as_ref()?;
        if process.key.run != row.run || row.approval.status == ApprovalStatus::Withdrawn {
            return None;
        }
        let line = plexus_claude::reply_permission(request_id, &permission_result(row));
        self.send(line);
        Some(Change::Delivered(row.approval.id))
    }

    /// The client of a request over HTTP never came back for the answer.
    pub(super) fn on_permit_lost_read(&mut self, approval: ApprovalId) {
        let Some(open) = self.approvals.values().find(|open| open.id == approval) else { return };
        let mut changes =
            vec![withdraw(approval, "the agent disconnected and did not return for the answer")];
        let is_own = self.process.as_ref().is_some_and(|process| process.key.run == open.run);
        let waits = match self.turn.as_mut().filter(|_| is_own) {
            Some(turn) => {
                turn.progress.permit_lost = true;
                changes.push(self.progress());
                true
            }
            None => false,
        };
        self.commit(changes);
        if waits {
            // Older versions of Claude Code wait forever on a lost stream; an interrupt frees them.
            let id = format!("plexus-interrupt-{}", uuid::Uuid::new_v4());
            self.send(plexus_claude::interrupt(&id));
        }
    }

    /// The child withdrew its request.
    pub(super) fn on_cancel(&mut self, request_id: &str, batch: &mut Batch) {
        self.cancel_hook(request_id);
        let withdrawn = |_: &String, open: &mut OpenApproval| open.request_id.as_deref() == Some(request_id);
        for (tool_use_id, open) in self.approvals.extract_if(withdrawn) {
            let key = RunKey { session: self.row.id, run: open.run };
            batch.changes.push(withdraw(open.id, "the agent withdrew the request"));
            batch.changes.push(Change::ReleaseKeys(key, tool_use_id));
        }
    }

    /// What was decided about a call, by the gate and by a person or agent, for readers of the conversation.
    pub(super) fn decision_of(&self, tool_use_id: &str) -> Option<Value> {
        let gate = self.calls.get(tool_use_id).map(|call| gate::to_verdict(&call.answer));
        let approval = self.approvals.get(tool_use_id).map(|open| {
            let mut approval = json!({"id": open.id, "status": open.status});
            if let Some(decision) = &open.decision {
                approval["by"] = json!(decision.by);
                approval["right"] = json!(decision.right);
                approval["message"] = json!(decision.message);
                approval["updated_input"] = json!(decision.updated_input);
            }
            approval
        });
        (gate.is_some() || approval.is_some()).then(|| json!({"gate": gate, "approval": approval}))
    }
}

pub(super) fn withdraw(approval: ApprovalId, message: &str) -> Change {
    let decision = Box::new(Decision::withdrawal(message));
    Change::ResolveIfPending { approval, status: ApprovalStatus::Withdrawn, decision }
}

/// The mode that an answer sets. The child will report it.
pub(super) fn mode_set_by(row: &ApprovalRow) -> Option<PermissionMode> {
    let allowed = row.approval.status == ApprovalStatus::Allowed;
    row.approval.decision.as_ref().filter(|_| allowed).and_then(|decision| decision.mode)
}
