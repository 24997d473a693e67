//! What a session does that has used up what it was given: its calls wait at the gate, the clock of its turns runs out, and
//! both go on, or the turn is interrupted, when the question for more is answered. Whether something is left is for the
//! store to say, in the commit that counts it.

use std::time::{Duration, SystemTime};

use plexus_claude::{GateAnswer, PreToolUse};
use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus};
use plexus_store::{ApprovalRow, BudgetRow, CallInput, CallRow, Change, Committed, RunKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::ending::Cause;
use super::owner::{Closing, Owner};
use crate::budgets::limit_of;
use crate::gate;
use crate::kill_point::kill_point;

/// Time that runs out is looked at halfway each time, as others may draw on the same limit; this much is waited for whole.
const LAST_STRETCH: Duration = Duration::from_secs(2);

/// How long a turn has run that was not counted yet. It stands still while something of the turn waits for an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Clock {
    /// Since when it runs, in milliseconds since 1970: a hub that comes back counts on from there.
    since_ms: Option<u64>,
    uncounted_ms: u64,
}

impl Clock {
    fn run(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    fn stand_still(&mut self, now_ms: u64) {
        if let Some(since) = self.since_ms.take() {
            self.uncounted_ms += now_ms.saturating_sub(since);
        }
    }

    fn runs(&self) -> bool {
        self.since_ms.is_some()
    }

    fn uncounted(&self, now_ms: u64) -> u64 {
        self.uncounted_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// What is to be counted now; it goes on as it was.
    fn take(&mut self, now_ms: u64) -> u64 {
        let runs = self.runs();
        self.stand_still(now_ms);
        if runs {
            self.run(now_ms);
        }
        std::mem::take(&mut self.uncounted_ms)
    }
}

/// What is known of the time limit of the turn in progress.
#[derive(Debug, Default)]
pub(super) struct Time {
    /// The turn that was looked at.
    turn: Option<u64>,
    /// Whether its time is limited.
    limited: bool,
    /// When to look again.
    pub(super) by: Option<Instant>,
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
        let kept =
            row.verdict.as_object().filter(|kept| kept.get("answer").is_some_and(|it| it == "held"))?;
        let text = |name: &str| kept.get(name).and_then(Value::as_str).map(str::to_owned);
        let seen = CallInput {
            input: kept.get("input")?.as_object()?.clone(),
            cwd: text("cwd"),
            mode: text("mode"),
        };
        let approval = serde_json::from_value(kept.get("approval")?.clone()).ok()?;
        Some(Self { row, seen, approval })
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
        self.time = Time::default();
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
            row.verdict = gate::to_value(&answer);
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

    /// Lets the clock of the turn run, or stand still, as it should now.
    pub(super) fn keep_clock(&mut self) {
        let asked = self.asks.values().any(|ask| ask.status == ApprovalStatus::Pending);
        let waits = asked || !self.held.is_empty();
        let Some(turn) = self.turn.as_mut() else { return };
        let clock = &mut turn.progress.clock;
        let ran = clock.runs();
        if self.time.limited && !waits && turn.progress.asked_for_more.is_none() {
            clock.run(now_ms());
        } else {
            clock.stand_still(now_ms());
        }
        if clock.runs() != ran {
            self.time.turn = None;
        }
    }

    /// The same, with what is to be stored of it.
    pub(super) fn clock_changes(&mut self) -> Option<Change> {
        let runs = |owner: &Self| owner.turn.as_ref().is_some_and(|turn| turn.progress.clock.runs());
        let ran = runs(self);
        self.keep_clock();
        (runs(self) != ran).then(|| self.progress())
    }

    /// What the turn that ends now has run since it was counted last.
    pub(super) fn last_time(&mut self) -> Option<Change> {
        self.time = Time::default();
        let spent = self.turn.as_mut()?.progress.clock.take(now_ms());
        (spent > 0).then(|| Change::Spend(self.row.id, BudgetLimit::WallSecs, spent))
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

    /// Someone's limits have changed.
    pub(super) fn limits_changed(&mut self) {
        self.time = Time::default();
    }

    /// Finds out how long the turn in progress may run, once for each turn and each change.
    pub(super) async fn look_at_time(&mut self) {
        let number = self.turn.as_ref().map(|turn| turn.number);
        if self.time.turn == number {
            return;
        }
        let (hub, id) = (self.hub.clone(), self.row.id);
        let limits = match number {
            Some(_) => hub.book().held(|| hub.store().budget(id)).await,
            None => Vec::new(),
        };
        let limit = limits.into_iter().find(|row| row.limit == BudgetLimit::WallSecs);
        self.time.limited = limit.is_some();
        self.keep_clock();
        let clock = self.turn.as_ref().map(|turn| &turn.progress.clock).filter(|clock| clock.runs());
        let left = limit.zip(clock).map(|(row, clock)| row.left().saturating_sub(clock.uncounted(now_ms())));
        let wait =
            left.map(Duration::from_millis).map(|left| if left > LAST_STRETCH { left / 2 } else { left });
        self.time.by = wait.map(|wait| Instant::now() + wait);
        self.time.turn = number;
    }

    /// Counts the time that the turn has run; where none is left, more is asked for.
    pub(super) async fn on_time(&mut self) -> Result<(), Closing> {
        self.time = Time { turn: None, by: None, limited: self.time.limited };
        let Some(turn) = self.turn.as_mut() else { return Ok(()) };
        let spent = turn.progress.clock.take(now_ms());
        let session = self.row.id;
        let spend = Change::Spend(session, BudgetLimit::WallSecs, spent);
        let waits = self.turn.as_ref().is_some_and(|turn| turn.progress.asked_for_more.is_some());
        let mut changes = vec![spend, self.progress()];
        if !waits && self.held.is_empty() {
            changes.push(Change::AskBudget(session));
        }
        let made = self.store_held(changes).await?;
        let Some(held) = made.held.first() else { return Ok(()) };
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.asked_for_more = Some(held.approval);
        }
        self.keep_clock();
        self.commit_held(vec![self.progress()]).await
    }
}

/// What a process may cost, as Claude Code reads it.
pub(super) fn dollars_left(limit: &BudgetRow) -> String {
    let left = limit.left().max(1);
    format!("{}.{:06}", left / 1_000_000, left % 1_000_000)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_only_while_it_runs_and_nothing_twice() {
        let mut clock = Clock::default();
        clock.run(1_000);
        clock.run(2_000);
        assert_eq!(clock.take(3_000), 2_000);
        clock.stand_still(3_500);
        clock.stand_still(9_000);
        assert_eq!(clock.take(10_000), 500, "it stood still since");
        clock.run(10_000);
        let kept: Clock = serde_json::from_value(serde_json::to_value(&clock).unwrap()).unwrap();
        assert_eq!(kept.clone().take(12_000), 2_000, "the next hub counts on");
    }
}
