//! Handles the events of the session, text deltas, and the approvals of sessions below it.

use plexus_protocol::claudecode::{PollResult, Status};
use plexus_protocol::{Approval, ApprovalStatus, Decider, SessionId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answering::Awaiting;
use super::screen::OutputMode;
use super::text_stream::{Part, Place};
use super::{Format, TerminalSession};
use crate::answer_confirmation::Resolution;
use crate::error::ExpectedError;
use crate::follow::StreamItem;
use crate::terminal::{one_line, size, tool_line};
use crate::{answer_confirmation, output};

/// The longest action in the status line, which is cut to the width.
const ACTION: usize = 200;

impl TerminalSession<'_> {
    /// Handles an event of the session. Returns the status of its turn if the conversation ends with it.
    pub(super) async fn on_event(&mut self, item: StreamItem) -> Result<Option<Status>, ExpectedError> {
        let (kind, mut data) = match item {
            StreamItem::Event { kind, data } => (kind, data),
            StreamItem::Connected => return Ok(None),
            StreamItem::Disconnected => {
                self.disconnected(&ExpectedError::Lost("it does not respond".to_owned()));
                return Ok(None);
            }
        };
        if kind.as_deref() == Some("delta") {
            self.print_delta(&data);
            return Ok(None);
        }
        self.add_prompt(&mut data).await;
        let event = &data["event"];
        let what = event["type"].as_str().unwrap_or_default();
        if what == "start" {
            self.turn = data["turn"].as_u64().unwrap_or(self.turn);
            (self.status, self.since, self.interrupting) = (Status::Running, Instant::now(), false);
            self.tools.clear();
            self.stream.clear();
        }
        if what == "content" {
            self.held.clear();
        }
        self.show(&data, what);
        self.track_call(event, what);
        match what {
            "tool_result" => {
                if self.tools.is_empty() && !self.held.is_empty() && self.awaiting == Awaiting::Nothing {
                    let held = std::mem::take(&mut self.held);
                    self.stream_text(&held);
                }
                Ok(None)
            }
            "approval_requested" => {
                let id = event["approval_id"].as_str().unwrap_or_default();
                self.fetch_approval(id.to_owned()).await?;
                Ok(None)
            }
            "approval_resolved" => {
                let status = serde_json::from_value(event["status"].clone());
                let by = serde_json::from_value::<Decider>(event["by"].clone()).ok();
                self.resolved(event["approval_id"].as_str().unwrap_or_default(), |approval| match status {
                    Ok(status) => {
                        let updated_input = event["updated_input"].as_object();
                        answer_confirmation::ended(
                            approval,
                            status,
                            Resolution { by: by.as_ref(), updated_input },
                        )
                    }
                    Err(_) => "the approval is no longer open".to_owned(),
                });
                Ok(None)
            }
            "complete" | "error" => {
                self.cost_usd += event["cost_usd"].as_f64().unwrap_or(0.0);
                self.ended(&data).await
            }
            _ => Ok(None),
        }
    }

    /// Adds the prompt to an event that starts a turn, unless the user gave it here.
    pub(super) async fn add_prompt(&mut self, item: &mut Value) {
        if self.screen.output_mode == OutputMode::Json {
            return;
        }
        let turn = item["turn"].as_u64().unwrap_or(self.turn);
        self.own_prompts.add_text_of_others(self.hub, turn, &mut item["event"]).await;
    }

    /// Tracks the calls that have no result yet.
    pub(super) fn track_call(&mut self, event: &Value, what: &str) {
        let call = event["tool_use_id"].as_str().unwrap_or_default();
        match what {
            "tool_use" => {
                let tool = event["tool_name"].as_str().unwrap_or_default();
                let empty = serde_json::Map::new();
                let line = tool_line(tool, event["input"].as_object().unwrap_or(&empty), ACTION);
                self.tools.insert(call.to_owned(), format!("{} {line}", one_line(tool, 60)));
            }
            "tool_result" => drop(self.tools.remove(call)),
            _ => {}
        }
    }

    pub(super) fn show(&mut self, data: &Value, what: &str) {
        if self.screen.output_mode == OutputMode::Json {
            output::json_line(data);
            return;
        }
        let ends = matches!(what, "complete" | "error");
        if ends {
            self.show_held_lines();
            if let Some(rest) = self.stream.take_rest() {
                self.show_text(&rest, "");
            }
        }
        let event = &data["event"];
        let lines = match &mut self.shown {
            // At a terminal the approval itself is shown.
            Format::Plain(_)
                if what == "approval_requested" && self.screen.output_mode == OutputMode::Terminal =>
            {
                return;
            }
            Format::Plain(events) => events.event(event),
            Format::Rendered(_) if what == "content" => {
                let text = event["text"].as_str().unwrap_or_default();
                let whole = || Part { text: text.to_owned(), place: Place::First };
                let (part, inner) = match event["parent_tool_use_id"].is_string() {
                    true => (Some(whole()), "  "),
                    false => (self.stream.finish(text), ""),
                };
                if let Some(part) = part {
                    self.show_text(&part, inner);
                }
                return;
            }
            Format::Rendered(transcript) => transcript.event(event, size().0),
        };
        match lines {
            None => {}
            Some(lines) if ends || self.awaiting == Awaiting::Nothing => self.screen.lines(&lines),
            Some(lines) => self.held_lines.push(lines),
        }
    }

    /// Shows a part of the agent's text, now or after the approval on the screen.
    fn show_text(&mut self, part: &Part, inner: &str) {
        let Format::Rendered(transcript) = &self.shown else { return };
        let lines = transcript.text(part, inner, size().0);
        match self.awaiting {
            Awaiting::Nothing => self.screen.lines(&lines),
            _ => self.held_lines.push(lines),
        }
    }

    /// Adds text that arrives, and shows the blocks that are complete.
    fn stream_text(&mut self, text: &str) {
        if let Some(part) = self.stream.push(text) {
            self.show_text(&part, "");
        }
    }

    /// Shows the lines that were held back while an approval was on the screen.
    pub(super) fn show_held_lines(&mut self) {
        if let Some(lines) = self.held_lines.take() {
            self.screen.lines(&lines);
        }
    }

    fn print_delta(&mut self, delta: &Value) {
        let alone = matches!(self.shown, Format::Rendered(_)) && self.awaiting == Awaiting::Nothing;
        let text = delta["event"]["delta"]["text"].as_str();
        if let Some(text) = text.filter(|_| alone && delta["parent_tool_use_id"].is_null()) {
            if self.tools.is_empty() {
                self.stream_text(text);
            } else {
                self.held.push_str(text);
            }
        }
    }

    /// Updates the status after the last event of a turn, and checks whether the conversation ends.
    async fn ended(&mut self, data: &Value) -> Result<Option<Status>, ExpectedError> {
        let next = data["seq"].as_u64().map_or(0, |seq| seq + 1);
        let turn = data["turn"].as_u64().unwrap_or(self.turn);
        let poll = json!({"session_id": self.id, "turn": turn, "from_seq": next, "limit": 1});
        let PollResult::Ok { status, .. } = self.hub.call("claudecode.poll", poll).await?;
        self.status = status;
        Ok(self.final_status(turn))
    }

    /// Handles a new or resolved approval of a session below this one.
    pub(super) async fn on_approval_event(&mut self, item: StreamItem) -> Result<(), ExpectedError> {
        let StreamItem::Event { data, .. } = item else { return Ok(()) };
        let Ok(approval) = serde_json::from_value::<Approval>(data["approval"].clone()) else {
            return Ok(());
        };
        let id = approval.id.to_string();
        if approval.status != ApprovalStatus::Pending {
            self.resolved(&id, |_| answer_confirmation::ending(&approval));
        } else if approval.session_id != self.id
            && approval.asked_of == plexus_protocol::AskedOf::Operator
            && self.is_below(approval.session_id).await?
        {
            self.fetch_approval(id).await?;
        }
        Ok(())
    }

    /// Adds the open approvals of sessions below this one.
    pub(crate) async fn add_pending(&mut self, pending: Vec<Approval>) -> Result<(), ExpectedError> {
        for approval in pending {
            self.on_approval_event(StreamItem::Event { kind: None, data: json!({"approval": approval}) })
                .await?;
        }
        Ok(())
    }

    async fn is_below(&self, other: SessionId) -> Result<bool, ExpectedError> {
        let sessions = self.hub.all_sessions().await?;
        let mut rest = sessions.iter().skip_while(|session| session.id != self.id);
        let Some(own) = rest.next() else { return Ok(false) };
        Ok(rest.take_while(|session| session.depth > own.depth).any(|session| session.id == other))
    }
}
