//! Handles tool calls at the gate and the approval requests that follow them. A repeated request for a call shares its
//! approval; a request for the same call with a different input is denied and logged. `answers` resolves approvals.

use std::sync::Arc;

use plexus_agent::TIMING;
use plexus_claude::{CanUseTool, GateAnswer, PermissionResult, PreToolUse};
use plexus_protocol::claudecode::Channel;
use plexus_protocol::{Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Event};
use plexus_store::{CallInput, CallRow, Change, NewApproval, RunKey};
use serde_json::{Value, json};

use super::answers::OpenApproval;
use super::lines::{Batch, GateReply};
use super::request::{ApprovalRequest, Known, RequestOrigin, deny};
use super::{Effect, Machine, Next, Reply};
use crate::callers::secret::call_digest;
use crate::escalation::Route;
use crate::limits::{Limit, input_size};
use crate::lineage::CheckedCall;
use crate::policy as gate;
use crate::session::PermitCommand;
use crate::session::Permitted;
use crate::summary::summary;

const MISMATCH: &str = "This call already had an approval request with a different input, so it is denied.";

/// A call that the gate has seen.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) answer: GateAnswer,
    pub(super) digest: String,
    pub(super) cwd: Option<String>,
    /// The run whose gate saw it.
    pub(super) run: u32,
}

impl Machine {
    /// Decides about a call at the gate.
    pub(super) fn on_gate(&mut self, key: RunKey, request_id: &str, call: &PreToolUse, batch: &mut Batch) {
        let cwd = call.cwd.clone().unwrap_or_else(|| self.row.config.working_dir.clone());
        let judge = self.judge();
        let answer = gate::decide(&judge, call, &cwd);
        tracing::trace!(target: TIMING, mark = "policy_decided", id = call.tool_use_id);
        let digest = call_digest(&call.tool_name, &call.input, &cwd);
        let seen = CallRow {
            key,
            turn: self.event_turn(),
            tool_use_id: call.tool_use_id.clone(),
            tool_name: call.tool_name.clone(),
            digest: digest.clone(),
            request_id: request_id.to_owned(),
            verdict: gate::to_verdict(&answer),
            summary: summary(&call.input),
        };
        let mode = call.permission_mode.clone();
        let rules_version = judge.version();
        let input = CallInput { input: call.input.clone(), cwd: Some(cwd.clone()), mode, rules_version };
        batch.changes.push(Change::Call(Box::new(seen), input));
        let line = plexus_claude::reply_gate(request_id, &answer);
        batch.after.gate.push(GateReply {
            tool_use_id: call.tool_use_id.clone(),
            request_id: request_id.to_owned(),
            line,
        });
        self.running_tools.insert(call.tool_use_id.clone(), call.tool_name.clone());
        self.calls.insert(call.tool_use_id.clone(), Call { answer, digest, cwd: Some(cwd), run: key.run });
        self.enforce_hook_decision(&call.tool_use_id);
        self.ask_for_cost(&call.tool_use_id, batch);
    }

    /// The child requests an approval on its control channel.
    pub(super) fn on_can_use_tool(
        &mut self,
        key: RunKey,
        request_id: &str,
        ask: CanUseTool,
        batch: &mut Batch,
    ) {
        let mut request = ApprovalRequest::on_control_channel(ask);
        self.add_hook_reason(&mut request);
        let answer = match self.known(&request) {
            Known::New => {
                let id = ApprovalId::random();
                match self.check_limits(id, &request) {
                    Ok(()) => {
                        let request_id = Some(request_id.to_owned());
                        let change = self.ask(key, id, request, Channel::Control, request_id);
                        return batch.changes.push(change);
                    }
                    Err(limit) => self.reject(&request, limit, &mut batch.changes),
                }
            }
            Known::Decided(answer) => answer,
            Known::Asked(_) => deny("This call already has an open approval request, so this one is denied."),
            Known::Mismatch => {
                batch.changes.push(self.mismatch(&request));
                deny(MISMATCH)
            }
        };
        // A denial is safe without being stored. An allow repeats the gate's answer, which was durable before the child could
        // ask. Neither waits for the store, and after a crash the same answer follows.
        batch.before.push(plexus_claude::reply_permission(request_id, &answer));
    }

