//! How questions end: answers on their way to the child, and questions that nobody waits for any more. A call that has its
//! result frees its keys; one that ran though it should not have is told from here.

use plexus_claude::GateAnswer;
use plexus_protocol::{ApprovalId, ApprovalStatus, Decision};
use plexus_store::{ApprovalRow, Change, RunKey};
use serde_json::{Value, json};

use super::asks::Call;
use super::owner::{Closing, Owner};
use super::reading::Batch;
use crate::approvals::permission_result;
use crate::gate;
use crate::kill_point::kill_point;

impl Owner {
    /// An approval of this session came to its end: a child on its control channel is told.
    pub(super) async fn on_resolved(&mut self, row: ApprovalRow) -> Result<(), Closing> {
        let mut changes = Vec::new();
        if self.note_answer(&row) {
            changes.push(self.progress());
        }
        changes.extend(self.clock_changes());
        if row.approval.decision.as_ref().is_some_and(|decision| decision.mode.is_some()) {
            changes.push(Change::Configure(self.row.id, Box::new(self.row.config.clone())));
        }
        self.commit_held(std::mem::take(&mut changes)).await?;
        kill_point("answer", "noted");
        self.deliver(&row, &mut changes).await?;
        kill_point("answer", "sent");
        self.commit_held(changes).await?;
        kill_point("answer", "delivered");
        self.pass_on_note(&row).await
    }

    /// What was said with an allow reaches the child as a message of its own: an allow has no room for words.
    async fn pass_on_note(&mut self, row: &ApprovalRow) -> Result<(), Closing> {
        let said = row.approval.decision.as_ref().and_then(|decision| decision.message.as_deref());
        if let Some(said) = said
            && row.approval.status == ApprovalStatus::Allowed
            && self.turn.as_ref().is_some_and(|turn| turn.number == row.turn)
        {
            let note = format!("Note on the approved {} call: {said}", row.approval.tool_name);
            // The turn is in progress, so there is nothing to be refused.
            let _ = self.send_message(note).await?;
        }
        Ok(())
    }

    /// Remembers how a question ended; says whether that ends the turn.
    pub(super) fn note_answer(&mut self, row: &ApprovalRow) -> bool {
        if let Some(ask) = self.asks.values_mut().find(|ask| ask.approval == row.approval.id) {
            ask.status = row.approval.status;
            ask.decision.clone_from(&row.approval.decision);
        }
        if row.approval.status == ApprovalStatus::Allowed
            && let Some(mode) = row.approval.decision.as_ref().and_then(|decision| decision.mode)
        {
            // The child will say that it is in this mode.
            self.row.config.permission_mode = mode;
        }
        let interrupts = row.approval.decision.as_ref().is_some_and(|decision| decision.interrupt);
        match self.turn.as_mut() {
            Some(turn) if interrupts && turn.number == row.turn => {
                turn.progress.interrupted = true;
                true
            }
            _ => false,
        }
    }

    /// Passes an answer on to a child that waits on its control channel. Over MCP the permit itself waits for it.
    pub(super) async fn deliver(
        &mut self,
        row: &ApprovalRow,
        changes: &mut Vec<Change>,
    ) -> Result<(), Closing> {
        let Some(run) = &self.run else { return Ok(()) };
        let withdrawn = row.approval.status == ApprovalStatus::Withdrawn;
        if let Some(request_id) = &row.request_id
            && run.key.run == row.run
            && !withdrawn
        {
            let line = plexus_claude::reply_ask(request_id, &permission_result(row));
            self.send(&line).await?;
            changes.push(Change::Delivered(row.approval.id));
        }
        Ok(())
    }

