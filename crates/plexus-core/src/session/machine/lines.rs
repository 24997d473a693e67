//! The lines that the child writes. A batch of lines becomes one commit. The machine sends its replies to the batch after
//! that commit is durable.

use std::sync::Arc;

use plexus_agent::Entry;
use plexus_claude::{
    Assistant, Block, GateAnswer, HookAnswer, HookCallback, Incoming, PermissionResult, Request, RequestBody,
    TurnResult, User,
};
use plexus_protocol::{Event, Hunk, JournalRange};
use plexus_store::{Change, Committed, RunKey};
use serde_json::{Value, json};

use super::progress::COST_LIMIT_REACHED;
use super::truncate::truncate;
use super::{AfterCommit, Cause, Effect, Machine, Reply};

/// The one tool that Claude Code runs without its hooks; it only ends the conversation.
const UNGATED_TOOL: &str = "EndConversation";

/// What follows from a batch of lines.
#[derive(Default)]
pub(super) struct Batch {
    /// Denials, which are sent whether or not the rest can be stored.
    pub(super) before: Vec<String>,
    /// The changes, stored in one commit.
    pub(super) changes: Vec<Change>,
    /// What follows once they are durable.
    pub(super) after: AfterLines,
    /// The place of the current line in the journal.
    pub(super) line: JournalRange,
    /// The place of the current line in the journal, if its events contain only part of it.
    truncated: Option<JournalRange>,
}

/// The effects to carry out when a batch is durable.
#[derive(Default)]
pub(in crate::session) struct AfterLines {
    /// The most significant operation in the batch, for kill points.
    operation: &'static str,
    /// The gate's answers; those to held calls are not sent.
    pub(super) gate: Vec<GateReply>,
    /// The callbacks for which the user's hooks are to be run.
    pub(super) hooks: Vec<String>,
    /// Further lines for the child.
    pub(super) lines: Vec<String>,
    /// Answers of the child to control requests, for the callers that wait.
    pub(super) replies: Vec<Reply>,
    pub(super) readiness: Readiness,
    /// Why the child has to be ended at once.
    pub(super) alarm: Option<Cause>,
}

/// The gate's answer to a call.
pub(super) struct GateReply {
    pub(super) tool_use_id: String,
    pub(super) request_id: String,
    pub(super) line: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Readiness {
    #[default]
    Unchanged,
    /// The child has become ready for a prompt.
    BecameReady,
}

impl Batch {
    /// The length of the current line.
    pub(super) fn line_bytes(&self) -> u64 {
        self.line.end - self.line.start
    }

    /// Whether nothing has to be stored, sent or answered.
    pub(super) fn is_quiet(&self) -> bool {
        let Self { before, changes, after, .. } = self;
        let AfterLines { operation: _, gate, hooks, lines, replies, readiness, alarm } = after;
        before.is_empty()
            && changes.is_empty()
            && gate.is_empty()
            && hooks.is_empty()
            && lines.is_empty()
            && replies.is_empty()
            && *readiness == Readiness::Unchanged
            && alarm.is_none()
    }

    fn operation(&self) -> &'static str {
        let any = |notable: fn(&Change) -> bool| self.changes.iter().any(notable);
        if any(|change| matches!(change, Change::Ask(_))) {
            "ask"
        } else if any(|change| matches!(change, Change::Call(..))) {
            "gate"
        } else if any(|change| matches!(change, Change::EndTurn { .. })) {
            "end of turn"
        } else if self.after.readiness == Readiness::BecameReady {
            "ready"
        } else {
            "lines"
        }
    }
}

impl Machine {
    pub(super) fn on_lines(&mut self, entries: Vec<Entry>) {
        let Some(key) = self.process.as_ref().map(|process| process.key) else { return };
        let mut batch = self.read(key, entries);
        let operation = batch.operation();
        batch.after.operation = operation;
        if batch.after.alarm.is_some() {
            self.effects.push(Effect::Kill);
        }
        // A denial is safe without a record: it does not wait for the store. A hub that dies before the commit reads the
        // same lines again and denies again.
        for line in batch.before {
            self.send(line);
        }
        self.kill_point(operation, "read");
        if batch.changes.is_empty() {
            self.on_lines_stored(batch.after, &Committed::default());
        } else {
            self.commit_then(batch.changes, AfterCommit::Lines(Box::new(batch.after)));
        }
    }

