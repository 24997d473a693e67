//! Changes to a session while it runs: its mode, its model, a message more, an interruption. What the child has to be
//! asked is asked as a request of ours; whoever wanted it waits for the child's answer.

use std::time::Duration;

use plexus_protocol::claudecode::{PermissionMode, TrustedProject};
use plexus_protocol::{Error, ErrorKind, Event};
use plexus_store::{Change, SessionConfig};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ending::Cause;
use super::owner::{Closing, Owner};
use super::run::Phase;
use super::turn::Message;
use crate::hub::store_error;

/// How long a child may take to end a turn that it was asked to end.
const INTERRUPT_WITHIN: Duration = Duration::from_secs(10);

/// Where to say that a request of ours was answered.
pub(super) type Reply = oneshot::Sender<Result<(), Error>>;

/// A request of ours that the child has not answered.
pub(super) struct Asked {
    reply: Reply,
    /// What holds once the child has done it.
    wanted: Setting,
    /// What holds if the child refuses.
    before: Setting,
}

/// What of a session a running child can be asked to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Mode(PermissionMode),
    Model(Option<String>),
}

impl Setting {
    fn of(self, mut config: SessionConfig) -> SessionConfig {
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

impl Owner {
    /// Changes the mode. A looser one is durable before the child is told, a stricter one once the child has it: so
    /// the child is never found in a looser mode than it is known to have been told.
    pub(super) async fn set_mode(&mut self, mode: PermissionMode, reply: Reply) -> Result<(), Closing> {
        let told = self.row.config.permission_mode;
        let first = mode.looseness() > told.looseness();
        self.change(Setting::Mode(told), Setting::Mode(mode), first, reply).await
    }

    /// Changes the model.
    pub(super) async fn set_model(&mut self, model: Option<String>, reply: Reply) -> Result<(), Closing> {
        let before = Setting::Model(self.row.config.model.clone());
        self.change(before, Setting::Model(model), false, reply).await
    }

    /// Asks a process that is there. One that is not will be started as it is wanted, and one on its way is told
    /// before its first prompt.
    async fn change(
        &mut self,
        before: Setting,
        wanted: Setting,
        durable_first: bool,
        reply: Reply,
    ) -> Result<(), Closing> {
        let ready = self.is_ready();
        if (durable_first || !ready)
            && let Err(error) = self.reconfigure(wanted.clone()).await
        {
            let _ = reply.send(Err(error));
            return Ok(());
        }
        if !ready {
            let _ = reply.send(Ok(()));
            return Ok(());
        }
        let id = format!("plexus-change-{}", uuid::Uuid::new_v4());
        let line = wanted.line(&id);
        self.requests.insert(id, Asked { reply, wanted, before });
        self.send(&line).await
    }

    /// What a child has to be told that was started before it was wanted.
    pub(super) fn changed_since_launch(&self) -> Vec<String> {
        let Some(run) = &self.run else { return Vec::new() };
        let mode = Setting::Mode(self.row.config.permission_mode);
        let model = Setting::Model(self.row.config.model.clone());
        let number = run.key.run;
        [("mode", mode), ("model", model)]
            .into_iter()
            .filter(|(_, wanted)| !run.launched_with.contains(wanted))
            .map(|(what, wanted)| wanted.line(&format!("plexus-{what}-of-run-{number}")))
            .collect()
    }

    /// Whether the child was asked to take this mode and has not answered yet.
    pub(super) fn is_asked_for(&self, mode: PermissionMode) -> bool {
        self.requests.values().any(|asked| asked.wanted == Setting::Mode(mode))
    }

    fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.phase == Phase::Ready)
    }

    /// A request of ours has come to its end: what holds from now on, and who waits to hear of it.
    pub(super) fn settle(&mut self, asked: Asked, done: bool) -> (Change, Reply) {
        let setting = if done { asked.wanted } else { asked.before };
        self.row.config = setting.of(self.row.config.clone());
        (Change::Configure(self.row.id, Box::new(self.row.config.clone())), asked.reply)
    }

