//! The user's hooks: a callback of the child becomes durable, then its commands run, and their answer becomes durable before it is sent.
//! A recovered hub sends the stored answer, or runs the commands again if there is none. The gate decides about every call beside
//! the hooks and knows nothing of them.

use plexus_claude::{GateAnswer, HookAnswer, HookCallback, HookDecision, HookEvent, SentId, reply_hook};
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::{Decider, JournalRange};
use plexus_store::{Change, RunKey};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lines::Batch;
use super::{Effect, Machine, Next};
use crate::hooks::{HookOutcome, HookRun, commands_for};

/// The most callbacks of a child that wait at a time. Claude Code has far fewer; another child could start commands without end.
const MAX_OPEN: usize = 64;

/// A callback that the child waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenHook {
    event: HookEvent,
    subject: String,
    tool_use_id: Option<String>,
    /// Its line in the journal, which has its input.
    at: JournalRange,
    /// The answer, which may not have been sent.
    answer: Option<HookAnswer>,
}

impl OpenHook {
    fn callback(&self) -> HookCallback {
        let Self { event, subject, tool_use_id, .. } = self.clone();
        HookCallback { event, subject, tool_use_id }
    }
}

impl Machine {
    /// The child calls the user's hooks. Without a command for this callback, the answer decides nothing and is not stored.
    pub(super) fn on_hook(
        &mut self,
        key: RunKey,
        request_id: &str,
        callback: HookCallback,
        batch: &mut Batch,
    ) {
        let event = callback.event;
        if commands_for(self.row.config.hooks.as_ref(), &callback).is_empty() {
            return batch.before.push(reply_hook(request_id, event, &HookAnswer::default()));
        }
        if self.progress_mut().hooks.len() >= MAX_OPEN {
            let why = format!("more than {MAX_OPEN} callbacks wait for hooks");
            return self.on_invalid_hook(request_id, event, &why, batch);
        }
        self.ensure_turn(key.run, &mut batch.changes);
        let HookCallback { event, subject, tool_use_id } = callback;
        let open = OpenHook { event, subject, tool_use_id, at: batch.line, answer: None };
        self.progress_mut().hooks.insert(request_id.to_owned(), open);
        batch.after.hooks.push(request_id.to_owned());
    }

    /// The hooks cannot be run for a callback: it is answered as if they had failed.
    pub(super) fn on_invalid_hook(
        &mut self,
        request_id: &str,
        event: HookEvent,
        why: &str,
        batch: &mut Batch,
    ) {
        let reason = format!("Plexus could not run the hooks, so this is denied: {why}");
        batch.before.push(reply_hook(request_id, event, &HookAnswer::of_failure(event, reason)));
        let data = json!({"event": event.as_str(), "status": "failed", "reason": why});
        batch.changes.push(self.system_event("hook", data));
    }

    /// Runs the commands of a durable callback, unless the child has withdrawn it.
    pub(super) fn run_hooks(&mut self, request_id: String) {
        let Some(open) = self.progress_mut().hooks.get(&request_id).cloned() else { return };
        let config = &self.row.config;
        let key = RunKey { session: self.row.id, run: open.at.run };
        let run = HookRun {
            session: self.row.id,
            event: open.event,
            commands: commands_for(config.hooks.as_ref(), &open.callback()),
            working_dir: config.working_dir.clone(),
            env: config.env.clone(),
            journal: plexus_agent::RunDir::new(self.shared.settings.run_dir(key)).journal(),
            at: open.at,
        };
        self.effects.push(Effect::RunHooks(request_id, Box::new(run)));
    }

    /// The commands of a callback have ended.
    pub(super) fn on_hooks_ended(&mut self, request_id: &str, outcome: HookOutcome) {
        let HookOutcome { answer, decided_by, failures } = outcome;
        let Some(open) = self.progress_mut().hooks.get_mut(request_id) else { return };
        open.answer = Some(answer.clone());
        let open = open.clone();
        let mut changes = Vec::new();
        let about =
            json!({"event": open.event.as_str(), "tool_name": open.subject, "tool_use_id": open.tool_use_id});
        for failure in failures {
            let mut data = about.clone();
            data["status"] = json!("failed");
            data["command"] = json!(failure.command);
            data["reason"] = json!(failure.why);
            changes.push(self.system_event("hook", data));
        }
        if let Some(decision) = &answer.decision {
            let (status, reason) = named(open.event, decision);
            let mut data = about;
            data["status"] = json!(status);
            data["command"] = json!(decided_by);
            data["reason"] = json!(reason);
            changes.push(self.system_event("hook", data));
            changes.extend(self.hook_audit(&open, decision, decided_by.as_deref()));
        }
        if let Some(decision) = &answer.decision {
            self.remember_decision(&open, decision);
        }
        changes.push(self.progress());
        self.kill_point("hook", "ended");
        self.commit(changes);
        self.kill_point("hook", "stored");
        self.answer_hook(request_id, open.event, &answer);
        self.kill_point("hook", "answered");
        self.restart_stall_timer();
    }

