//! Budget approvals: requests to raise a grant. All sessions that wait for the same grant share one approval. It is
//! withdrawn when no session waits for it any more. If it is allowed, the grant is raised.

use plexus_protocol::budget::{BudgetLimit, more_of};
use plexus_protocol::{Approval, ApprovalId, ApprovalKind, ApprovalStatus, Decision, Object, SessionId};
use serde_json::json;

use super::{Commit, calls, key};
use crate::rows::Stored;
use crate::{ApprovalRow, BudgetRow, HeldForBudget, NewApproval, RunKey, SessionRow, StoreError, TurnStatus};

impl Commit<'_> {
    /// Creates a budget approval if the cost or time budget of a running turn is exhausted.
    pub(super) fn ask_budget(&mut self, session: SessionId) -> Stored<()> {
        let Some(limit) = self.exhausted(session, &calls::CALL_LIMITS[1..])? else { return Ok(()) };
        let approval = self.ask_for_more(&limit, session, None)?;
        self.published.held.push(HeldForBudget { session, tool_use_id: None, approval, limit });
        Ok(())
    }

    /// The pending approval for this grant, which is created if there is none. `wanted_by` waits for it from now on.
    pub(super) fn ask_for_more(
        &mut self,
        row: &BudgetRow,
        wanted_by: SessionId,
        tool_name: Option<&str>,
    ) -> Stored<ApprovalId> {
        let id = match self.rows.pending_approval_of(row.session, &tool_use_id(row.limit))? {
            Some(id) => id,
            None => self.create_budget_approval(row, wanted_by, tool_name)?,
        };
        self.rows.insert_budget_wait(wanted_by, id)?;
        Ok(id)
    }

    fn create_budget_approval(
        &mut self,
        row: &BudgetRow,
        wanted_by: SessionId,
        tool_name: Option<&str>,
    ) -> Stored<ApprovalId> {
        let owner = self.session(row.session)?;
        let is_running = self
            .rows
            .turn(key(owner.id, owner.latest_turn))?
            .is_some_and(|turn| turn.status == TurnStatus::Running);
        // The owner's latest turn may be over: then a session below it wants more, and the approval is outside any turn.
        let turn = if is_running { owner.latest_turn } else { 0 };
        let (run, channel) = (owner.latest_run, owner.config.channel);
        let mut input = json!({
            "limit": row.limit,
            "granted": row.limit.shown(row.granted),
            "used": row.limit.shown(row.used),
            "more": row.limit.shown(row.granted),
            "wanted_by": self.session(wanted_by)?.name,
            "wanted_for": tool_name,
        })
        .as_object()
        .cloned()
        .unwrap_or_default();
        input.retain(|_, value| !value.is_null());
        let approval = self.budget_approval(owner, row.limit, input);
        let id = approval.id;
        self.ask(&NewApproval { approval, run, turn, channel, request_id: None })?;
        Ok(id)
    }

    /// It has no deadlines: the hub knows who is available and how long they have, and sets them
    /// ([`crate::Change::SetDeadlines`]).
    fn budget_approval(&self, owner: SessionRow, limit: BudgetLimit, input: Object) -> Approval {
        Approval {
            id: ApprovalId::random(),
            session_id: owner.id,
            session_name: owner.name,
            session_path: None,
            host: None,
            kind: ApprovalKind::Budget,
            tool_name: "budget".to_owned(),
            tool_use_id: tool_use_id(limit),
            input,
            status: ApprovalStatus::Pending,
            created_at: self.at,
            expires_at: None,
            asked_of: owner.answers_to,
            passed: Vec::new(),
            passes_on_at: None,
            reason: Some(format!("the {} budget is exhausted", limit.as_str())),
            said: None,
            risks: None,
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
        }
    }

    /// Withdraws the approval, because the grant has budget left again or its session is deleted.
    pub(super) fn withdraw_budget_approval(&mut self, session: SessionId, limit: BudgetLimit) -> Stored<()> {
        match self.rows.pending_approval_of(session, &tool_use_id(limit))? {
            Some(id) => self.withdraw(id, "budget is available again, or the session was deleted"),
            None => Ok(()),
        }
    }

    /// A turn of this session is over. Budget approvals that no other session waits for are withdrawn.
    pub(super) fn stop_waiting_for_budget(&mut self, session: SessionId) -> Stored<()> {
        for approval in self.rows.budget_waits(session)? {
            self.rows.delete_budget_wait(session, approval)?;
            if !self.rows.is_waited_for(approval)? {
                self.withdraw(approval, "no call waits for it any more")?;
            }
        }
        Ok(())
    }

    fn withdraw(&mut self, approval: ApprovalId, why: &str) -> Stored<()> {
        self.resolve(approval, ApprovalStatus::Withdrawn, &Decision::withdrawal(why))
    }

    /// A resolved budget approval raises its grant in the same commit, so that a decision is neither lost nor counted twice.
    /// No `tool_result` follows it, so its key is released here.
    pub(super) fn grant_budget(&mut self, row: &ApprovalRow, decision: &Decision) -> Stored<()> {
        let approval = &row.approval;
        if approval.kind != ApprovalKind::Budget {
            return Ok(());
        }
        let run = RunKey { session: approval.session_id, run: row.run };
        self.release_keys(run, &approval.tool_use_id)?;
        self.rows.delete_budget_waits(approval.id)?;
        if approval.status != ApprovalStatus::Allowed {
            return Ok(());
        }
        let unreadable = || {
            StoreError::Unavailable("a budget approval does not name its budget and the amount".to_owned())
        };
        let limit = approval.input.get("limit").cloned().unwrap_or_default();
        let limit: BudgetLimit = serde_json::from_value(limit).map_err(|_| unreadable())?;
        let given = decision.updated_input.clone().unwrap_or_default();
        let more = more_of(limit, &given).map_err(|_| unreadable())?;
        self.raise_grant(approval.session_id, limit, more)
    }
}

/// The key under which the approval for one limit of a session is found.
fn tool_use_id(limit: BudgetLimit) -> String {
    format!("budget:{}", limit.as_str())
}
