//! What others want of a session.

use std::time::Duration;

use plexus_claude::{Incoming, SentId};
use plexus_protocol::{Error, ErrorKind, Event};
use plexus_store::{Change, RunKey, RunState};
use serde_json::json;

use super::ending::Cause;
use super::owner::{BATCH_BYTES, Closing, Owner};
use super::run::Phase;
use super::turn::{Progress, Turn};
use super::{Command, Prompt, Reading};
use crate::hub::store_error;
use crate::kill_point::kill_point;
use crate::secret::{new_token, token_hash};

/// How long a child that is to end may take to leave off what it does, before it hears of signals.
const LEAVE_OFF_WITHIN: Duration = Duration::from_millis(500);

/// Why a turn begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Begun {
    /// Somebody gave a prompt.
    Asked,
    /// Those below ask: up to this number of the feed.
    Woken { to: u64 },
}

impl Owner {
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), Closing> {
        match command {
            Command::Prompt { prompt, reply } => {
                self.renew_for_cost().await?;
                let begun = self.begin_turn(prompt, Begun::Asked).await;
                let started = begun.is_ok();
                kill_point("prompt", "turn begun");
                // A caller that has gone finds its turn by polling.
                let _ = reply.send(begun);
                if started {
                    self.ensure_run().await?;
                    self.send_prompt().await?;
                }
                Ok(())
            }
            Command::Permit(permit) => {
                let permitted = self.on_permit(permit.run, permit.params, permit.stream).await?;
                let _ = permit.reply.send(permitted);
                Ok(())
            }
            Command::PermitLost(approval) => self.on_permit_lost(approval).await,
            Command::Resolved(row) => self.on_resolved(*row).await,
            Command::Budget(row) => self.on_budget(&row).await,
            Command::LimitsChanged => {
                self.look_at_time_again();
                Ok(())
            }
            Command::Configure { reply } => {
                let _ = reply.send(self.configure().await);
                Ok(())
            }
            Command::SetMode { mode, reply } => self.set_mode(mode, reply).await,
            Command::SetModel { model, reply } => self.set_model(model, reply).await,
            Command::Trust { project, changes, reply } => {
                let _ = reply.send(self.trust(project.map(|project| *project), changes).await);
                Ok(())
            }
            Command::Send { text, reply } => {
                let sent = self.send_message(text).await?;
                let _ = reply.send(sent);
                Ok(())
            }
            Command::Wake => {
                self.asked_for = self.row.config.wake;
                Ok(())
            }
            Command::Interrupt { reply } => self.interrupt(reply).await,
            Command::Stop { why, reply } => {
                self.stop(why).await?;
                let _ = reply.send(());
                Ok(())
            }
            Command::Retire => Ok(()),
        }
    }

    pub(super) async fn begin_turn(&mut self, prompt: Prompt, begun: Begun) -> Result<u64, Error> {
        if let Some(turn) = &self.turn {
            let message = format!("turn {} is in progress", turn.number);
            return Err(Error::new(ErrorKind::TurnInProgress, message).with("turn", turn.number));
        }
        let Prompt { text: prompt, reading } = prompt;
        let (session, number) = (self.row.id, self.row.latest_turn + 1);
        let head = self.row.head;
        let (origin, woken_to) = match begun {
            Begun::Asked => (None, None),
            Begun::Woken { to } => (Some("hub".to_owned()), Some(to)),
        };
        let mut changes = vec![
            Change::CheckBudget(session),
            Change::StartTurn { session, turn: number, prompt: prompt.clone(), woken_to },
        ];
        self.row.latest_turn = number;
        self.add_prompt(&prompt, &mut changes);
        let start = Event::Start { id: session, user_position: self.head(), origin };
        changes.push(Change::Event(session, number, Box::new(start)));
        // What it inherits is durable with it: a hub that finds nothing but a prompt has to know its process.
        let progress = Progress { reading, ..self.last_progress.next() };
        changes.push(progress.change(session, number));
        if let Err(error) = self.hub.commit(changes).await {
            self.row.head = head;
            self.row.latest_turn = number - 1;
            return Err(store_error(error));
        }
        self.row.woken_to = self.row.woken_to.max(woken_to.unwrap_or(0));
        self.turn = Some(Turn { number, prompt, bound: None, stopped: None, progress });
        Ok(number)
    }

    /// Sends the prompt of the turn in progress, once, to a process that is ready for it.
    pub(super) async fn send_prompt(&mut self) -> Result<(), Closing> {
        let (Some(run), Some(turn)) = (&self.run, &self.turn) else { return Ok(()) };
        if run.phase != Phase::Ready {
            return Ok(());
        }
        let number = run.key.run;
        let (uuid, is_new) = match &turn.bound {
            Some((bound, uuid)) if *bound == number => (uuid.clone(), false),
            Some(_) => return Ok(()),
            None => (uuid::Uuid::new_v4().to_string(), true),
        };
        if uuid.is_empty() || run.sent.contains(&SentId::Prompt(uuid.clone())) {
            return Ok(());
        }
        let line = match turn.progress.reading {
            Reading::Plain => plexus_claude::user_message(&uuid, &turn.prompt),
            Reading::Expanded => plexus_claude::user_message_expanded(&uuid, &turn.prompt),
        };
        let turn_number = turn.number;
        if is_new {
            let (session, prompt_uuid) = (self.row.id, uuid.clone());
            self.commit_held(vec![Change::BindTurn { session, turn: turn_number, run: number, prompt_uuid }])
                .await?;
            if let Some(turn) = self.turn.as_mut() {
                turn.bound = Some((number, uuid.clone()));
            }
        }
        kill_point("prompt", "bound");
        self.send(&line).await?;
        kill_point("prompt", "sent");
        self.listen_for_quiet();
        self.send_messages().await
    }

    /// A run whose process is not ours: all there is of it is a token.
    async fn configure(&mut self) -> Result<String, Error> {
        let token = new_token()
            .map_err(|error| Error::new(ErrorKind::Internal, format!("no randomness: {error}")))?;
        let key = RunKey { session: self.row.id, run: self.row.latest_run + 1 };
        let token_hash = Some(token_hash(&token));
        let begin = Change::StartRun { key, state: RunState::External, token_hash };
        self.hub.commit(vec![begin]).await.map_err(store_error)?;
        self.row.latest_run = key.run;
        self.external.push(key);
        Ok(token)
    }

    /// Ends the process, its tree, and every token of this session.
    async fn stop(&mut self, why: String) -> Result<(), Closing> {
        if self.run.is_some() {
            self.leave_off(&why).await;
            self.end_run(Cause::Stopped(why.clone())).await?;
        }
        let mut changes = Vec::new();
        for key in std::mem::take(&mut self.external) {
            changes.extend(self.withdraw_all(key, &why));
            changes.push(Change::EndRun(key, json!({"reason": why})));
        }
        self.commit_held(changes).await
    }

    /// Asks a child at work to leave off, and gives it a moment to say that it has: the gentlest step of a stop, the
    /// keeper does the others. Looked for beside the owner's own reading, which a store that fails would hold up.
    async fn leave_off(&mut self, why: &str) {
        let (Some(run), Some(turn)) = (self.run.as_mut(), self.turn.as_mut()) else { return };
        if run.phase != Phase::Ready || run.keeper.is_none() || turn.progress.interrupt_asked {
            return;
        }
        turn.stopped = Some(why.to_owned());
        let line = plexus_claude::interrupt(&format!("plexus-interrupt-{}", turn.number));
        let Ok(mut beside) = run.journal.beside(&run.dir, self.hub.watch()) else { return };
        if run.outbox.append(&line).is_err() {
            return;
        }
        let has_left_off = async {
            loop {
                beside.changed().await;
                match beside.read(BATCH_BYTES) {
                    Ok(entries)
                        if !entries.iter().any(|entry| matches!(entry.message, Incoming::Result(_))) => {}
                    _ => return,
                }
            }
        };
        let _ = tokio::time::timeout(LEAVE_OFF_WITHIN, has_left_off).await;
    }
}
