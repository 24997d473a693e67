//! What a session does that has used up what it was given: its calls wait at the gate, and go on, or the turn is
//! interrupted, when the question for more is answered. Whether something is left is for the store to say, in the commit
//! that counts it; how long a turn runs is in `time`.

use plexus_claude::{GateAnswer, PreToolUse};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus};
use plexus_store::{ApprovalRow, BudgetRow, CallInput, CallRow, Change, Committed, RunKey, Verdict};
use serde_json::Value;

use super::ending::Cause;
use super::owner::{Closing, Owner};
use crate::budgets::limit_of;
use crate::gate;
use crate::kill_point::kill_point;

/// Whether a turn waits until more is given, as it was stored with the turn.
pub(crate) fn waits_for_more(progress: &Value) -> bool {
    progress["held"].as_u64() > Some(0) || progress["asked_for_more"].is_string()
}

/// A call that waits at the gate until more is given.
#[derive(Debug)]
pub(super) struct HeldCall {
    row: CallRow,
    seen: CallInput,
    approval: ApprovalId,
}

impl HeldCall {
    /// The call that was kept as held, if this is one; one that cannot be read is not, and so is denied.
    pub(super) fn of(row: CallRow) -> Option<Self> {
        let Verdict::Held { approval, input, cwd, mode } = row.verdict.clone() else { return None };
        Some(Self { row, seen: CallInput { input, cwd, mode }, approval })
    }

    pub(super) fn tool_use_id(&self) -> &str {
        &self.row.tool_use_id
    }

    pub(super) fn run(&self) -> u32 {
        self.row.key.run
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

impl Owner {
    /// Remembers the calls that a commit has held.
    pub(super) async fn hold(&mut self, made: &Committed) -> Result<(), Closing> {
        let ids: Vec<&str> = made.held.iter().filter_map(|held| held.tool_use_id.as_deref()).collect();
        let Some(run) = self.run.as_ref().filter(|_| !ids.is_empty()) else { return Ok(()) };
        let (hub, key) = (self.hub.clone(), run.key);
        let kept = hub.book().held(|| hub.store().living_calls(key)).await;
        self.remember_held(kept.into_iter().filter(|call| ids.contains(&call.tool_use_id.as_str())));
        self.keep_clock();
        self.commit_held(vec![self.progress()]).await
    }

    /// Takes those of `calls` that are held for what they are. Until they are let on they count as denied.
    pub(super) fn remember_held(&mut self, calls: impl Iterator<Item = CallRow>) {
        for held in calls.filter_map(HeldCall::of) {
            if let Some(call) = self.calls.get_mut(held.tool_use_id()) {
                call.answer = GateAnswer::Deny { reason: "This call waits until more is given.".to_owned() };
            }
            self.held.push(held);
        }
    }

    /// A question for more has come to its end, of this session or one above: it may be what this one waits for.
    pub(super) async fn on_budget(&mut self, row: &ApprovalRow) -> Result<(), Closing> {
        let id = row.approval.id;
        let asked = self.turn.as_ref().is_some_and(|turn| turn.progress.asked_for_more == Some(id));
        if !asked && !self.held.iter().any(|held| held.approval == id) {
            return Ok(());
        }
        match row.approval.status {
            ApprovalStatus::Pending => Ok(()),
            // Where it was withdrawn there is some left again.
            ApprovalStatus::Allowed | ApprovalStatus::Withdrawn => self.go_on().await,
            ApprovalStatus::Denied | ApprovalStatus::Expired => self.give_up(row).await,
        }
    }

    /// Looks at what an earlier hub left waiting: the answer may have come meanwhile.
    pub(super) async fn resume_held(&mut self) -> Result<(), Closing> {
        let asked = self.turn.as_ref().and_then(|turn| turn.progress.asked_for_more);
        let waited_for = self.held.iter().map(|held| held.approval).chain(asked);
        let mut approvals: Vec<ApprovalId> = waited_for.collect();
        approvals.dedup();
        let hub = self.hub.clone();
        for id in approvals {
            match hub.book().held(|| hub.store().approval(id)).await {
                Some(row) => self.on_budget(&row).await?,
                None => self.go_on().await?,
            }
        }
        Ok(())
    }

    /// More was given: what was held is at the gate once more. What there is not enough for waits on.
    async fn go_on(&mut self) -> Result<(), Closing> {
        kill_point("budget", "told");
        let judge = self.hub.judge_of(&self.lineage);
        let decide = |held: &HeldCall, working_dir: &str| {
            let call = held.at_gate();
            gate::decide(&judge, &call, call.cwd.as_deref().unwrap_or(working_dir))
        };
        let held = std::mem::take(&mut self.held);
        let working_dir = self.row.config.working_dir.clone();
        let decided = held.into_iter().map(|held| {
            let answer = decide(&held, &working_dir);
            (held, answer)
        });
        let answered = decided.collect();
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.asked_for_more = None;
        }
        self.keep_clock();
        self.look_at_time_again();
        self.release(answered, vec![self.progress()]).await
    }

    /// No more was given: what was held is denied, and the turn is interrupted.
    async fn give_up(&mut self, row: &ApprovalRow) -> Result<(), Closing> {
        let said = |name: &str| row.approval.input.get(name).map(Value::to_string).unwrap_or_default();
        let limit = limit_of(row).map_or("limit", BudgetLimit::as_str);
        let why = match row.approval.status {
            ApprovalStatus::Expired => "nobody gave more in time".to_owned(),
            _ => match row.approval.decision.as_ref().and_then(|decision| decision.message.as_deref()) {
                Some(message) => format!("no more was given: {message}"),
                None => "no more was given".to_owned(),
            },
        };
        let (used, granted, name) = (said("used"), said("granted"), &row.approval.session_name);
        let message = format!("{limit} of session {name} is used up ({used} of {granted}), and {why}");
        let held = std::mem::take(&mut self.held);
        let reason = format!("The turn ends here: {message}.");
        let denied =
            held.into_iter().map(|held| (held, GateAnswer::Deny { reason: reason.clone() })).collect();
        let mut changes = Vec::new();
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.asked_for_more = None;
            turn.progress.interrupted = true;
            turn.progress.interrupt_asked = true;
            turn.progress.out_of = Some(message);
            changes.push(self.progress());
        }
        self.release(denied, changes).await?;
        kill_point("budget", "given up");
        self.send_interrupt().await
    }

