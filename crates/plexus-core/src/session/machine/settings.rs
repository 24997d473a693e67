//! Changes to a session while it runs: its mode, its model, its trusted project, and messages added to its turn. The child
//! is asked to change its mode or model; the caller waits for the child's answer.

use std::sync::Arc;

use plexus_claude::AttachedFile;
use plexus_protocol::claudecode::{PermissionMode, TrustedProject};
use plexus_protocol::{Error, ErrorKind, Event};
use plexus_store::{Change, SessionConfig, StoreError};
use serde_json::json;
use tokio::sync::oneshot;

use super::effect::AfterConfigure;
use super::progress::UnreadMessage;
use super::{AfterTry, Cause, Effect, Machine, Reply};
use crate::attachments::{Attachment, Attachments};
use crate::errors::store_error;
use crate::session::PromptFormat;

type Changed = oneshot::Sender<Result<(), Error>>;

/// A control request that the child has not answered.
pub(in crate::session) struct PendingRequest {
    reply: Changed,
    /// The setting to store when the child has accepted it.
    wanted: Setting,
    /// The setting to restore if the child refuses.
    before: Setting,
}

/// A setting that a running child can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Mode(PermissionMode),
    Model(Option<String>),
}

impl Setting {
    fn apply_to(self, mut config: SessionConfig) -> SessionConfig {
        match self {
            Self::Mode(mode) => config.permission_mode = mode,
            Self::Model(model) => config.model = model,
        }
        config
    }

    fn line(&self, id: &str) -> String {
        match self {
            Self::Mode(mode) => plexus_claude::set_permission_mode(id, mode.as_str()),
            Self::Model(model) => plexus_claude::set_model(id, model.as_deref()),
        }
    }
}

/// When a new setting becomes durable.
enum Durable {
    BeforeChildKnows,
    OnceChildAccepts,
}

impl Machine {
    /// Changes the mode. A looser mode is durable before the child learns of it, a stricter one when the child has
    /// accepted it: the child is never in a looser mode than the stored one.
    pub(super) fn set_mode(&mut self, mode: PermissionMode, reply: Changed) {
        let current = self.row.config.permission_mode;
        let durable = if mode.looseness() > current.looseness() {
            Durable::BeforeChildKnows
        } else {
            Durable::OnceChildAccepts
        };
        let (before, wanted) = (Setting::Mode(current), Setting::Mode(mode));
        self.change(PendingRequest { reply, wanted, before }, &durable);
    }

    pub(super) fn set_model(&mut self, model: Option<String>, reply: Changed) {
        let before = Setting::Model(self.row.config.model.clone());
        let request = PendingRequest { reply, wanted: Setting::Model(model), before };
        self.change(request, &Durable::OnceChildAccepts);
    }

    /// Asks a process that is ready. The next process starts with the new setting, and a process that is starting learns
    /// of it before its first prompt.
    fn change(&mut self, request: PendingRequest, durable: &Durable) {
        let config = || Box::new(request.wanted.clone().apply_to(self.row.config.clone()));
        let (config, after) = match (self.is_ready(), durable) {
            (true, Durable::OnceChildAccepts) => return self.ask_child(request),
            (true, Durable::BeforeChildKnows) => (config(), AfterConfigure::AskChild(request)),
            (false, _) => (config(), AfterConfigure::Reply(request.reply)),
        };
        self.try_configure(config, after, Vec::new());
    }

    fn ask_child(&mut self, request: PendingRequest) {
        let id = format!("plexus-change-{}", uuid::Uuid::new_v4());
        let line = request.wanted.line(&id);
        self.requests.insert(id, request);
        self.send(line);
    }

    fn try_configure(&mut self, config: Box<SessionConfig>, after: AfterConfigure, mut changes: Vec<Change>) {
        changes.push(Change::Configure(self.row.id, config.clone()));
        self.effects.push(Effect::TryCommit(changes, AfterTry::Configure(config, after)));
    }

    pub(super) fn on_configure_tried(
        &mut self,
        config: SessionConfig,
        after: AfterConfigure,
        result: Result<(), StoreError>,
    ) {
        match (result, after) {
            (Ok(()), after) => {
                self.row.config = config;
                match after {
                    AfterConfigure::Reply(reply) => self.reply_changed(reply, Ok(())),
                    AfterConfigure::AskChild(request) => self.ask_child(request),
                }
            }
            (Err(error), AfterConfigure::Reply(reply))
            | (Err(error), AfterConfigure::AskChild(PendingRequest { reply, .. })) => {
                self.reply_changed(reply, Err(store_error(error)));
            }
        }
    }

    fn reply_changed(&mut self, reply: Changed, result: Result<(), Error>) {
        self.effects.push(Effect::Reply(Reply::Changed(reply, result)));
    }

