//! Asking for more, and the calls that wait for it. A call for which nothing is left is kept as held, with the question,
//! in the commit that brought it to the gate; one question stands for all who wait for the same limit.

use plexus_protocol::budget::{BudgetLimit, more_of};
use plexus_protocol::{
    Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decision, Event, SessionId,
};
use rusqlite::OptionalExtension;
use serde_json::{Value, json};

use super::changes::Applying;
use super::columns::{Json, Text};
use super::{reads, sql};
use crate::{ApprovalRow, BudgetRow, CallInput, CallRow, Held, NewApproval, RunKey, StoreError, TurnStatus};

/// How long more can be waited for, unless the session says otherwise.
const ANSWERED_WITHIN_SECS: u64 = 300;

/// How long the first who is asked has, unless the session says otherwise.
const PASSED_ON_AFTER_SECS: u64 = 120;

/// What a call at the gate needs some of.
const OF_A_CALL: [BudgetLimit; 3] = [BudgetLimit::ToolCalls, BudgetLimit::CostUsd, BudgetLimit::WallSecs];

impl Applying<'_> {
    /// Counts a call that the gate lets on, or has it wait: then this is what is kept in place of the gate's answer.
    pub(super) fn count_call(
        &mut self,
        call: &CallRow,
        seen: &CallInput,
    ) -> Result<Option<Value>, StoreError> {
        // One that is denied does nothing.
        if call.verdict["answer"] == "deny" || !self.is_anything_limited()? {
            return Ok(None);
        }
        let session = call.key.session;
        let Some(row) = self.used_up(session, &OF_A_CALL)? else {
            self.spend(session, BudgetLimit::ToolCalls, 1)?;
            return Ok(None);
        };
        let approval = self.ask_for_more(&row, session, Some(&call.tool_name))?;
        let data = json!({"tool_use_id": call.tool_use_id, "approval_id": approval, "limit": row.limit});
        let data = data.as_object().cloned().unwrap_or_default();
        self.event(session, call.turn, &Event::System { subtype: "held".to_owned(), data })?;
        let tool_use_id = Some(call.tool_use_id.clone());
        self.made.held.push(Held { session, tool_use_id, approval, limit: row });
        let CallInput { input, cwd, mode } = seen;
        Ok(Some(json!({
            "answer": "held", "approval": approval, "input": input, "cwd": cwd, "mode": mode,
        })))
    }

    /// A call that was held is at the gate again.
    pub(super) fn release(&mut self, call: &CallRow, seen: &CallInput) -> Result<(), StoreError> {
        let verdict = self.count_call(call, seen)?;
        let key = (Text(call.key.session), call.key.run, &call.tool_use_id);
        let kept = Json(verdict.as_ref().unwrap_or(&call.verdict));
        self.execute(sql::RELEASE_CALL, (key.0, key.1, key.2, kept))?;
        match verdict {
            Some(_) => Ok(()),
            None => self.gate_answered(call, &seen.input),
        }
    }

    /// Asks for more of what `session` cannot go on without, if there is such a limit.
    pub(super) fn ask_budget(&mut self, session: SessionId) -> Result<(), StoreError> {
        let Some(row) = self.used_up(session, &OF_A_CALL[1..])? else { return Ok(()) };
        let approval = self.ask_for_more(&row, session, None)?;
        self.made.held.push(Held { session, tool_use_id: None, approval, limit: row });
        Ok(())
    }

    /// The open question for more of this limit, which `wanted_by` waits for from now on; it is asked unless it is.
    fn ask_for_more(
        &mut self,
        row: &BudgetRow,
        wanted_by: SessionId,
        tool_name: Option<&str>,
    ) -> Result<ApprovalId, StoreError> {
        let id = match self.question(row.session, row.limit)? {
            Some(open) => open.approval.id,
            None => self.new_question(row, wanted_by, tool_name)?,
        };
        self.execute(sql::WAIT_FOR_BUDGET, (Text(wanted_by), Text(id)))?;
        Ok(id)
    }

    fn new_question(
        &mut self,
        row: &BudgetRow,
        wanted_by: SessionId,
        tool_name: Option<&str>,
    ) -> Result<ApprovalId, StoreError> {
        let BudgetRow { session, limit, granted, used, .. } = row;
        let owner = self.session(*session)?;
        let runs = reads::turn(self.connection, *session, owner.latest_turn)?
            .is_some_and(|turn| turn.status == TurnStatus::Running);
        let input = json!({
            "limit": limit,
            "granted": limit.shown(*granted),
            "used": limit.shown(*used),
            "more": limit.shown(*granted),
            "wanted_by": self.session(wanted_by)?.name,
            "wanted_for": tool_name,
        });
        let mut input = input.as_object().cloned().unwrap_or_default();
        input.retain(|_, value| !value.is_null());
        let id = ApprovalId::random();
        let timeout = owner.config.approval_timeout_secs.unwrap_or(ANSWERED_WITHIN_SECS);
        // The root of a tree is asked, there or not.
        let patience = owner.config.escalate_after_secs.unwrap_or(PASSED_ON_AFTER_SECS);
        let passes_on_at = (owner.answers_to != AskedOf::Operator).then(|| self.at.saturating_add(patience));
        let approval = Approval {
            id,
            session_id: *session,
            session_name: owner.name,
            kind: ApprovalKind::Budget,
            tool_name: "budget".to_owned(),
            tool_use_id: tool_use_id(*limit),
            input,
            status: ApprovalStatus::Pending,
            created_at: self.at,
            expires_at: Some(self.at.saturating_add(timeout)),
            asked_of: owner.answers_to,
            passed: Vec::new(),
            passes_on_at,
            reason: Some(format!("{} is used up", limit.as_str())),
            suggestions: None,
            agent_id: None,
            blocked_path: None,
            requires_user_interaction: None,
            beyond_rules: true,
            cwd: owner.config.working_dir,
            digest: None,
            truncated: false,
            delivered_at: None,
            resolved_at: None,
            decision: None,
        };
        // What another session below it wants does not stop a turn of its own that is over.
        let turn = if runs { owner.latest_turn } else { 0 };
        let channel = owner.config.channel;
        self.ask(&NewApproval { approval, run: owner.latest_run, turn, channel, request_id: None })?;
        Ok(id)
    }

    fn question(&self, session: SessionId, limit: BudgetLimit) -> Result<Option<ApprovalRow>, StoreError> {
        let key = (Text(session), tool_use_id(limit));
        let id: Option<Text<ApprovalId>> =
            self.connection.prepare_cached(sql::OPEN_BUDGET)?.query_row(key, |row| row.get(0)).optional()?;
        match id {
            Some(Text(id)) => Ok(reads::approval(self.connection, id)?),
            None => Ok(None),
        }
    }

    /// What was asked for was given, or cannot be used any more: nobody need answer.
    pub(super) fn end_question(&mut self, session: SessionId, limit: BudgetLimit) -> Result<(), StoreError> {
        match self.question(session, limit)? {
            Some(open) => {
                self.withdraw(open.approval.id, "there is some left again, or the session was deleted")
            }
            None => Ok(()),
        }
    }

    /// A turn of this session is over: it waits for nothing any more, and perhaps nobody does.
    pub(super) fn waits_no_more(&mut self, session: SessionId) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql::BUDGETS_WAITED_FOR)?;
        let waited_for: Vec<Text<ApprovalId>> =
            statement.query_map([Text(session)], |row| row.get(0))?.collect::<Result<_, _>>()?;
        drop(statement);
        for Text(approval) in waited_for {
            self.execute(
                "DELETE FROM budget_waits WHERE session = ?1 AND approval = ?2",
                (Text(session), Text(approval)),
            )?;
            let key = [Text(approval)];
            let waits: bool =
                self.connection.prepare_cached(sql::WAITS_FOR_BUDGET)?.query_row(key, |row| row.get(0))?;
            if !waits {
                self.withdraw(approval, "nobody waits for it any more")?;
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, approval: ApprovalId, why: &str) -> Result<(), StoreError> {
        self.resolve(approval, ApprovalStatus::Withdrawn, &Decision::withdrawal(why))
    }

    /// A budget approval came to its end: what was given counts with the decision. Nothing waits for a result of it.
    pub(super) fn settle_budget(&mut self, row: &ApprovalRow, decision: &Decision) -> Result<(), StoreError> {
        let approval = &row.approval;
        if approval.kind != ApprovalKind::Budget {
            return Ok(());
        }
        let key = RunKey { session: approval.session_id, run: row.run };
        self.settle(key, &approval.tool_use_id)?;
        self.execute("DELETE FROM budget_waits WHERE approval = ?1", [Text(approval.id)])?;
        if approval.status != ApprovalStatus::Allowed {
            return Ok(());
        }
        let unreadable =
            || StoreError::Unavailable("a budget approval does not say what it is for".to_owned());
        let limit = approval.input.get("limit").cloned().unwrap_or_default();
        let limit: BudgetLimit = serde_json::from_value(limit).map_err(|_| unreadable())?;
        let given = decision.updated_input.clone().unwrap_or_default();
        let more = more_of(limit, &given).map_err(|_| unreadable())?;
        self.grow(approval.session_id, limit, more)
    }
}

fn tool_use_id(limit: BudgetLimit) -> String {
    format!("budget:{}", limit.as_str())
}
