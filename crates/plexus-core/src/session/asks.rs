//! Questions: a call at the gate, `can_use_tool` on the control channel and `loopback.permit` over MCP, into one
//! book. Asking again under a living key is the same question; with another input it is denied and recorded. How
//! questions end is in `answers`.

use std::time::Instant;

use plexus_claude::{CanUseTool, GateAnswer, PermissionResult, PreToolUse};
use plexus_protocol::claudecode::Channel;
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{Approval, ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Decision, Event, Object};
use plexus_store::{CallInput, CallRow, Change, NewApproval, RunKey};
use serde_json::{Value, json};

use super::owner::{Closing, Owner};
use super::reading::Batch;
use crate::clock::now;
use crate::gate;
use crate::kill_point::kill_point;
use crate::limits::{Limit, weight};
use crate::permit::{NewStream, Permitted};
use crate::secret::call_digest;
use crate::way_up::Route;

/// A call the gate has seen.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) answer: GateAnswer,
    pub(super) digest: String,
    pub(super) cwd: Option<String>,
    /// The run whose gate saw it.
    pub(super) run: u32,
}

/// A question whose key lives.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) approval: ApprovalId,
    pub(super) digest: String,
    pub(super) status: ApprovalStatus,
    /// The answer, once there is one.
    pub(super) decision: Option<Decision>,
    pub(super) request_id: Option<String>,
    pub(super) run: u32,
}

/// What a question says of a call.
struct Question {
    tool_name: String,
    tool_use_id: String,
    input: Object,
    reason: Option<String>,
    suggestions: Option<Value>,
    agent_id: Option<String>,
    blocked_path: Option<String>,
    requires_user_interaction: Option<bool>,
    /// Whether an answer is wanted whatever our rules say.
    beyond_rules: bool,
}

/// How a question stands before anyone is asked.
enum Known {
    /// Settled by the gate, or by an answer that was given before.
    Settled(PermissionResult),
    /// Being asked.
    Open(ApprovalId),
    /// Asked before with another input.
    Mismatch,
    /// Not asked yet.
    New,
}

impl Owner {
    /// The gate sees a call.
    pub(super) fn on_gate(&mut self, key: RunKey, request_id: &str, call: &PreToolUse, batch: &mut Batch) {
        let cwd = call.cwd.clone().unwrap_or_else(|| self.row.config.working_dir.clone());
        let answer = gate::decide(&self.hub.judge_of(&self.lineage), call, &cwd);
        let digest = call_digest(&call.tool_name, &call.input, &cwd);
        let seen = CallRow {
            key,
            turn: self.event_turn(),
            tool_use_id: call.tool_use_id.clone(),
            tool_name: call.tool_name.clone(),
            digest: digest.clone(),
            request_id: request_id.to_owned(),
            verdict: gate::to_verdict(&answer),
        };
        let mode = call.permission_mode.clone();
        let input = CallInput { input: call.input.clone(), cwd: Some(cwd.clone()), mode };
        batch.changes.push(Change::Call(Box::new(seen), input));
        let reply = plexus_claude::reply_gate(request_id, &answer);
        batch.gated.push((call.tool_use_id.clone(), reply));
        self.at_work.insert(call.tool_use_id.clone(), call.tool_name.clone());
        self.calls.insert(call.tool_use_id.clone(), Call { answer, digest, cwd: Some(cwd), run: key.run });
    }

    /// The child asks on its control channel.
    pub(super) fn on_ask(&mut self, key: RunKey, request_id: &str, ask: CanUseTool, batch: &mut Batch) {
        // The user, or Claude Code's own safety check, wants a person here: no rule of ours stands in for one.
        let beyond_rules =
            ask.matched_ask_rule.is_some() || ask.decision_reason_type.as_deref() == Some("safetyCheck");
        let question = Question {
            tool_name: ask.tool_name,
            tool_use_id: ask.tool_use_id,
            input: ask.input,
            reason: ask.decision_reason,
            suggestions: ask.permission_suggestions.filter(Value::is_array),
            agent_id: ask.agent_id,
            blocked_path: ask.blocked_path,
            requires_user_interaction: ask.requires_user_interaction,
            beyond_rules,
        };
        let refuse = |message: &str| PermissionResult::Deny { message: message.to_owned(), interrupt: false };
        let answer = match self.known(&question) {
            Known::New => {
                let id = ApprovalId::random();
                match self.room_to_ask(id, &question) {
                    Ok(()) => {
                        let request_id = Some(request_id.to_owned());
                        return self.ask(key, id, question, Channel::Control, request_id, &mut batch.changes);
                    }
                    Err(limit) => self.turn_away(&question, limit, &mut batch.changes),
                }
            }
            Known::Settled(answer) => answer,
            Known::Open(_) => refuse("This call is being asked about already."),
            Known::Mismatch => {
                batch.changes.push(self.mismatch(&question));
                refuse("This call was asked about before with another input.")
            }
        };
        // A denial needs no record to be safe, and an allow rests on what the gate said, which was durable before the
        // child could ask: neither is held up, and after a crash the same is said again.
        batch.before.push(plexus_claude::reply_ask(request_id, &answer));
    }

