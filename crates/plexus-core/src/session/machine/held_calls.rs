//! A session whose budget is exhausted: its calls are held at the gate until the budget approval is resolved. Then they
//! continue, or the turn is interrupted. The store computes the remaining budget in the commit that counts a call; the time limit
//! of a turn is in `time`.

use std::sync::Arc;

use plexus_claude::{GateAnswer, PreToolUse};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus};
use plexus_store::{
    ApprovalRow, BudgetRow, CallInput, CallRow, Change, Committed, OUTDATED, RunKey, Verdict,
};
use serde_json::Value;

use super::{AfterCommit, Effect, Machine, Next};
use crate::budget_requests::limit_of;
use crate::policy as gate;
use crate::policy::Judge;

/// Whether a turn waits for a budget approval, according to its stored progress.
pub(crate) fn waits_for_budget(progress: &Value) -> bool {
    progress["held"].as_u64() > Some(0) || progress["asked_for_more"].is_string()
}

/// A call held at the gate.
#[derive(Debug)]
pub(super) struct HeldCall {
    row: CallRow,
    seen: CallInput,
    approval: ApprovalId,
}

impl HeldCall {
    /// The held call of a stored row; `None` if the row is not held.
    fn of(row: CallRow) -> Option<Self> {
        let Verdict::Held { approval, input, cwd, mode } = row.verdict.clone() else { return None };
        Some(Self { row, seen: CallInput { input, cwd, mode, rules_version: 0 }, approval })
    }

    pub(super) fn tool_use_id(&self) -> &str {
        &self.row.tool_use_id
    }

    fn at_gate(&self) -> PreToolUse {
        PreToolUse {
            tool_name: self.row.tool_name.clone(),
            tool_use_id: self.row.tool_use_id.clone(),
            input: self.seen.input.clone(),
            cwd: self.seen.cwd.clone(),
            permission_mode: self.seen.mode.clone(),
            agent_id: None,
        }
    }
}

/// A call that is no longer held, and the gate's answer to it.
pub(in crate::session) struct AfterRelease {
    tool_use_id: String,
    request_id: String,
    answer: GateAnswer,
}

impl Machine {
    /// The policies that decide about the calls of this session.
    pub(super) fn judge(&self) -> Arc<Judge> {
        self.shared.policies.judge(&self.lineage, || self.lineage.home(&self.shared.settings))
    }

    /// Loads the calls that a commit has held.
    pub(super) fn load_held(&mut self, committed: &Committed) {
        let held: Vec<String> = committed.held.iter().filter_map(|held| held.tool_use_id.clone()).collect();
        if let Some(process) = self.process.as_ref().filter(|_| !held.is_empty()) {
            self.effects.push(Effect::LoadHeldCalls(process.key, held));
        }
    }

    pub(super) fn on_held_calls(&mut self, rows: Vec<CallRow>) {
        self.remember_held(rows);
        self.update_clock();
        self.commit(vec![self.progress()]);
    }

    /// Remembers the held calls among `rows`. They count as denied until they are released.
    pub(super) fn remember_held(&mut self, rows: Vec<CallRow>) {
        for held in rows.into_iter().filter_map(HeldCall::of) {
            if let Some(call) = self.calls.get_mut(held.tool_use_id()) {
                call.answer =
                    GateAnswer::Deny { reason: "This call waits for a budget approval.".to_owned() };
            }
            self.held.push(held);
        }
    }

    pub(super) fn forget_held(&mut self, key: RunKey) {
        self.held.retain(|held| held.row.key.run != key.run);
    }

    /// A budget approval of this session or of an ancestor was resolved.
    pub(super) fn on_budget_resolved(&mut self, row: &ApprovalRow) {
        let id = row.approval.id;
        let turn_waits = self.turn.as_ref().is_some_and(|turn| turn.progress.budget_approval == Some(id));
        if !turn_waits && !self.held.iter().any(|held| held.approval == id) {
            return;
        }
        match row.approval.status {
            ApprovalStatus::Pending => {}
            // A withdrawn approval means that some of the budget is available again.
            ApprovalStatus::Allowed | ApprovalStatus::Withdrawn => self.release_held(),
            ApprovalStatus::Denied | ApprovalStatus::Expired => self.deny_held(row),
        }
    }

    /// Loads the budget approvals that this session waits for: they may have been resolved while no hub ran, or while this one was cut off.
    pub(super) fn load_budget_approvals(&mut self) {
        let of_turn = self.turn.as_ref().and_then(|turn| turn.progress.budget_approval);
        let mut approvals: Vec<ApprovalId> = Vec::new();
        for id in self.held.iter().map(|held| held.approval).chain(of_turn) {
            if !approvals.contains(&id) {
                approvals.push(id);
            }
        }
        self.effects.extend(approvals.into_iter().map(Effect::LoadBudgetApproval));
    }

    pub(super) fn on_budget_approval_loaded(&mut self, row: Option<ApprovalRow>) {
        match row {
            Some(row) => self.on_budget_resolved(&row),
            None => self.release_held(),
        }
    }