    /// Sends a stored answer. The callback is removed with the next commit; a reply that is already in the outbox is not repeated.
    fn answer_hook(&mut self, request_id: &str, event: HookEvent, answer: &HookAnswer) {
        self.progress_mut().hooks.remove(request_id);
        self.send(reply_hook(request_id, event, answer));
        if event == HookEvent::PreToolUse && matches!(answer.decision, Some(HookDecision::Stop { .. })) {
            self.effects.push(Effect::Then(Next::Interrupt));
        }
    }

    /// Remembers what a hook decided about a call, until the call has a result.
    fn remember_decision(&mut self, open: &OpenHook, decision: &HookDecision) {
        let (HookEvent::PreToolUse, Some(tool_use_id)) = (open.event, &open.tool_use_id) else { return };
        if let (HookDecision::Stop { .. }, Some(turn)) = (decision, self.turn.as_mut()) {
            turn.progress.interrupted = true;
            turn.progress.interrupt_requested = true;
        }
        let decisions = &mut self.progress_mut().hook_decisions;
        // An approval does not replace a denial.
        if matches!(decisions.get(tool_use_id), None | Some(HookDecision::Ask { .. })) {
            decisions.insert(tool_use_id.clone(), decision.clone());
        }
        self.enforce_hook_decision(tool_use_id);
    }

    /// A call that a hook denied counts as denied by the gate: a request for approval of it is denied, and a result of it ends the
    /// session. Called whenever the gate's answer to the call is set.
    pub(super) fn enforce_hook_decision(&mut self, tool_use_id: &str) {
        let decision = self.progress_mut().hook_decisions.get(tool_use_id).cloned();
        if let Some(HookDecision::Block { reason } | HookDecision::Stop { reason }) = decision
            && let Some(call) = self.calls.get_mut(tool_use_id)
        {
            call.answer = GateAnswer::Deny { reason };
        }
    }

    /// Why a hook requires approval of a call. No rule replaces that approval.
    pub(super) fn asked_by_hook(&mut self, tool_use_id: &str) -> Option<String> {
        match self.progress_mut().hook_decisions.get(tool_use_id) {
            Some(HookDecision::Ask { reason }) => Some(format!("A hook requires approval: {reason}")),
            _ => None,
        }
    }

    /// The audit entry of a call or prompt that a hook denied.
    fn hook_audit(&self, open: &OpenHook, decision: &HookDecision, command: Option<&str>) -> Option<Change> {
        let (HookDecision::Block { reason } | HookDecision::Stop { reason }) = decision else { return None };
        if !matches!(open.event, HookEvent::PreToolUse | HookEvent::UserPromptSubmit) {
            return None;
        }
        let call = open.tool_use_id.as_ref().and_then(|id| self.calls.get(id));
        let detail = json!({"hook": open.event.as_str(), "command": command});
        Some(Change::Audit(Box::new(AuditEntry {
            session_id: Some(self.row.id),
            session_name: Some(self.row.name.clone()),
            tool_use_id: open.tool_use_id.clone(),
            tool_name: Some(open.subject.clone()).filter(|tool| !tool.is_empty()),
            digest: call.map(|call| call.digest.clone()),
            cwd: call.and_then(|call| call.cwd.clone()),
            message: Some(format!("denied by hook: {reason}")),
            detail: detail.as_object().cloned(),
            ..AuditEntry::new(self.now.unix_secs(), AuditKind::Gate, "deny", Decider::Hub)
        })))
    }

    /// The child withdrew a callback: its commands end.
    pub(super) fn cancel_hook(&mut self, request_id: &str) {
        if self.progress_mut().hooks.remove(request_id).is_some() {
            self.effects.push(Effect::CancelHooks(vec![request_id.to_owned()]));
        }
    }

    /// The process has ended: no one waits for its hooks.
    pub(super) fn cancel_all_hooks(&mut self) {
        let open = std::mem::take(&mut self.progress_mut().hooks);
        if !open.is_empty() {
            self.effects.push(Effect::CancelHooks(open.into_keys().collect()));
        }
    }

    /// Continues with the callbacks that an earlier hub left.
    pub(super) fn recover_hooks(&mut self, key: RunKey, replied: impl Fn(&SentId) -> bool) {
        let decided: Vec<String> = self.progress_mut().hook_decisions.keys().cloned().collect();
        for tool_use_id in decided {
            self.enforce_hook_decision(&tool_use_id);
        }
        let waits = |request_id: &String, open: &OpenHook| {
            open.at.run == key.run && !replied(&SentId::Reply(request_id.clone()))
        };
        self.progress_mut().hooks.retain(|request_id, open| waits(request_id, open));
        for (request_id, open) in self.progress_mut().hooks.clone() {
            match &open.answer {
                Some(answer) => self.answer_hook(&request_id, open.event, answer),
                None => self.run_hooks(request_id),
            }
        }
    }
}

/// The name of a decision in events, and its reason.
fn named(event: HookEvent, decision: &HookDecision) -> (&'static str, &str) {
    match decision {
        HookDecision::Ask { reason } => ("asked", reason),
        HookDecision::Stop { reason } => ("stopped", reason),
        HookDecision::Block { reason } => match event {
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit => ("denied", reason),
            HookEvent::PostToolUse | HookEvent::Stop | HookEvent::SubagentStop => ("blocked", reason),
        },
    }
}
