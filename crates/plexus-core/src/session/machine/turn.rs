//! Turns: how one starts, how its prompt reaches a process, and how it ends. `progress` owns the part that survives a
//! restart and decides when a turn is over.

use std::sync::Arc;

use plexus_claude::{AttachedFile, SentId};
use plexus_protocol::arbor::Position;
use plexus_protocol::{Error, ErrorKind, Event, NodeId};
use plexus_store::{Change, StoreError, TurnStatus};
use tokio::sync::oneshot;

use super::commands::{Origin, TurnRequest};
use super::process::Phase;
use super::progress::Progress;
use super::wake::Wake;
use super::{AfterTry, Cause, Effect, Machine, Next, Reply};
use crate::attachments::Attachment;
use crate::errors::store_error;
use crate::session::{Prompt, PromptFormat};

/// The running turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) prompt: String,
    /// The run that the prompt goes to; `None` before there is one.
    pub(super) bound: Option<PromptTarget>,
    /// Why its process is being stopped.
    pub(super) stopped: Option<String>,
    pub(super) progress: Progress,
}

/// The run that a prompt goes to, and the UUID it has there. A turn that the child started by itself has no UUID.
#[derive(Debug, Clone)]
pub(super) struct PromptTarget {
    pub(super) run: u32,
    pub(super) prompt_uuid: Option<String>,
}

impl Turn {
    /// How it ended, according to its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let ending = self.progress.ending(head)?;
        match &self.stopped {
            Some(why) if ending.status != TurnStatus::Complete => Some(Ending::interrupted(why.clone())),
            _ => Some(ending),
        }
    }
}

/// A turn that becomes the running one when it is durable.
pub(in crate::session) struct NewTurn {
    turn: Turn,
    request: TurnReply,
    /// The head to restore if the store refuses the turn.
    previous_head: NodeId,
    woken_to: Option<u64>,
}

/// The caller to notify when the turn has started.
enum TurnReply {
    Caller(oneshot::Sender<Result<u64, Error>>),
    /// No caller: the hub started it to wake the session.
    Hub,
}

impl Machine {
    /// Begins a turn, unless one is running.
    pub(super) fn start_turn(&mut self, request: TurnRequest) {
        if self.turn.is_none() && self.needs_another_process(request.prompt.format) {
            self.end_process(Cause::Stopped("a command runs in a process of its own".to_owned()));
            self.effects.push(Effect::Then(Next::StartTurn(Box::new(request))));
            return;
        }
        let TurnRequest { prompt: Prompt { text, format, attachments }, origin } = request;
        if let Some(turn) = &self.turn {
            let message = format!("turn {} is in progress", turn.number);
            let error = Error::new(ErrorKind::TurnInProgress, message).with("turn", turn.number);
            if let Origin::Caller(reply) = origin {
                self.effects.push(Effect::Reply(Reply::Turn(reply, Err(error))));
            }
            return;
        }
        let (session, number) = (self.row.id, self.row.latest_turn + 1);
        let previous_head = self.row.head;
        let (request, origin, woken_to) = match origin {
            Origin::Caller(reply) => (TurnReply::Caller(reply), None, None),
            Origin::Wake { to } => (TurnReply::Hub, Some("hub".to_owned()), Some(to)),
        };
        let mut changes = vec![
            Change::CheckBudget(session),
            Change::CheckSlot(session),
            Change::StartTurn { session, turn: number, prompt: text.clone(), woken_to },
        ];
        self.row.latest_turn = number;
        let node = self.add_prompt(&text, &attachments, &mut changes);
        let start = Event::Start {
            id: session,
            user_position: self.head(),
            origin,
            attachments: attachments.iter().map(Attachment::view).collect(),
        };
        changes.push(Change::Event(session, number, Arc::new(start)));
        // The inherited progress is durable with the turn: a hub that finds only a prompt needs to know its process.
        let prompt_node = (!attachments.is_empty()).then_some(node);
        let progress = Progress { format, prompt_node, ..self.last_progress.next() };
        changes.push(progress.change(session, number));
        let turn = Turn { number, prompt: text, bound: None, stopped: None, progress };
        let new = NewTurn { turn, request, previous_head, woken_to };
        self.effects.push(Effect::TryCommit(changes, AfterTry::StartTurn(Box::new(new))));
    }

    pub(super) fn on_turn_tried(&mut self, new: NewTurn, result: Result<(), StoreError>) {
        let NewTurn { turn, request, previous_head, woken_to } = new;
        let number = turn.number;
        if let Err(error) = result {
            self.row.head = previous_head;
            self.row.latest_turn = number - 1;
            self.unread_files.clear();
            let error = store_error(error);
            match request {
                TurnReply::Caller(reply) => self.effects.push(Effect::Reply(Reply::Turn(reply, Err(error)))),
                TurnReply::Hub => self.on_wake_failed(&error),
            }
            return;
        }
        self.row.woken_to = self.row.woken_to.max(woken_to.unwrap_or(0));
        self.turn = Some(turn);
        match request {
            TurnReply::Caller(reply) => {
                self.kill_point("prompt", "turn begun");
                self.effects.push(Effect::Reply(Reply::Turn(reply, Ok(number))));
            }
            TurnReply::Hub => self.kill_point("wake", "turn begun"),
        }
        self.ensure_process();
        self.send_prompt();
    }