    /// A permit over HTTP whose client never came back for the answer, be there one or not.
    pub(super) async fn on_permit_lost(&mut self, approval: ApprovalId) -> Result<(), Closing> {
        // What the child wrote meanwhile may show that it is past this question.
        self.read_all().await?;
        let Some(ask) = self.asks.values().find(|ask| ask.approval == approval) else { return Ok(()) };
        let mut changes = vec![withdraw(approval, "the agent did not come back for the answer")];
        let is_ours = self.run.as_ref().is_some_and(|live| live.key.run == ask.run);
        let turn = self.turn.as_mut().filter(|_| is_ours);
        let waits = turn.is_some();
        if let Some(turn) = turn {
            turn.progress.permit_lost = true;
            changes.push(self.progress());
        }
        self.commit_held(changes).await?;
        if waits {
            // Older CLIs wait for good on a stream they have lost; an interrupt is what sets them free.
            let line = plexus_claude::interrupt(&format!("plexus-interrupt-{}", uuid::Uuid::new_v4()));
            self.send(&line).await?;
        }
        Ok(())
    }

    /// The child no longer wants to know.
    pub(super) fn on_cancel(&mut self, request_id: &str, batch: &mut Batch) {
        let found = self.asks.iter().find(|(_, ask)| ask.request_id.as_deref() == Some(request_id));
        let Some((tool_use_id, ask)) = found else { return };
        let key = RunKey { session: self.row.id, run: ask.run };
        batch.changes.push(withdraw(ask.approval, "the agent withdrew the question"));
        batch.changes.push(Change::ReleaseKeys(key, tool_use_id.clone()));
        let tool_use_id = tool_use_id.clone();
        self.asks.remove(&tool_use_id);
    }

    /// What was said to a call, by the gate and by whoever was asked, for those who read the conversation.
    pub(super) fn decision_of(&self, tool_use_id: &str) -> Option<Value> {
        let gate = self.calls.get(tool_use_id).map(|call| gate::to_verdict(&call.answer));
        let approval = self.asks.get(tool_use_id).map(|ask| {
            let mut approval = json!({"id": ask.approval, "status": ask.status});
            if let Some(decision) = &ask.decision {
                approval["by"] = json!(decision.by);
                approval["right"] = json!(decision.right);
                approval["message"] = json!(decision.message);
                approval["updated_input"] = json!(decision.updated_input);
            }
            approval
        });
        (gate.is_some() || approval.is_some()).then(|| json!({"gate": gate, "approval": approval}))
    }

    /// A call has its result: its keys are free again. Says what is wrong with it, if it should not have run.
    pub(super) fn on_tool_result(
        &mut self,
        key: RunKey,
        tool_use_id: &str,
        is_error: bool,
        changes: &mut Vec<Change>,
    ) -> Option<&'static str> {
        let call = self.calls.remove(tool_use_id);
        self.held.retain(|held| held.tool_use_id() != tool_use_id);
        let ask = self.asks.remove(tool_use_id);
        if let Some(ask) = &ask {
            // Does nothing where it has its answer.
            changes.push(withdraw(ask.approval, "the call came to its end without an answer"));
        }
        if call.is_some() || ask.is_some() {
            changes.push(Change::ReleaseKeys(key, tool_use_id.to_owned()));
        }
        if is_error || !self.row.config.loopback_enabled {
            return None;
        }
        match (call, ask.map(|ask| ask.status)) {
            (None, _) => Some("ran without having been at the gate"),
            (Some(Call { answer: GateAnswer::Deny { .. }, .. }), _) => Some("ran though the gate denied it"),
            (_, Some(ApprovalStatus::Pending)) => Some("ran while its question was open"),
            (_, Some(ApprovalStatus::Denied | ApprovalStatus::Expired)) => Some("ran though it was denied"),
            _ => None,
        }
    }

    /// Nobody in this run waits for answers any more: every open question ends, and every key is free.
    pub(super) fn withdraw_all(&mut self, key: RunKey, message: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        for (tool_use_id, ask) in self.asks.extract_if(|_, ask| ask.run == key.run) {
            changes.push(withdraw(ask.approval, message));
            changes.push(Change::ReleaseKeys(key, tool_use_id));
        }
        self.forget_held(key);
        for (tool_use_id, _) in self.calls.extract_if(|_, call| call.run == key.run) {
            changes.push(Change::ReleaseKeys(key, tool_use_id));
        }
        changes
    }
}

fn withdraw(approval: ApprovalId, message: &str) -> Change {
    let decision = Box::new(Decision::withdrawal(message));
    Change::ResolveIfPending { approval, status: ApprovalStatus::Withdrawn, decision }
}