    /// Brings the held calls to the gate again. The store holds those for which the budget is still too small.
    fn release_held(&mut self) {
        self.kill_point("budget", "notified");
        let judge = self.judge();
        let working_dir = self.row.config.working_dir.clone();
        let answered = std::mem::take(&mut self.held).into_iter().map(|held| {
            let call = held.at_gate();
            let answer = gate::decide(&judge, &call, call.cwd.as_deref().unwrap_or(&working_dir));
            (held, answer)
        });
        let mut answered: Vec<(HeldCall, GateAnswer)> = answered.collect();
        answered.iter_mut().for_each(|(held, _)| held.seen.rules_version = judge.version());
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.budget_approval = None;
        }
        self.update_clock();
        self.time.expire();
        self.answer_held(answered, vec![self.progress()]);
    }

    /// Denies the held calls and interrupts the turn.
    fn deny_held(&mut self, row: &ApprovalRow) {
        let field = |name: &str| row.approval.input.get(name).map(Value::to_string).unwrap_or_default();
        let limit = limit_of(row).map_or("limit", BudgetLimit::as_str);
        let why = match row.approval.status {
            ApprovalStatus::Expired => "nobody answered the budget approval in time".to_owned(),
            _ => match row.approval.decision.as_ref().and_then(|decision| decision.message.as_deref()) {
                Some(message) => format!("the budget approval was denied: {message}"),
                None => "the budget approval was denied".to_owned(),
            },
        };
        let (used, granted, name) = (field("used"), field("granted"), &row.approval.session_name);
        let message =
            format!("the {limit} budget of session {name} is exhausted ({used} of {granted}), and {why}");
        let reason = format!("The turn ends here: {message}.");
        let held = std::mem::take(&mut self.held);
        let denied =
            held.into_iter().map(|held| (held, GateAnswer::Deny { reason: reason.clone() })).collect();
        let mut changes = Vec::new();
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.budget_approval = None;
            turn.progress.interrupted = true;
            turn.progress.interrupt_requested = true;
            turn.progress.exhausted_budget = Some(message);
            changes.push(self.progress());
        }
        self.answer_held(denied, changes);
        self.kill_point("budget", "given up");
        self.effects.push(Effect::Then(Next::Interrupt));
    }

    /// Stores the gate's answers to held calls.
    fn answer_held(&mut self, answered: Vec<(HeldCall, GateAnswer)>, mut changes: Vec<Change>) {
        let mut released = Vec::new();
        for (held, answer) in answered {
            let HeldCall { mut row, seen, .. } = held;
            row.verdict = gate::to_verdict(&answer);
            let (tool_use_id, request_id) = (row.tool_use_id.clone(), row.request_id.clone());
            released.push(AfterRelease { tool_use_id, request_id, answer });
            changes.push(Change::Release(Box::new(row), seen));
        }
        self.commit_then(changes, AfterCommit::HeldCallsReleased(released));
    }

    /// Sends the answers to the calls that are no longer held.
    pub(super) fn on_released(&mut self, released: Vec<AfterRelease>, committed: &Committed) {
        self.kill_point("budget", "released");
        for AfterRelease { tool_use_id, request_id, answer } in released {
            if committed.holds(&tool_use_id) {
                continue;
            }
            let line = if committed.is_outdated(&tool_use_id) {
                self.ask_for_outdated(&tool_use_id, &request_id)
            } else {
                let line = plexus_claude::reply_gate(&request_id, &answer);
                if let Some(call) = self.calls.get_mut(&tool_use_id) {
                    call.answer = answer;
                }
                line
            };
            self.enforce_hook_decision(&tool_use_id);
            self.send(line);
        }
        self.load_held(committed);
    }

    /// The permission rules have changed since the gate has judged a call: somebody has to decide about it. Returns the gate's answer.
    pub(super) fn ask_for_outdated(&mut self, tool_use_id: &str, request_id: &str) -> String {
        let answer = GateAnswer::Ask { reason: OUTDATED.to_owned() };
        let line = plexus_claude::reply_gate(request_id, &answer);
        if let Some(call) = self.calls.get_mut(tool_use_id) {
            call.answer = answer;
        }
        // A hook may have denied the call meanwhile.
        self.enforce_hook_decision(tool_use_id);
        line
    }

    /// Whether the process was started under another cost budget than there is now.
    pub(super) fn cost_budget_changed(&self, rows: &[BudgetRow]) -> bool {
        let Some(run) = self.process.as_ref().map(|process| process.key.run) else { return false };
        let now = cost_budget(rows).map(|row| (run, row.granted));
        now != self.last_progress.cost_limit
    }
}

/// The cost budget among the budgets of a session.
pub(in crate::session) fn cost_budget(rows: &[BudgetRow]) -> Option<&BudgetRow> {
    rows.iter().find(|row| row.limit == BudgetLimit::CostUsd)
}

/// What is left of a cost budget, as Claude Code reads it.
pub(in crate::session) fn dollars_left(budget: &BudgetRow) -> String {
    let left = budget.left().max(1);
    format!("{}.{:06}", left / 1_000_000, left % 1_000_000)
}