    /// Makes the gate's answers to held calls durable, and passes on those that count.
    async fn release(
        &mut self,
        answered: Vec<(HeldCall, GateAnswer)>,
        mut changes: Vec<Change>,
    ) -> Result<(), Closing> {
        let mut replies = Vec::new();
        for (held, answer) in answered {
            let HeldCall { mut row, seen, .. } = held;
            row.verdict = gate::to_verdict(&answer);
            replies.push((row.tool_use_id.clone(), row.request_id.clone(), answer));
            changes.push(Change::Release(Box::new(row), seen));
        }
        let made = self.store_held(changes).await?;
        kill_point("budget", "released");
        for (tool_use_id, request_id, answer) in replies {
            if made.holds(&tool_use_id) {
                continue;
            }
            let line = plexus_claude::reply_gate(&request_id, &answer);
            if let Some(call) = self.calls.get_mut(&tool_use_id) {
                call.answer = answer;
            }
            self.send(&line).await?;
        }
        self.hold(&made).await
    }

    /// Nobody in this run waits at the gate any more.
    pub(super) fn forget_held(&mut self, key: RunKey) {
        self.held.retain(|held| held.run() != key.run);
    }

    /// What limits the cost of this session.
    pub(super) async fn cost_limit(&self) -> Option<BudgetRow> {
        let (hub, id) = (&self.hub, self.row.id);
        let limits = hub.book().held(|| hub.store().budget(id)).await;
        limits.into_iter().find(|row| row.limit == BudgetLimit::CostUsd)
    }

    /// Remembers which limit a process was started under.
    pub(super) fn note_cost_limit(&mut self, key: RunKey, limit: Option<&BudgetRow>) {
        let progress = self.turn.as_mut().map_or(&mut self.last_progress, |turn| &mut turn.progress);
        progress.cost_limit = limit.map(|row| (key.run, row.granted));
    }

    /// Lets a process go that was started under another limit of its cost than there is now: it would end turns too early,
    /// or too late.
    pub(super) async fn renew_for_cost(&mut self) -> Result<(), Closing> {
        let Some(run) = self.run.as_ref().filter(|_| self.turn.is_none()).map(|run| run.key.run) else {
            return Ok(());
        };
        let now = self.cost_limit().await.map(|row| (run, row.granted));
        if now == self.last_progress.cost_limit {
            return Ok(());
        }
        Box::pin(self.end_run(Cause::Stopped("the limit of its cost has changed".to_owned()))).await
    }
}

/// What a process may cost, as Claude Code reads it.
pub(super) fn dollars_left(limit: &BudgetRow) -> String {
    let left = limit.left().max(1);
    format!("{}.{:06}", left / 1_000_000, left % 1_000_000)
}
