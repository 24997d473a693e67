//! Handles a finished line for the agent: a command of Plexus, a message into the running turn, or the prompt of the next turn.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::typed_command::TypedLine;
use super::{Purpose, TerminalSession};
use crate::attachments;
use crate::client::CallError;
use crate::error::ExpectedError;
use crate::terminal::one_line;

impl TerminalSession<'_> {
    /// Handles a line for the agent: a command of Plexus, or text.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), ExpectedError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if self.purpose != Purpose::Stay {
            let name = &self.name;
            self.screen.say(&format!("plexus: run takes no messages; `plexus attach {name}` sends one"));
            return Ok(());
        }
        match TypedLine::read(line) {
            TypedLine::Text(text) => return self.send_text(&text).await,
            TypedLine::Compact(instructions) => {
                let params = json!({"session_id": self.id, "instructions": instructions});
                let started = self.hub.client.call("claudecode.compact", params).await;
                if let Ok(started) = &started {
                    self.own_prompts.add_turn(started["turn"].as_u64().unwrap_or_default());
                }
                return self.report_refusal(started);
            }
            TypedLine::Attach(file) => self.attach_file(file),
            TypedLine::AttachWhat => self.screen.say("plexus: name a file: /attach shot.png"),
            TypedLine::Unknown(word) => self.screen.say(&format!(
                "plexus: /{word} is not a command here. /compact [INSTRUCTIONS] and /attach FILE are; other text goes to the agent \
                 literally. To send this line as text, start it with a space."
            )),
        }
        Ok(())
    }

    /// Adds a file to the next message.
    fn attach_file(&mut self, file: PathBuf) {
        let mut files = self.attached.clone();
        files.push(file);
        match attachments::read(&files) {
            Ok(_) => {
                self.attached = files;
                self.screen.say("plexus: attached to your next line");
            }
            Err(error) => self.screen.say(&format!("plexus: {}", one_line(&error.to_string(), 400))),
        }
    }

    /// Sends a message to the agent: into its turn, or as the next prompt.
    async fn send_text(&mut self, line: &str) -> Result<(), ExpectedError> {
        let mut words = json!({"session_id": self.id, "prompt": line});
        if !self.attached.is_empty() {
            // The files may have changed since.
            match attachments::read(&self.attached) {
                Ok(files) => words["attachments"] = Value::Array(files),
                Err(error) => {
                    self.attached.clear();
                    self.screen
                        .say(&format!("plexus: {}; nothing was sent", one_line(&error.to_string(), 400)));
                    return Ok(());
                }
            }
        }
        let (mut method, other) = match self.busy() {
            true => ("claudecode.send", "claudecode.chat_async"),
            false => ("claudecode.chat_async", "claudecode.send"),
        };
        let mut sent = self.hub.client.call(method, words.clone()).await;
        // The turn may have ended or started meanwhile.
        if matches!(&sent, Err(CallError::Refused { kind, .. }) if kind == "no_turn" || kind == "turn_in_progress")
        {
            method = other;
            sent = self.hub.client.call(method, words).await;
        }
        if let Ok(sent) = &sent {
            self.attached.clear();
            match (method, sent["turn"].as_u64()) {
                ("claudecode.chat_async", Some(turn)) => self.own_prompts.add_turn(turn),
                _ => self.own_prompts.add_message(line),
            }
        }
        self.report_refusal(sent)
    }

    fn report_refusal(&mut self, sent: Result<Value, CallError>) -> Result<(), ExpectedError> {
        match sent.map_err(|error| self.hub.explain(error)) {
            Ok(_) => Ok(()),
            Err(ExpectedError::Refused(why)) => {
                self.screen.say(&format!("plexus: {why}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