    async fn reconfigure(&mut self, setting: Setting) -> Result<(), Error> {
        let config = setting.of(self.row.config.clone());
        self.hub
            .commit(vec![Change::Configure(self.row.id, Box::new(config.clone()))])
            .await
            .map_err(store_error)?;
        self.row.config = config;
        Ok(())
    }

    /// Changes what of the project the next process loads; the running one has what it was started with.
    pub(super) async fn trust(
        &mut self,
        project: Option<TrustedProject>,
        mut changes: Vec<Change>,
    ) -> Result<(), Error> {
        let config = SessionConfig { project, ..self.row.config.clone() };
        changes.push(Change::Configure(self.row.id, Box::new(config.clone())));
        self.hub.commit(changes).await.map_err(store_error)?;
        self.row.config = config;
        Ok(())
    }

    /// Adds a message to the running turn. It is durable before it is sent, and sent again if a hub dies in between.
    pub(super) async fn send_message(&mut self, text: String) -> Result<Result<u64, Error>, Closing> {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.progress.interrupt_asked) else {
            let message = "no turn is in progress; use claudecode.chat_async";
            return Ok(Err(Error::new(ErrorKind::NoTurn, message)));
        };
        let number = turn.number;
        let uuid = uuid::Uuid::new_v4().to_string();
        turn.progress.sends.push(Message { uuid: uuid.clone(), text: text.clone() });
        let data = json!({"text": text, "uuid": uuid});
        let event =
            Event::System { subtype: "sent".to_owned(), data: data.as_object().cloned().unwrap_or_default() };
        let mut changes = vec![Change::Event(self.row.id, number, Box::new(event)), self.progress()];
        self.add_prompt(&text, &mut changes);
        self.commit_held(changes).await?;
        self.send_messages().await?;
        Ok(Ok(number))
    }

    /// Sends what was added to the turn, each message once, to a process that has the prompt.
    pub(super) async fn send_messages(&mut self) -> Result<(), Closing> {
        if !self.is_ready() {
            return Ok(());
        }
        let messages = self.turn.as_ref().map(|turn| turn.progress.sends.clone()).unwrap_or_default();
        for message in messages {
            self.send(&plexus_claude::user_message(&message.uuid, &message.text)).await?;
        }
        Ok(())
    }

    /// Ends the running turn and keeps the process; one that does not obey in time is ended with it.
    pub(super) async fn interrupt(&mut self, reply: oneshot::Sender<()>) -> Result<(), Closing> {
        if let Some(turn) = self.turn.as_mut() {
            turn.progress.interrupted = true;
            turn.progress.interrupt_asked = true;
            let progress = self.progress();
            self.commit_held(vec![progress]).await?;
            self.interrupting.push(reply);
            return self.send_interrupt().await;
        }
        let _ = reply.send(());
        Ok(())
    }

    /// Asks the child to end its turn, once a turn.
    pub(super) async fn send_interrupt(&mut self) -> Result<(), Closing> {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.progress.interrupt_asked) else {
            return Ok(());
        };
        // A message that still waits would make a turn of its own once this one is interrupted.
        let unread = turn.progress.sends.iter();
        let cancel = |uuid: &String| plexus_claude::cancel_message(&format!("plexus-cancel-{uuid}"), uuid);
        let mut lines: Vec<String> = unread.map(|message| cancel(&message.uuid)).collect();
        lines.push(plexus_claude::interrupt(&format!("plexus-interrupt-{}", turn.number)));
        match self.run.as_mut() {
            Some(run) if run.phase == Phase::Ready => {
                run.interrupt_by = Some(Instant::now() + INTERRUPT_WITHIN);
                for line in lines {
                    self.send(&line).await?;
                }
                Ok(())
            }
            // It has not begun: there is nothing to keep.
            _ => Box::pin(self.end_run(Cause::Stopped("the turn was interrupted".to_owned()))).await,
        }
    }
}