    pub(super) fn on_lines_stored(&mut self, after: AfterLines, committed: &Committed) {
        let AfterLines { operation, gate, hooks, lines, replies, readiness, alarm } = after;
        self.kill_point(operation, "stored");
        for GateReply { tool_use_id, request_id, line } in gate {
            if committed.holds(&tool_use_id) {
                continue;
            }
            let line = if committed.is_outdated(&tool_use_id) {
                self.ask_for_outdated(&tool_use_id, &request_id)
            } else {
                line
            };
            self.send(line);
        }
        for line in lines {
            self.send(line);
        }
        for request_id in hooks {
            self.run_hooks(request_id);
        }
        self.kill_point(operation, "answered");
        self.load_held(committed);
        self.effects.extend(replies.into_iter().map(Effect::Reply));
        if let Some(cause) = alarm {
            return self.end_process(cause);
        }
        if readiness == Readiness::BecameReady {
            self.send_prompt();
        }
    }

    /// Turns lines into a batch.
    fn read(&mut self, key: RunKey, entries: Vec<Entry>) -> Batch {
        let mut batch = Batch::default();
        let before = self.turn.as_ref().map(|turn| (turn.number, turn.progress.clone()));
        let limit = self.shared.settings.limits.event_bytes;
        let start_offset = entries.first().map_or(0, |entry| entry.start);
        let mut end_offset = start_offset;
        for entry in entries {
            let Entry { mut message, start, end } = entry;
            end_offset = end;
            batch.line = JournalRange { run: key.run, start, end };
            batch.truncated =
                if end - start > limit as u64 { truncate(&mut message, limit, batch.line) } else { None };
            self.detect_trouble(&message, &mut batch);
            self.on_message(key, message, &mut batch);
        }
        self.restart_stall_timer();
        self.update_clock();
        let same_turn =
            before.as_ref().map(|(number, _)| *number) == self.turn.as_ref().map(|turn| turn.number);
        let progress_before = before.as_ref().map(|(_, progress)| progress);
        let bytes = end_offset - start_offset;
        if same_turn && self.postpone(&batch, progress_before, bytes, (key, end_offset)) {
            return batch;
        }
        let unstored_cost = self.take_unstored_cost();
        let changed = !same_turn || self.turn.as_ref().map(|turn| &turn.progress) != progress_before;
        if self.turn.is_some() && (changed || unstored_cost) {
            batch.changes.push(self.progress());
        }
        batch.changes.push(Change::JournalOffset(key, end_offset));
        batch
    }

    fn on_message(&mut self, key: RunKey, message: Incoming, batch: &mut Batch) {
        match message {
            Incoming::Request(request) => self.on_request(key, request, batch),
            Incoming::Response(response) => self.on_response(response, batch),
            Incoming::Cancel { request_id } => self.on_cancel(&request_id, batch),
            Incoming::System(system) => self.on_system(key, system, batch),
            Incoming::Assistant(assistant) => self.on_assistant(key, assistant, batch),
            Incoming::User(user) => self.on_user(key, user, batch),
            Incoming::Result(result) => self.on_result(key, result, batch),
            Incoming::Other { kind, data } => self.note(&kind, Value::Object(data), batch),
            Incoming::Rubbish { text } => self.note("rubbish", json!({"text": text}), batch),
            Incoming::Delta(delta) => self.effects.push(Effect::Publish(delta)),
            Incoming::KeepAlive | Incoming::Blank => {}
        }
    }