    /// The child requests an approval over MCP. Its earlier lines are read first.
    pub(super) fn on_permit(&mut self, permit: Box<PermitCommand>) {
        let key = RunKey { session: self.row.id, run: permit.run };
        if self.process.as_ref().is_some_and(|process| process.key == key) {
            let next = Next::Permit(permit, RequestOrigin::OwnProcess);
            self.effects.extend([Effect::ReadAll, Effect::Then(next)]);
        } else if self.external.contains(&key) {
            self.on_permit_read(*permit, RequestOrigin::External);
        } else {
            self.effects.push(Reply::permitted(
                permit.reply,
                deny("The run of this call has ended, so it is denied."),
            ));
        }
    }

    pub(super) fn on_permit_read(&mut self, permit: PermitCommand, origin: RequestOrigin) {
        let PermitCommand { run, params, stream, reply } = permit;
        let key = RunKey { session: self.row.id, run };
        // Over MCP Claude Code gives no reason. It asks about a call that the gate allowed only when a person is required.
        let call = self.calls.get(&params.tool_use_id);
        let beyond_rules = call.is_some_and(|call| matches!(call.answer, GateAnswer::Allow { .. }));
        let mut request = ApprovalRequest { beyond_rules, ..ApprovalRequest::over_mcp(params) };
        self.add_hook_reason(&mut request);
        let mut changes = Vec::new();
        let permitted = match self.known(&request) {
            Known::Decided(answer) => Permitted::Decided(answer),
            Known::Asked(approval) => {
                tracing::debug!(%approval, "a client repeated its permit request");
                Permitted::Waiting(approval)
            }
            Known::Mismatch => {
                changes.push(self.mismatch(&request));
                Permitted::Decided(deny(MISMATCH))
            }
            // Every call of the hub's own process passes the gate first, and leaves it with its result. A killed relay may
            // replay a request: deny it.
            Known::New
                if origin == RequestOrigin::OwnProcess && !self.calls.contains_key(&request.tool_use_id) =>
            {
                Permitted::Decided(deny("This call did not pass the gate, so it is denied."))
            }
            Known::New => {
                let id = ApprovalId::random();
                match self.check_limits(id, &request) {
                    Ok(()) => {
                        changes.push(self.ask(key, id, request, Channel::Mcp, None));
                        Permitted::Waiting(id)
                    }
                    Err(limit) => Permitted::Decided(self.reject(&request, limit, &mut changes)),
                }
            }
        };
        if let (Permitted::Waiting(approval), Some(stream)) = (&permitted, stream) {
            changes.push(stream.of(key, *approval));
        }
        changes.extend(self.update_clock_change());
        self.kill_point("permit", "asked");
        self.commit(changes);
        self.kill_point("permit", "stored");
        self.effects.push(Effect::Reply(Reply::Permit(reply, permitted)));
    }

    /// A hook may require approval of a call that the gate allows.
    fn add_hook_reason(&mut self, request: &mut ApprovalRequest) {
        if let Some(reason) = self.asked_by_hook(&request.tool_use_id) {
            request.beyond_rules = true;
            request.reason = Some(reason);
        }
    }

    fn known(&self, request: &ApprovalRequest) -> Known {
        let digest = self.digest_of(request);
        if let Some(approval) = self.approvals.get(&request.tool_use_id) {
            return if approval.digest == digest { Known::Asked(approval.id) } else { Known::Mismatch };
        }
        match self.calls.get(&request.tool_use_id).map(|call| (&call.answer, call.digest == digest)) {
            Some((GateAnswer::Deny { reason }, _)) => Known::Decided(deny(reason)),
            Some((GateAnswer::Allow { .. }, true)) if !request.beyond_rules => {
                Known::Decided(PermissionResult::Allow {
                    updated_input: request.input.clone(),
                    updated_permissions: Vec::new(),
                })
            }
            _ => Known::New,
        }
    }

    pub(super) fn cwd_of(&self, tool_use_id: &str) -> String {
        let seen = self.calls.get(tool_use_id).and_then(|call| call.cwd.clone());
        seen.unwrap_or_else(|| self.row.config.working_dir.clone())
    }

    fn digest_of(&self, request: &ApprovalRequest) -> String {
        call_digest(&request.tool_name, &request.input, &self.cwd_of(&request.tool_use_id))
    }

    /// Whether the limits leave room for one more approval.
    fn check_limits(&mut self, id: ApprovalId, request: &ApprovalRequest) -> Result<(), Limit> {
        let limits = &self.shared.settings.limits;
        let open =
            self.approvals.values().filter(|approval| approval.status == ApprovalStatus::Pending).count();
        if open >= limits.open_approvals_per_session {
            return Err(Limit::OpenApprovalsPerSession);
        }
        if !self.rate_limit.take(self.now.instant, limits.asks_per_minute) {
            return Err(Limit::AsksPerMinute);
        }
        self.shared.reservations.reserve_approval(id, input_size(&request.input), limits)
    }

