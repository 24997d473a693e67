//! What the child wrote, turned into what is to be stored and done. Nothing here waits or writes: a [`Batch`] comes
//! out, and the owner stores it and acts upon it.

use plexus_agent::{Entry, Walled, read_wall};
use plexus_claude::{
    Assistant, Block, GateAnswer, Incoming, PermissionResult, Request, RequestBody, System, TurnResult, User,
};
use plexus_protocol::claudecode::{Channel, PermissionMode};
use plexus_protocol::{Event, JournalRange, Object};
use plexus_store::{Change, RunKey, TurnStatus};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::changes::Reply;
use super::cut::cut;
use super::ending::Cause;
use super::owner::Owner;
use super::run::{CONNECTING_PAUSE, Phase};
use super::turn::{Ending, Turn};

/// The one tool Claude Code is known to run without asking its hooks; all it does is end the conversation.
const NOT_AT_THE_GATE: &str = "EndConversation";

/// What came of some lines.
#[derive(Default)]
pub(super) struct Batch {
    /// Lines to send whether or not the rest can be stored: refusals.
    pub(super) before: Vec<String>,
    /// What is to be stored, in one commit.
    pub(super) changes: Vec<Change>,
    /// Lines to send once it is.
    pub(super) after: Vec<String>,
    /// What is said to calls at the gate, for those that are not held, once it is stored.
    pub(super) gated: Vec<(String, String)>,
    /// What the child answered to requests of ours, for whoever waits.
    pub(super) answers: Vec<(Reply, Result<(), String>)>,
    /// The child has become ready for a prompt.
    pub(super) ready: bool,
    /// The child has to be ended at once.
    pub(super) alarm: Option<Cause>,
    /// Held until it is stored, where it is large.
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// The length of the line that is being looked at.
    pub(super) line_bytes: u64,
    /// Where that line stands, if its events are not the whole of it.
    cut: Option<JournalRange>,
}

impl Batch {
    /// What is most notable in it, in a word.
    pub(super) fn what(&self) -> &'static str {
        let any = |notable: fn(&Change) -> bool| self.changes.iter().any(notable);
        if any(|change| matches!(change, Change::Ask(_))) {
            "ask"
        } else if any(|change| matches!(change, Change::Call(..))) {
            "gate"
        } else if any(|change| matches!(change, Change::EndTurn { .. })) {
            "end of turn"
        } else if self.ready {
            "ready"
        } else {
            "lines"
        }
    }
}

impl Owner {
    /// Turns lines into a batch.
    pub(super) fn digest(&mut self, entries: Vec<Entry>) -> Batch {
        let mut batch = Batch::default();
        let Some(key) = self.run.as_ref().map(|run| run.key) else { return batch };
        let before = self.turn.as_ref().map(|turn| (turn.number, turn.progress.clone()));
        let most = self.hub.settings().limits.event_bytes;
        let mut end = 0;
        for entry in entries {
            let Entry { mut message, start, end: after } = entry;
            end = after;
            batch.line_bytes = after - start;
            batch.cut = if batch.line_bytes > most as u64 {
                cut(&mut message, most, JournalRange { run: key.run, start, end })
            } else {
                None
            };
            self.look_for_trouble(&message, &mut batch);
            self.on_message(key, message, &mut batch);
        }
        self.listen_for_quiet();
        self.keep_clock();
        let after = self.turn.as_ref().map(|turn| (turn.number, turn.progress.clone()));
        if after.is_some() && after != before {
            batch.changes.push(self.progress());
        }
        batch.changes.push(Change::JournalOffset(key, end));
        batch
    }