    /// The child asks over MCP. What it wrote before has to be in the store before the question is.
    pub(super) async fn on_permit(
        &mut self,
        run: u32,
        params: PermitParams,
        stream: Option<NewStream>,
    ) -> Result<Permitted, Closing> {
        let key = RunKey { session: self.row.id, run };
        let is_ours = self.run.as_ref().is_some_and(|live| live.key == key);
        if is_ours {
            self.read_all().await?;
        } else if !self.external.contains(&key) {
            let message = "The run that asks is over.".to_owned();
            return Ok(Permitted::Decided(PermissionResult::Deny { message, interrupt: false }));
        }
        // Over MCP Claude Code does not say why it asks; what the gate allowed it asks about for one of these reasons only.
        let allowed = self.calls.get(&params.tool_use_id);
        let beyond_rules = allowed.is_some_and(|call| matches!(call.answer, GateAnswer::Allow { .. }));
        let question = Question {
            tool_name: params.tool_name,
            tool_use_id: params.tool_use_id,
            input: params.input,
            reason: None,
            suggestions: None,
            agent_id: None,
            blocked_path: None,
            requires_user_interaction: None,
            beyond_rules,
        };
        let mut changes = Vec::new();
        let permitted = match self.known(&question) {
            Known::Settled(answer) => Permitted::Decided(answer),
            Known::Open(approval) => {
                tracing::debug!(%approval, "a permit is asked again");
                Permitted::Waiting(approval)
            }
            // Every call of ours was at the gate first. One that has left it has its result: this is the voice of a relay
            // that was killed, or no call at all, and nobody is to be asked about that.
            Known::New if is_ours && !self.calls.contains_key(&question.tool_use_id) => {
                let message = "This call is not at the gate, so it is denied.".to_owned();
                Permitted::Decided(PermissionResult::Deny { message, interrupt: false })
            }
            Known::New => {
                let id = ApprovalId::random();
                match self.room_to_ask(id, &question) {
                    Ok(()) => {
                        self.ask(key, id, question, Channel::Mcp, None, &mut changes);
                        Permitted::Waiting(id)
                    }
                    Err(limit) => Permitted::Decided(self.turn_away(&question, limit, &mut changes)),
                }
            }
            Known::Mismatch => {
                changes.push(self.mismatch(&question));
                let message = "This call was asked about before with another input.".to_owned();
                Permitted::Decided(PermissionResult::Deny { message, interrupt: false })
            }
        };
        if let (Permitted::Waiting(approval), Some(stream)) = (&permitted, stream) {
            changes.push(stream.of(key, *approval));
        }
        changes.extend(self.clock_changes());
        kill_point("permit", "asked");
        self.commit_held(changes).await?;
        kill_point("permit", "stored");
        Ok(permitted)
    }

    fn known(&self, question: &Question) -> Known {
        let digest = self.digest_of(question);
        if let Some(ask) = self.asks.get(&question.tool_use_id) {
            if ask.digest != digest {
                return Known::Mismatch;
            }
            return Known::Open(ask.approval);
        }
        match self.calls.get(&question.tool_use_id).map(|call| (&call.answer, call.digest == digest)) {
            Some((GateAnswer::Deny { reason }, _)) => {
                Known::Settled(PermissionResult::Deny { message: reason.clone(), interrupt: false })
            }
            Some((GateAnswer::Allow { .. }, true)) if !question.beyond_rules => {
                Known::Settled(PermissionResult::Allow {
                    updated_input: question.input.clone(),
                    updated_permissions: Vec::new(),
                })
            }
            _ => Known::New,
        }
    }

    fn cwd_of(&self, tool_use_id: &str) -> String {
        let seen = self.calls.get(tool_use_id).and_then(|call| call.cwd.clone());
        seen.unwrap_or_else(|| self.row.config.working_dir.clone())
    }