    /// A command runs in a process of its own, which runs nothing else: only that process has Claude Code's commands and skills.
    fn needs_another_process(&self, format: PromptFormat) -> bool {
        let Some(process) = &self.process else { return false };
        format == PromptFormat::Compact || self.last_progress.command_run == Some(process.key.run)
    }

    /// A message outside any turn is the child's own initiative: it starts a turn of its own.
    pub(super) fn ensure_turn(&mut self, run: u32, changes: &mut Vec<Change>) {
        if self.turn.is_some() {
            return;
        }
        let (session, number) = (self.row.id, self.row.latest_turn + 1);
        self.row.latest_turn = number;
        let (prompt, prompt_uuid) = (String::new(), String::new());
        changes.push(Change::StartTurn { session, turn: number, prompt: prompt.clone(), woken_to: None });
        changes.push(Change::BindTurn { session, turn: number, run, prompt_uuid });
        let progress = Progress { acknowledged: true, ..self.last_progress.next() };
        let bound = Some(PromptTarget { run, prompt_uuid: None });
        self.turn = Some(Turn { number, prompt, bound, stopped: None, progress });
        let start = Event::Start {
            id: session,
            user_position: self.head(),
            origin: Some("background".to_owned()),
            attachments: Vec::new(),
        };
        changes.push(Change::Event(session, number, Arc::new(start)));
        changes.push(self.progress());
    }

    /// Sends the prompt of the running turn, once, to a process that is ready for it.
    pub(super) fn send_prompt(&mut self) {
        let (Some(process), Some(turn)) = (&self.process, self.turn.as_mut()) else { return };
        if process.phase != Phase::Ready {
            return;
        }
        let (session, run, number) = (self.row.id, process.key.run, turn.number);
        let (uuid, bind) = match &turn.bound {
            Some(bound) if bound.run != run => return,
            // The child started this turn by itself.
            Some(PromptTarget { prompt_uuid: None, .. }) => return,
            Some(PromptTarget { prompt_uuid: Some(uuid), .. }) => (uuid.clone(), None),
            None => {
                let uuid = uuid::Uuid::new_v4().to_string();
                turn.bound = Some(PromptTarget { run, prompt_uuid: Some(uuid.clone()) });
                (uuid.clone(), Some(Change::BindTurn { session, turn: number, run, prompt_uuid: uuid }))
            }
        };
        if process.sent.contains(&SentId::Prompt(uuid.clone())) {
            return;
        }
        let attachments: &[Attachment] =
            match turn.progress.prompt_node.map(|node| self.unread_files.get(&node)) {
                None => &[],
                Some(Some(attachments)) => attachments,
                Some(None) => {
                    let message =
                        "the files of the prompt are missing, so the prompt was not sent; send it again";
                    return self.fail_turn("no_attachments", message.to_owned());
                }
            };
        let files: Vec<AttachedFile<'_>> = attachments.iter().map(Attachment::to_send).collect();
        let line = match turn.progress.format {
            PromptFormat::Plain => plexus_claude::user_message(&uuid, &turn.prompt, &files, process.version),
            PromptFormat::Expanded => plexus_claude::user_message_expanded(&uuid, &turn.prompt, &files),
            PromptFormat::Compact => plexus_claude::command(&uuid, &turn.prompt),
        };
        self.commit(bind.into_iter().collect());
        self.kill_point("prompt", "bound");
        self.send(line);
        self.kill_point("prompt", "sent");
        self.restart_stall_timer();
        self.send_messages();
    }

    /// Ends the running turn, if there is one.
    pub(super) fn end_turn(&mut self, ending: Ending, changes: &mut Vec<Change>) {
        changes.extend(self.count_last_time());
        if self.turn.is_none() {
            return;
        }
        let Ending { status, mut last, summary } = ending;
        self.add_outcome(status, &mut last, changes);
        let Some(turn) = self.turn.take() else { return };
        self.last_progress = turn.progress;
        if let Some(process) = self.process.as_mut() {
            process.interrupt_by = None;
            process.stall_by = None;
        }
        self.restart_idle_timer();
        self.message = None;
        self.ungated.clear();
        self.running_tools.clear();
        self.said.clear();
        self.unread_files.clear();
        let (session, number) = (self.row.id, turn.number);
        changes.push(self.progress());
        // Approvals that arrived meanwhile may still be open. A turn that was interrupted is not followed by another.
        let wakes = self.row.config.wake && status != TurnStatus::Interrupted;
        self.wake = if wakes { Wake::Wanted } else { Wake::No };
        let (last, cost_usd) = (Box::new(last), self.last_progress.cost());
        changes.push(Change::EndTurn { session, turn: number, status, last, summary, cost_usd });
    }
}

/// How a turn ended: its status, its last event, and a summary for the feed.
pub(super) struct Ending {
    pub(super) status: TurnStatus,
    pub(super) last: Event,
    pub(super) summary: Option<String>,
}

impl Ending {
    pub(super) fn failed(reason: &str, message: String, stderr: Vec<String>) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some(reason.to_owned()), stderr };
        Self { status: TurnStatus::Failed, last, summary }
    }

    /// The turn was interrupted because a budget is exhausted.
    pub(super) fn out_of_budget(message: String) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some("budget_exhausted".to_owned()), stderr: Vec::new() };
        Self { status: TurnStatus::Interrupted, last, summary }
    }

    pub(super) fn interrupted(message: String) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some("interrupted".to_owned()), stderr: Vec::new() };
        Self { status: TurnStatus::Interrupted, last, summary }
    }
}