    /// The lines that tell a process about settings that changed since it was started.
    pub(super) fn settings_changed_since_launch(&self) -> Vec<String> {
        let Some(process) = &self.process else { return Vec::new() };
        let mode = Setting::Mode(self.row.config.permission_mode);
        let model = Setting::Model(self.row.config.model.clone());
        let number = process.key.run;
        [("mode", mode), ("model", model)]
            .into_iter()
            .filter(|(_, wanted)| !process.launched_with.contains(wanted))
            .map(|(name, wanted)| wanted.line(&format!("plexus-{name}-of-run-{number}")))
            .collect()
    }

    /// Whether the child was asked to enter this mode and has not answered.
    pub(super) fn is_mode_requested(&self, mode: PermissionMode) -> bool {
        self.requests.values().any(|request| request.wanted == Setting::Mode(mode))
    }

    /// The child accepted or refused a setting: the change that stores the outcome, and the reply to the caller.
    pub(super) fn finish_request(
        &mut self,
        request: PendingRequest,
        outcome: Result<(), String>,
    ) -> (Change, Reply) {
        let setting = if outcome.is_ok() { request.wanted } else { request.before };
        self.row.config = setting.apply_to(self.row.config.clone());
        let refused =
            |why| Error::new(ErrorKind::AgentRefused, format!("the agent rejected the change: {why}"));
        let reply = Reply::Changed(request.reply, outcome.map_err(refused));
        (Change::Configure(self.row.id, Box::new(self.row.config.clone())), reply)
    }

    /// Changes the trusted project. The running process keeps the files it was started with.
    pub(super) fn trust(&mut self, project: Option<TrustedProject>, changes: Vec<Change>, reply: Changed) {
        let config = SessionConfig { project, ..self.row.config.clone() };
        self.try_configure(Box::new(config), AfterConfigure::Reply(reply), changes);
    }

    /// Adds a message to the running turn and returns the number of the turn. The message is durable before it is sent,
    /// and is sent again if the hub dies in between.
    pub(super) fn add_message(&mut self, text: String, attachments: &Attachments) -> Result<u64, Error> {
        let Some(turn) = self.turn.as_ref().filter(|turn| !turn.progress.interrupt_requested) else {
            let message = "no turn is in progress; start one with claudecode.chat_async";
            return Err(Error::new(ErrorKind::NoTurn, message));
        };
        if turn.progress.format == PromptFormat::Compact {
            let message = "the conversation is being compacted; send the message when the turn is complete";
            return Err(Error::new(ErrorKind::TurnInProgress, message).with("turn", turn.number));
        }
        if let Some(lost) = attachments.iter().find(|file| !file.reaches_a_running_turn()) {
            let message = format!(
                "Claude Code drops PDF documents that it receives during a turn; send `{}` with a prompt when the turn is complete",
                lost.name()
            );
            return Err(Error::new(ErrorKind::InvalidParams, message).with("field", "attachments"));
        }
        let number = turn.number;
        let uuid = uuid::Uuid::new_v4().to_string();
        let mut data = json!({"text": text, "uuid": uuid});
        if !attachments.is_empty() {
            data["attachments"] = attachments.iter().map(|file| json!(file.view())).collect();
        }
        let event =
            Event::System { subtype: "sent".to_owned(), data: data.as_object().cloned().unwrap_or_default() };
        let mut changes = vec![Change::Event(self.row.id, number, Arc::new(event))];
        let node = self.add_prompt(&text, attachments, &mut changes);
        let node = (!attachments.is_empty()).then_some(node);
        self.progress_mut().unread_messages.push(UnreadMessage { uuid, text, node });
        changes.push(self.progress());
        self.commit(changes);
        self.send_messages();
        Ok(number)
    }

    /// Sends the messages added to the turn, each once, to a process that has the prompt.
    pub(super) fn send_messages(&mut self) {
        if !self.is_ready() {
            return;
        }
        let messages =
            self.turn.as_ref().map(|turn| turn.progress.unread_messages.clone()).unwrap_or_default();
        let version = self.process.as_ref().and_then(|process| process.version);
        for UnreadMessage { uuid, text, node } in messages {
            let attachments: &[Attachment] = match node.map(|node| self.unread_files.get(&node)) {
                None => &[],
                Some(Some(attachments)) => attachments,
                // Never without its files. The turn cannot end before the message is read, so it fails.
                Some(None) => {
                    let message = "the files of a message are missing, so the message was not sent";
                    return self.end_process(Cause::Failed("no_attachments", message.to_owned()));
                }
            };
            let files: Vec<AttachedFile<'_>> = attachments.iter().map(Attachment::to_send).collect();
            let line = plexus_claude::user_message(&uuid, &text, &files, version);
            self.send(line);
        }
    }
}