    fn digest_of(&self, question: &Question) -> String {
        call_digest(&question.tool_name, &question.input, &self.cwd_of(&question.tool_use_id))
    }

    /// Whether one more question may be asked under this id.
    fn room_to_ask(&mut self, id: ApprovalId, question: &Question) -> Result<(), Limit> {
        let limits = &self.hub.settings().limits;
        let open = self.asks.values().filter(|ask| ask.status == ApprovalStatus::Pending).count();
        if open >= limits.open_approvals_per_session {
            return Err(Limit::OpenApprovalsPerSession);
        }
        if !self.pace.take(Instant::now(), limits.asks_per_minute) {
            return Err(Limit::AsksPerMinute);
        }
        self.hub.room().ask(id, weight(&question.input), limits)
    }

    /// A question that is one too many is denied, and recorded. The model is told that it may ask again.
    fn turn_away(
        &mut self,
        question: &Question,
        limit: Limit,
        changes: &mut Vec<Change>,
    ) -> PermissionResult {
        self.hub.metrics().refused(limit);
        let message = limit.to_agent(&self.hub.settings().limits);
        if let Some(call) = self.calls.get_mut(&question.tool_use_id) {
            // From here on it counts as denied at the gate: it must not run, and asking again changes nothing.
            call.answer = GateAnswer::Deny { reason: message.clone() };
        }
        let data = json!({
            "tool_use_id": question.tool_use_id,
            "tool_name": question.tool_name,
            "limit": limit.name(),
            "why": message,
        });
        let data = data.as_object().cloned().unwrap_or_default();
        let event = Event::System { subtype: "ask_denied".to_owned(), data };
        changes.push(Change::Event(self.row.id, self.event_turn(), Box::new(event)));
        PermissionResult::Deny { message, interrupt: false }
    }

    fn ask(
        &mut self,
        key: RunKey,
        id: ApprovalId,
        question: Question,
        channel: Channel,
        request_id: Option<String>,
        changes: &mut Vec<Change>,
    ) {
        let digest = self.digest_of(&question);
        let Route { asked_of, passed, passes_on_at } = self.route(&question);
        let approval = Approval {
            id,
            session_id: self.row.id,
            session_name: self.row.name.clone(),
            kind: ApprovalKind::of_tool(&question.tool_name),
            cwd: self.cwd_of(&question.tool_use_id),
            tool_name: question.tool_name,
            tool_use_id: question.tool_use_id.clone(),
            input: question.input,
            status: ApprovalStatus::Pending,
            created_at: now(),
            expires_at: self.row.config.approval_timeout_secs.map(|secs| now() + secs),
            asked_of,
            passed,
            passes_on_at,
            reason: question.reason,
            suggestions: question.suggestions,
            agent_id: question.agent_id,
            blocked_path: question.blocked_path,
            requires_user_interaction: question.requires_user_interaction,
            beyond_rules: question.beyond_rules,
            digest: Some(digest.clone()),
            truncated: false,
            delivered_at: None,
            resolved_at: None,
            decision: None,
        };
        let status = ApprovalStatus::Pending;
        let kept = Ask {
            approval: id,
            digest,
            status,
            decision: None,
            request_id: request_id.clone(),
            run: key.run,
        };
        self.asks.insert(question.tool_use_id, kept);
        let turn = self.event_turn();
        changes.push(Change::Ask(Box::new(NewApproval {
            approval,
            run: key.run,
            turn,
            channel,
            request_id,
        })));
    }

    /// The nearest above that may allow this, and is there.
    fn route(&self, question: &Question) -> Route {
        let deciders = match self.row.answers_to {
            // Most sessions have nobody above them but the root, who may allow anything.
            AskedOf::Operator | AskedOf::Parent { .. } => vec![self.row.answers_to.clone()],
            AskedOf::Session { .. } => {
                let cwd = self.cwd_of(&question.tool_use_id);
                let call = self.hub.call_of(&self.lineage, &question.tool_name, &question.input, &cwd);
                self.lineage.deciders(self.row.id, |session| self.lineage.may_allow(session.id, &call))
            }
        };
        self.hub.route(&self.lineage, deciders)
    }

    fn mismatch(&self, question: &Question) -> Change {
        let data = json!({
            "tool_use_id": question.tool_use_id,
            "tool_name": question.tool_name,
            "input": question.input,
        });
        let event = Event::System {
            subtype: "ask_mismatch".to_owned(),
            data: data.as_object().cloned().unwrap_or_default(),
        };
        Change::Event(self.row.id, self.event_turn(), Box::new(event))
    }
}