    /// The last result ends the turn. Each earlier one becomes an event when the next arrives.
    fn on_result(&mut self, key: RunKey, result: TurnResult, batch: &mut Batch) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.progress.belongs_to_earlier_work(&result))
        else {
            return self.note("result", json!({"result": result.result, "subtype": result.subtype}), batch);
        };
        if result.subtype == COST_LIMIT_REACHED {
            // Claude Code would still run the calls that it has requested or is about to request.
            turn.progress.spent_run = Some(key.run);
            batch.after.alarm = Some(Cause::Ended);
        }
        let earlier = turn.progress.add_result(result);
        let over = turn.progress.is_over_by_result();
        if let Some(earlier) = earlier {
            self.note("result", json!({"result": earlier.text, "subtype": earlier.subtype}), batch);
        }
        if over {
            self.end_turn_by_result(key, batch);
        }
    }

    fn on_request(&mut self, key: RunKey, request: Request, batch: &mut Batch) {
        let id = request.request_id;
        if self.is_spent(key.run) {
            let reason = "The cost budget is exhausted, so this call is denied.";
            return deny_request(&id, &request.body, reason, batch);
        }
        if self.is_compacting() {
            let reason = "The conversation is being compacted, so this call is denied.";
            return deny_request(&id, &request.body, reason, batch);
        }
        match request.body {
            RequestBody::Gate(call) => {
                self.ensure_turn(key.run, &mut batch.changes);
                self.on_gate(key, &id, &call, batch);
            }
            RequestBody::Ask(ask) => {
                self.ensure_turn(key.run, &mut batch.changes);
                self.on_can_use_tool(key, &id, *ask, batch);
            }
            RequestBody::Hook(callback) => self.on_hook(key, &id, callback, batch),
            RequestBody::InvalidHookRequest { event, why } => self.on_invalid_hook(&id, event, &why, batch),
            RequestBody::InvalidGateRequest { why } => {
                let reason = format!("Plexus could not read this call, so it is denied: {why}");
                batch.before.push(plexus_claude::reply_gate(&id, &GateAnswer::Deny { reason }));
                self.note("gate_denied", json!({"request_id": id, "why": why}), batch);
            }
            RequestBody::InvalidPermissionRequest { why } => {
                let message =
                    format!("Plexus could not read this approval request, so the call is denied: {why}");
                let answer = PermissionResult::Deny { message, interrupt: false };
                batch.before.push(plexus_claude::reply_permission(&id, &answer));
                self.note("ask_denied", json!({"request_id": id, "why": why}), batch);
            }
            RequestBody::Unknown { subtype } => {
                let message = format!("Plexus does not support the request `{subtype}`");
                batch.before.push(plexus_claude::reply_error(&id, &message));
                self.note("unknown_request", json!({"request_id": id, "subtype": subtype}), batch);
            }
        }
    }

    /// Whether a run has reached its cost limit. Its process is killed, and what it still writes starts no turn.
    pub(super) fn is_spent(&self, run: u32) -> bool {
        self.turn.as_ref().map_or(&self.last_progress, |turn| &turn.progress).spent_run == Some(run)
    }

    fn on_assistant(&mut self, key: RunKey, assistant: Assistant, batch: &mut Batch) {
        if self.is_spent(key.run) && self.turn.is_none() {
            return;
        }
        self.ensure_turn(key.run, &mut batch.changes);
        if assistant.parent_tool_use_id.is_none() {
            self.add_assistant_message(&assistant, batch);
        }
        let parent = assistant.parent_tool_use_id;
        for block in assistant.blocks {
            let (parent_tool_use_id, truncated) = (parent.clone(), batch.truncated);
            let event = match block {
                Block::Text { text } => Event::Content { text, parent_tool_use_id, truncated },
                Block::Thinking { text } => Event::Thinking { text, parent_tool_use_id, truncated },
                Block::ToolUse { id, name, input } => {
                    Event::ToolUse { tool_name: name, tool_use_id: id, input, parent_tool_use_id, truncated }
                }
                Block::ToolResult { tool_use_id, content: output, is_error } => Event::ToolResult {
                    tool_use_id,
                    output,
                    is_error,
                    parent_tool_use_id,
                    truncated,
                    patch: Vec::new(),
                },
                Block::Other { kind, data } => Event::System { subtype: kind, data },
            };
            self.event(event, batch);
        }
        if let Some(error) = assistant.error {
            self.note("assistant_error", json!({"error": error}), batch);
        }
    }

    fn on_user(&mut self, key: RunKey, user: User, batch: &mut Batch) {
        if user.is_replay {
            if let (Some(turn), Some(read)) = (self.turn.as_mut(), user.uuid) {
                let prompt = turn.bound.as_ref().and_then(|bound| bound.prompt_uuid.as_ref());
                let mut confirmed = Vec::new();
                if prompt == Some(&read) {
                    turn.progress.acknowledged = true;
                    confirmed.extend(turn.progress.prompt_node.take());
                }
                let read = turn.progress.unread_messages.extract_if(.., |message| message.uuid == read);
                confirmed.extend(read.filter_map(|message| message.node));
                self.unread_files.retain(|node, _| !confirmed.contains(node));
            }
            return;
        }
        if user.parent_tool_use_id.is_none()
            && let Some(details) = self.turn.as_mut().and_then(|turn| turn.progress.compaction.take_details())
        {
            self.add_summary(&user, &details, batch);
        }
        let results = user.blocks.iter().filter(|block| matches!(block, Block::ToolResult { .. })).count();
        // The CLI does not say to which of several results a change belongs.
        let mut patch = if results == 1 { user.patch.into_iter().map(hunk).collect() } else { Vec::new() };
        if results > 0 && user.parent_tool_use_id.is_none() {
            self.add_results(&user.blocks, batch);
        }
        for block in user.blocks {
            let parent_tool_use_id = user.parent_tool_use_id.clone();
            match block {
                Block::ToolResult { tool_use_id, content: output, is_error } => {
                    self.running_tools.remove(&tool_use_id);
                    if !self.row.config.loopback_enabled {
                        // Without a gate this is the first line about the call that has its cost.
                        self.ask_for_cost(&tool_use_id, batch);
                    }
                    let bypass = self.on_tool_result(key, &tool_use_id, &mut batch.changes);
                    if let Some(bypass) = bypass
                        && !is_error
                        && !self.ungated.contains(&tool_use_id)
                    {
                        let message = format!("call {tool_use_id} {bypass}, so the session was stopped");
                        batch.after.alarm = Some(Cause::Failed("gate_bypassed", message));
                    }
                    let truncated = batch.truncated;
                    let event = Event::ToolResult {
                        tool_use_id,
                        output,
                        is_error,
                        parent_tool_use_id,
                        truncated,
                        patch: std::mem::take(&mut patch),
                    };
                    self.event(event, batch);
                }
                Block::Text { text } => self.note("user", json!({"text": text}), batch),
                Block::Thinking { text } => self.note("user", json!({"thinking": text}), batch),
                Block::ToolUse { id, name, input } => {
                    self.note("user", json!({"id": id, "name": name, "input": input}), batch);
                }
                Block::Other { kind, data } => self.note(&kind, Value::Object(data), batch),
            }
        }
    }

    pub(super) fn end_turn_by_result(&mut self, key: RunKey, batch: &mut Batch) {
        let head = self.head();
        let Some(ending) = self.turn.as_ref().and_then(|turn| turn.ending(head)) else { return };
        let withdrawn = self.withdraw_all(key, "the turn has finished");
        batch.changes.extend(withdrawn);
        self.end_turn(ending, &mut batch.changes);
    }

    fn event(&mut self, event: Event, batch: &mut Batch) {
        self.said.read(&event);
        if let Event::ToolUse { tool_name, tool_use_id, .. } = &event {
            self.running_tools.insert(tool_use_id.clone(), tool_name.clone());
            if tool_name == UNGATED_TOOL {
                self.ungated.insert(tool_use_id.clone());
            }
        }
        batch.changes.push(Change::Event(self.row.id, self.event_turn(), Arc::new(event)));
    }

    pub(super) fn note(&mut self, subtype: &str, data: Value, batch: &mut Batch) {
        batch.changes.push(self.system_event(subtype, data));
    }
}

/// Denies a request of a run that may not call tools now.
fn deny_request(id: &str, body: &RequestBody, reason: &str, batch: &mut Batch) {
    let reason = reason.to_owned();
    let line = match body {
        RequestBody::Gate(_) | RequestBody::InvalidGateRequest { .. } => {
            plexus_claude::reply_gate(id, &GateAnswer::Deny { reason })
        }
        RequestBody::Ask(_) | RequestBody::InvalidPermissionRequest { .. } => {
            plexus_claude::reply_permission(id, &PermissionResult::Deny { message: reason, interrupt: false })
        }
        RequestBody::Hook(HookCallback { event, .. }) | RequestBody::InvalidHookRequest { event, .. } => {
            plexus_claude::reply_hook(id, *event, &HookAnswer::of_failure(*event, reason))
        }
        RequestBody::Unknown { .. } => plexus_claude::reply_error(id, &reason),
    };
    batch.before.push(line);
}

fn hunk(plexus_claude::Hunk { old_start, new_start, lines }: plexus_claude::Hunk) -> Hunk {
    Hunk { old_start, new_start, lines }
}