    /// Denies a request beyond a limit and adds an event. The model learns that it may try again.
    fn reject(
        &mut self,
        request: &ApprovalRequest,
        limit: Limit,
        changes: &mut Vec<Change>,
    ) -> PermissionResult {
        self.shared.metrics.refused(limit);
        let message = limit.to_agent(&self.shared.settings.limits);
        if let Some(call) = self.calls.get_mut(&request.tool_use_id) {
            // The call now counts as denied at the gate: another request for it changes nothing.
            call.answer = GateAnswer::Deny { reason: message.clone() };
        }
        changes.push(self.system_event(
            "ask_denied",
            json!({
                "tool_use_id": request.tool_use_id,
                "tool_name": request.tool_name,
                "limit": limit.name(),
                "why": message,
            }),
        ));
        deny(message)
    }

    fn ask(
        &mut self,
        key: RunKey,
        id: ApprovalId,
        request: ApprovalRequest,
        channel: Channel,
        request_id: Option<String>,
    ) -> Change {
        let digest = self.digest_of(&request);
        let Route { asked_of, passed_over: passed, escalates_at: passes_on_at } = self.route(&request);
        let created_at = self.now.unix_secs();
        let approval = Approval {
            id,
            said: self.said.before_call(&request.tool_use_id),
            risks: self.risks(&request),
            session_id: self.row.id,
            session_name: self.row.name.clone(),
            session_path: None,
            host: None,
            kind: ApprovalKind::of_tool(&request.tool_name),
            cwd: self.cwd_of(&request.tool_use_id),
            tool_name: request.tool_name,
            tool_use_id: request.tool_use_id.clone(),
            input: request.input,
            status: ApprovalStatus::Pending,
            created_at,
            expires_at: self.row.config.approval_timeout_secs.map(|secs| created_at + secs),
            asked_of,
            passed,
            passes_on_at,
            reason: request.reason,
            suggestions: request.suggestions,
            agent_id: request.agent_id,
            blocked_path: request.blocked_path,
            requires_user_interaction: request.requires_user_interaction,
            beyond_rules: request.beyond_rules,
            digest: Some(digest.clone()),
            truncated: false,
            delivered_at: None,
            resolved_at: None,
            decision: None,
        };
        let open = OpenApproval {
            id,
            digest,
            status: ApprovalStatus::Pending,
            decision: None,
            request_id: request_id.clone(),
            run: key.run,
        };
        self.approvals.insert(request.tool_use_id, open);
        let turn = self.event_turn();
        Change::Ask(Box::new(NewApproval { approval, run: key.run, turn, channel, request_id }))
    }

    /// Finds the nearest ancestor that may allow this call and is present.
    fn route(&self, request: &ApprovalRequest) -> Route {
        let deciders = match self.row.answers_to {
            // Most sessions have no session above them.
            AskedOf::Operator | AskedOf::Parent { .. } => vec![self.row.answers_to.clone()],
            AskedOf::Session { .. } => {
                let home = self.lineage.home(&self.shared.settings);
                let cwd = self.cwd_of(&request.tool_use_id);
                let input = Value::Object(request.input.clone());
                let call = CheckedCall::new(&request.tool_name, input, cwd.into(), home);
                self.lineage.deciders(self.row.id, |session| self.lineage.may_allow(session.id, &call))
            }
        };
        self.shared.escalation.route(&self.lineage, deciders, self.now.unix_secs())
    }

    /// The event that records a request with another input.
    fn mismatch(&self, request: &ApprovalRequest) -> Change {
        self.system_event(
            "ask_mismatch",
            json!({
                "tool_use_id": request.tool_use_id,
                "tool_name": request.tool_name,
                "input": request.input,
            }),
        )
    }

    /// A `system` event of the current turn.
    pub(super) fn system_event(&self, subtype: &str, data: Value) -> Change {
        let data = match data {
            Value::Object(data) => data,
            other => [("value".to_owned(), other)].into_iter().collect(),
        };
        let event = Event::System { subtype: subtype.to_owned(), data };
        Change::Event(self.row.id, self.event_turn(), Arc::new(event))
    }
}