    /// The progress of the turn in progress, to be stored.
    pub(super) fn progress(&self) -> Change {
        match &self.turn {
            Some(turn) => turn.progress.change(self.row.id, turn.number),
            None => self.last_progress.change(self.row.id, self.row.latest_turn),
        }
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
            Incoming::Delta(delta) => self.hub.deltas().tell(self.row.id, delta),
            Incoming::KeepAlive | Incoming::Blank => {}
        }
    }

    /// Earlier results of a turn are told as they are overtaken; the last one ends it.
    fn on_result(&mut self, key: RunKey, result: TurnResult, batch: &mut Batch) {
        let Some(turn) = self.turn.as_mut() else {
            self.note("result", json!({"result": result.result, "subtype": result.subtype}), batch);
            return;
        };
        if turn.progress.is_of_other_work(&result) {
            self.note("result", json!({"result": result.result, "subtype": result.subtype}), batch);
            return;
        }
        let earlier = turn.progress.take_result(result);
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
        match request.body {
            RequestBody::Gate(call) => {
                self.ensure_turn(key, batch);
                self.on_gate(key, &id, &call, batch);
            }
            RequestBody::Ask(ask) => {
                self.ensure_turn(key, batch);
                self.on_ask(key, &id, *ask, batch);
            }
            RequestBody::BadGate { why } => {
                let reason = format!("Plexus could not read this call, so it is denied: {why}");
                batch.before.push(plexus_claude::reply_gate(&id, &GateAnswer::Deny { reason }));
                self.note("gate_denied", json!({"request_id": id, "why": why}), batch);
            }
            RequestBody::BadAsk { why } => {
                let message = format!("Plexus could not read this question, so it is denied: {why}");
                let answer = PermissionResult::Deny { message, interrupt: false };
                batch.before.push(plexus_claude::reply_ask(&id, &answer));
                self.note("ask_denied", json!({"request_id": id, "why": why}), batch);
            }
            RequestBody::Unknown { subtype } => {
                let message = format!("Plexus does not know the request `{subtype}`");
                batch.before.push(plexus_claude::reply_error(&id, &message));
                self.note("unknown_request", json!({"request_id": id, "subtype": subtype}), batch);
            }
        }
    }

    fn on_response(&mut self, response: plexus_claude::Response, batch: &mut Batch) {
        let asks_over_mcp = self.row.config.loopback_enabled && self.row.config.channel == Channel::Mcp;
        if let Some(asked) = self.requests.remove(&response.request_id) {
            let outcome = response.outcome.map(|_| ());
            let (change, reply) = self.settle(asked, outcome.is_ok());
            batch.changes.push(change);
            batch.answers.push((reply, outcome));
            return;
        }
        let Some(run) = self.run.as_mut() else { return };
        match (run.phase, response.outcome) {
            (Phase::Initializing, outcome) if response.request_id == run.initialize_id() => match outcome {
                Ok(_) if asks_over_mcp => {
                    run.phase = Phase::Connecting { again: None };
                    let number = run.key.run;
                    batch.after.push(plexus_claude::mcp_status(&format!("plexus-mcp-status-{number}")));
                    if let Some(turn) = self.turn.as_mut() {
                        turn.progress.initialized = Some(number);
                    }
                }
                Ok(_) => self.become_ready(batch),
                Err(error) => {
                    let message = format!("the agent refused to be supervised: {error}");
                    batch.alarm = Some(Cause::Failed("not_initialized", message));
                }
            },
            (Phase::Connecting { .. }, Ok(answer))
                if response.request_id.starts_with("plexus-mcp-status-") =>
            {
                let status = mcp_status_of(&answer, "plexus");
                match status.as_deref() {
                    Some("connected") => self.become_ready(batch),
                    Some("failed" | "needs-auth" | "disabled") => {
                        let message = "the agent could not reach Plexus's permission tool".to_owned();
                        batch.alarm = Some(Cause::Failed("no_permit_tool", message));
                    }
                    _ => run.phase = Phase::Connecting { again: Some(Instant::now() + CONNECTING_PAUSE) },
                }
            }
            _ => {}
        }
    }

    fn become_ready(&mut self, batch: &mut Batch) {
        let changed = self.changed_since_launch();
        let Some(run) = self.run.as_mut() else { return };
        run.phase = Phase::Ready;
        if let Some(Walled::None { reason }) = read_wall(&run.dir) {
            tracing::warn!(session = %self.row.id, reason, "an agent was started without a wall");
        }
        batch.ready = true;
        batch.after.extend(changed);
        let number = run.key.run;
        match self.turn.as_mut() {
            Some(turn) => turn.progress.ready = Some(number),
            None => {
                self.last_progress.ready = Some(number);
                batch.changes.push(self.progress());
            }
        }
    }

    fn on_system(&mut self, key: RunKey, system: System, batch: &mut Batch) {
        let text = |name: &str| system.data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match system.subtype.as_str() {
            "session_state_changed" => {
                if let Some(turn) = self.turn.as_mut() {
                    turn.progress.says_idle = true;
                }
                let over = text("state") == "idle"
                    && self.turn.as_ref().is_some_and(|turn| turn.progress.is_over_when_idle());
                if over {
                    self.end_turn_by_result(key, batch);
                }
                return;
            }
            "init" => {
                self.ensure_turn(key, batch);
                self.on_mode(key, &text("permissionMode"), batch);
            }
            "status" if system.data.get("permissionMode").is_some_and(Value::is_string) => {
                self.on_mode(key, &text("permissionMode"), batch);
            }
            "task_started" => {
                let ends_by_itself = matches!(text("task_type").as_str(), "local_agent" | "local_workflow");
                if let Some(turn) = self.turn.as_mut().filter(|_| ends_by_itself) {
                    turn.progress.tasks.insert(text("task_id"));
                }
            }
            "task_notification" => self.task_ended(&text("task_id")),
            "task_updated" => {
                let status =
                    system.data.get("patch").and_then(|patch| patch.get("status")).and_then(Value::as_str);
                if matches!(status, Some("completed" | "failed" | "killed")) {
                    self.task_ended(&text("task_id"));
                }
            }
            _ => {}
        }
        self.note(&system.subtype, Value::Object(system.data), batch);
    }

    /// The child says which mode it is in. One that is looser than it was told ends it; one that is stricter, such as
    /// planning of its own accord, is taken note of.
    fn on_mode(&mut self, key: RunKey, reported: &str, batch: &mut Batch) {
        let told = self.row.config.permission_mode;
        let mode = PermissionMode::named(reported);
        let progress = self.turn.as_mut().map_or(&mut self.last_progress, |turn| &mut turn.progress);
        let is_first = progress.met.replace(key.run) != Some(key.run);
        match mode {
            Some(mode) if mode == told || self.is_asked_for(mode) => {}
            Some(mode) if mode.looseness() < told.looseness() && !is_first => {
                self.row.config.permission_mode = mode;
                batch.changes.push(Change::Configure(self.row.id, Box::new(self.row.config.clone())));
                self.note("mode_changed", json!({"mode": reported, "by": "agent"}), batch);
            }
            _ => {
                let message = format!("the agent is in mode `{reported}`, not `{}`", told.as_str());
                batch.alarm = Some(Cause::Failed("wrong_mode", message));
            }
        }
    }

    fn task_ended(&mut self, task_id: &str) {
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.tasks.remove(task_id);
        }
    }

    fn on_assistant(&mut self, key: RunKey, assistant: Assistant, batch: &mut Batch) {
        self.ensure_turn(key, batch);
        if assistant.parent_tool_use_id.is_none() {
            self.add_said(&assistant, batch);
        }
        let parent = assistant.parent_tool_use_id;
        for block in assistant.blocks {
            let (parent_tool_use_id, truncated) = (parent.clone(), batch.cut);
            let event = match block {
                Block::Text { text } => Event::Content { text, parent_tool_use_id, truncated },
                Block::Thinking { text } => Event::Thinking { text, parent_tool_use_id, truncated },
                Block::ToolUse { id, name, input } => {
                    Event::ToolUse { tool_name: name, tool_use_id: id, input, parent_tool_use_id, truncated }
                }
                Block::ToolResult { tool_use_id, content: output, is_error } => {
                    Event::ToolResult { tool_use_id, output, is_error, parent_tool_use_id, truncated }
                }
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
                turn.progress.acknowledged |= turn.bound.as_ref().is_some_and(|(_, uuid)| *uuid == read);
                turn.progress.sends.retain(|message| message.uuid != read);
            }
            return;
        }
        let results = user.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        if results && user.parent_tool_use_id.is_none() {
            self.add_results(&user.blocks, batch);
        }
        for block in user.blocks {
            let parent_tool_use_id = user.parent_tool_use_id.clone();
            match block {
                Block::ToolResult { tool_use_id, content, is_error } => {
                    self.on_result_block(key, tool_use_id, content, is_error, parent_tool_use_id, batch);
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

    fn on_result_block(
        &mut self,
        key: RunKey,
        tool_use_id: String,
        output: Value,
        is_error: bool,
        parent_tool_use_id: Option<String>,
        batch: &mut Batch,
    ) {
        self.at_work.remove(&tool_use_id);
        let wrong = self.on_tool_result(key, &tool_use_id, is_error, &mut batch.changes);
        if let Some(wrong) = wrong.filter(|_| !self.ungated.contains(&tool_use_id)) {
            let message = format!("the call {tool_use_id} {wrong}; the session was stopped");
            batch.alarm = Some(Cause::Failed("gate_bypassed", message));
        }
        let truncated = batch.cut;
        self.event(Event::ToolResult { tool_use_id, output, is_error, parent_tool_use_id, truncated }, batch);
    }

    /// A message that comes when no turn runs is the child's own doing: that is a turn, too.
    fn ensure_turn(&mut self, key: RunKey, batch: &mut Batch) {
        if self.turn.is_some() {
            return;
        }
        let number = self.row.latest_turn + 1;
        self.row.latest_turn = number;
        let session = self.row.id;
        let progress = self.last_progress.next();
        batch.changes.push(Change::StartTurn {
            session,
            turn: number,
            prompt: String::new(),
            woken_to: None,
        });
        batch.changes.push(Change::BindTurn {
            session,
            turn: number,
            run: key.run,
            prompt_uuid: String::new(),
        });
        let turn = Turn {
            number,
            prompt: String::new(),
            bound: Some((key.run, String::new())),
            stopped: None,
            progress,
        };
        self.turn = Some(turn);
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.acknowledged = true;
        }
        let start =
            Event::Start { id: session, user_position: self.head(), origin: Some("background".to_owned()) };
        self.event(start, batch);
        batch.changes.push(self.progress());
    }

    fn end_turn_by_result(&mut self, key: RunKey, batch: &mut Batch) {
        let head = self.head();
        let Some(ending) = self.turn.as_ref().and_then(|turn| turn.ending(head)) else { return };
        let withdrawn = self.withdraw_all(key, "the turn is over");
        batch.changes.extend(withdrawn);
        self.end_turn(ending, &mut batch.changes);
    }

    /// Ends the turn in progress, if there is one.
    pub(super) fn end_turn(&mut self, ending: Ending, changes: &mut Vec<Change>) {
        changes.extend(self.last_time());
        if self.turn.is_none() {
            return;
        }
        let Ending { status, mut last, summary } = ending;
        self.add_outcome(status, &mut last, changes);
        let Some(turn) = self.turn.take() else { return };
        self.last_progress = turn.progress;
        if let Some(run) = self.run.as_mut() {
            run.interrupt_by = None;
            run.stall_by = None;
            run.idle_by = self.hub.settings().idle_after.map(|idle| Instant::now() + idle);
        }
        self.message = None;
        self.ungated.clear();
        self.at_work.clear();
        let (session, number) = (self.row.id, turn.number);
        changes.push(self.progress());
        // What was asked of it meanwhile may still be open. Whoever ended the turn wants it to rest.
        self.asked_for = self.row.config.wake && status != TurnStatus::Interrupted;
        let (last, cost_usd) = (Box::new(last), self.last_progress.cost());
        changes.push(Change::EndTurn { session, turn: number, status, last, summary, cost_usd });
    }

    fn event(&mut self, event: Event, batch: &mut Batch) {
        if let Event::ToolUse { tool_name, tool_use_id, .. } = &event {
            self.at_work.insert(tool_use_id.clone(), tool_name.clone());
            if tool_name == NOT_AT_THE_GATE {
                self.ungated.insert(tool_use_id.clone());
            }
        }
        batch.changes.push(Change::Event(self.row.id, self.event_turn(), Box::new(event)));
    }

    fn note(&mut self, subtype: &str, data: Value, batch: &mut Batch) {
        let data = match data {
            Value::Object(data) => data,
            other => Object::from_iter([("value".to_owned(), other)]),
        };
        self.event(Event::System { subtype: subtype.to_owned(), data }, batch);
    }
}

fn mcp_status_of(answer: &Object, server: &str) -> Option<String> {
    let servers = answer.get("mcpServers")?.as_array()?;
    let ours = servers.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(server))?;
    ours.get("status")?.as_str().map(str::to_owned)
}
