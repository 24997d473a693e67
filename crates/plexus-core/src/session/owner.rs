//! The task that owns a session. It waits for commands, lines and deadlines, and hands them to the state machine.
//!
//! Lines are read in batches. A batch is stored in one commit, together with the offset it was read up to, before anything
//! follows from it. If more lines are waiting, the next batch is read while the commit is written. While the store is unavailable nothing is
//! answered and no further batch is read; a stop still works.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::ready;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plexus_agent::{Entry, Journal};
use plexus_book::Meter as _;
use plexus_claude::{Block, Incoming};
use plexus_protocol::{Error, ErrorKind, SessionId};
use plexus_store::{Change, Committed, StoreError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Command;
use super::child::{Activity, Child, Unread, activity};
use super::handle::Known;
use super::hook_tasks::HookTasks;
use super::machine::{Input, Machine, Now, Shared};
use crate::lineage::known_lineage;
use crate::shared_parts::Parts;

/// How much of a journal is read before the owner checks for commands again.
pub(super) const BATCH_BYTES: usize = 256 * 1024;
/// How much any session may read at any time. Reading more takes one of a few permits: lines are in memory several times
/// until they are stored.
const SMALL_BATCH_BYTES: usize = 8 * 1024;
/// How long a session waits for such a permit before it reads a small batch without one.
const PERMIT_WITHIN: Duration = Duration::from_millis(100);
/// How long the message with a tool call waits for the request of that call.
const CALL_REQUEST_WITHIN: Duration = Duration::from_millis(20);
/// The pauses between tries to store or send something.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The hub shuts down: the task ends, and the next hub recovers the session from the store.
#[derive(Debug)]
pub(super) struct Closing;

/// A session's owner.
pub(super) struct Owner {
    pub(super) parts: Arc<Parts>,
    pub(super) machine: Machine,
    inbox: mpsc::UnboundedReceiver<Command>,
    /// Commands that arrived while something had to be stored first.
    deferred: VecDeque<Command>,
    pub(super) child: Option<Child>,
    pub(super) hooks: HookTasks,
    /// Held until the lines that were read with it are stored.
    reading: Option<OwnedSemaphorePermit>,
}

/// Owns session `id` until the hub shuts down or the session is deleted.
pub(super) async fn own(
    parts: Arc<Parts>,
    id: SessionId,
    inbox: mpsc::UnboundedReceiver<Command>,
    known: Arc<Mutex<Option<Known>>>,
) {
    let closing = parts.tasks.closing().clone();
    let work = async {
        let Some(mut owner) = Owner::load(parts, id, inbox, &known).await else { return Ok(()) };
        owner.recover().await?;
        owner.work().await
    };
    tokio::select! {
        () = closing.cancelled() => {}
        ended = work => {
            if let Err(Closing) = ended {
                tracing::debug!(session = %id, "left for the next hub");
            }
        }
    }
}

impl Owner {
    /// Loads a session. While the store is unavailable nothing happens to the session.
    async fn load(
        parts: Arc<Parts>,
        id: SessionId,
        inbox: mpsc::UnboundedReceiver<Command>,
        known: &Mutex<Option<Known>>,
    ) -> Option<Self> {
        let row = parts.commits.retry(|| parts.store.session(id)).await?;
        if row.host.as_ref() != parts.store.host() {
            // Two owners would end each other's processes.
            tracing::error!(session = %id, host = ?row.host, "the session runs on another host; this hub does not own it");
            return None;
        }
        let read = Known { name: row.name.clone(), answers_to: row.answers_to.clone() };
        *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        let lineage = parts.commits.retry(|| known_lineage(&*parts.store, row.clone())).await;
        let shared = Shared {
            settings: Arc::clone(&parts.settings),
            policies: Arc::clone(&parts.policies),
            reservations: Arc::clone(&parts.reservations),
            escalation: Arc::clone(&parts.escalation),
            metrics: Arc::clone(&parts.metrics),
        };
        let machine = Machine::new(shared, row, lineage, now());
        Some(Self {
            parts,
            machine,
            inbox,
            deferred: VecDeque::new(),
            child: None,
            hooks: HookTasks::default(),
            reading: None,
        })
    }

    async fn work(&mut self) -> Result<(), Closing> {
        loop {
            if self.journal_is_full() {
                self.step(Input::JournalFull).await?;
            }
            let effects = self.machine.step(now(), Input::Idle);
            if !effects.is_empty() {
                self.perform(effects).await?;
                continue;
            }
            if let Some(command) = self.deferred.pop_front() {
                if matches!(command, Command::Retire) {
                    return Ok(());
                }
                self.step(Input::Command(command)).await?;
                continue;
            }
            let deadline = self.machine.deadline();
            tokio::select! {
                biased;
                command = self.inbox.recv() => match command {
                    Some(Command::Retire) | None => return Ok(()),
                    Some(command) => self.step(Input::Command(command)).await?,
                },
                activity = activity(&mut self.child, &self.parts.disk) => match activity {
                    Activity::Wrote => drop(self.read_some().await?),
                    Activity::Ended => self.step(Input::ProcessEnded).await?,
                },
                (request_id, outcome) = self.hooks.next() => {
                    self.step(Input::HooksEnded(request_id, Box::new(outcome))).await?;
                }
                () = at(deadline) => self.step(Input::Due).await?,
            }
        }
    }

    /// Takes one input and carries out what follows from it.
    pub(super) async fn step(&mut self, input: Input) -> Result<(), Closing> {
        let effects = self.machine.step(now(), input);
        self.perform(effects).await
    }

    fn journal_is_full(&self) -> bool {
        let limit = self.parts.settings.limits.journal_bytes;
        self.child.as_ref().is_some_and(|child| child.journal.size().is_ok_and(|size| size >= limit))
    }

    /// Reads the journal to its present end.
    pub(super) async fn read_all(&mut self) -> Result<(), Closing> {
        while self.read_some().await? == Unread::Maybe {}
        Ok(())
    }

    /// Reads one batch of lines.
    async fn read_some(&mut self) -> Result<Unread, Closing> {
        let Some(child) = self.child.as_mut() else { return Ok(Unread::None) };
        let large = child.journal.waiting().is_ok_and(|waiting| waiting > SMALL_BATCH_BYTES as u64);
        let permit = match self.reading.take() {
            None if large => {
                let permit = Arc::clone(&self.parts.reading).acquire_owned();
                tokio::time::timeout(PERMIT_WITHIN, permit).await.ok().and_then(Result::ok)
            }
            held => held,
        };
        let limit = if permit.is_some() { BATCH_BYTES } else { SMALL_BATCH_BYTES };
        let mut entries = match child.journal.read(limit) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(session = %self.machine.id(), %error, "cannot read the journal of an agent; \
                    trying again");
                tokio::time::sleep(MAX_PAUSE).await;
                return Ok(Unread::Maybe);
            }
        };
        child.unread = if entries.is_empty() { Unread::None } else { Unread::Maybe };
        if entries.is_empty() {
            return Ok(Unread::None);
        }
        self.reading = permit;
        if self.machine.config().loopback_enabled {
            add_call_requests(&mut child.journal, &mut entries).await;
        }
        self.take_answers();
        self.step(Input::Lines(entries)).await?;
        Ok(Unread::Maybe)
    }

    /// Records the answers in the inbox. An answer is in the inbox before the child learns of it, so the machine knows it
    /// before it reads the line that follows from it.
    fn take_answers(&mut self) {
        while let Ok(command) = self.inbox.try_recv() {
            if let Command::Resolved(row) = &command {
                self.machine.answer_arrived(row);
            }
            self.deferred.push_back(command);
        }
    }

    /// Commits, and retries until the store accepts the change. Meanwhile a stop ends the processes at once, a prompt or a message is
    /// refused, and every other command waits.
    pub(super) async fn commit(&mut self, changes: Vec<Change>) -> Result<Committed, Closing> {
        if changes.is_empty() {
            return Ok(Committed::default());
        }
        let mut pause = FIRST_PAUSE;
        let mut held = None;
        loop {
            let parts = Arc::clone(&self.parts);
            let mut commit = pin!(parts.commit(changes.clone()));
            let outcome = tokio::select! {
                biased;
                outcome = &mut commit => outcome,
                // The commit is queued.
                () = ready(()) => {
                    self.read_ahead();
                    commit.await
                }
            };
            let why = match outcome {
                Ok(committed) => {
                    // Lines that were read ahead are in memory, too.
                    if !self.child.as_ref().is_some_and(|child| child.journal.has_read_ahead()) {
                        self.reading = None;
                    }
                    return Ok(committed);
                }
                Err(StoreError::Unavailable(why)) => why,
                Err(error) => {
                    // A fault of the hub. The decisions of this batch are not durable, so none of them may reach the child.
                    tracing::error!(session = %self.machine.id(), %error, "cannot store the output of an \
                        agent; the agent is stopped");
                    self.terminate_child();
                    if let Some(child) = self.child.as_mut() {
                        child.outbox = None;
                    }
                    return Ok(Committed::default());
                }
            };
            tracing::warn!(session = %self.machine.id(), why, "waiting until the store is available");
            held.get_or_insert_with(|| self.parts.metrics.hold());
            tokio::select! {
                () = self.parts.tasks.closing().cancelled() => return Err(Closing),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(MAX_PAUSE),
                command = self.inbox.recv() => match command {
                    // Both may be large, and would be kept for an unknown time.
                    Some(Command::Prompt { reply, .. } | Command::Send { reply, .. }) => {
                        let why = "the store is unavailable, so nothing was changed; try again later";
                        let _ = reply.send(Err(Error::new(ErrorKind::StoreUnavailable, why)));
                    }
                    Some(command) => {
                        if matches!(command, Command::Stop { .. }) {
                            self.terminate_child();
                        }
                        self.deferred.push_back(command);
                    }
                    None => return Err(Closing),
                },
            }
        }
    }

    /// Reads the next batch, if the current one was large and more lines are waiting.
    fn read_ahead(&mut self) {
        if let Some(child) = self.child.as_mut().filter(|_| self.reading.is_some())
            && child.journal.waiting().is_ok_and(|waiting| waiting > SMALL_BATCH_BYTES as u64)
        {
            child.journal.read_ahead(BATCH_BYTES);
        }
    }

    fn terminate_child(&self) {
        if let Some(keeper) = self.child.as_ref().and_then(|child| child.keeper.as_ref())
            && let Err(error) = keeper.terminate()
        {
            tracing::error!(session = %self.machine.id(), %error, "cannot stop an agent");
        }
    }
}

/// Waits for the request that Claude Code sends a few milliseconds after the message with a tool call, so that one commit stores both.
async fn add_call_requests(journal: &mut Journal, entries: &mut Vec<Entry>) {
    let announces_call = |entries: &[Entry]| {
        let is_call = |block: &Block| matches!(block, Block::ToolUse { .. });
        matches!(entries.last(), Some(Entry { message: Incoming::Assistant(message), .. }) if message.blocks.iter().any(is_call))
    };
    let deadline = Instant::now() + CALL_REQUEST_WITHIN;
    while announces_call(entries) && tokio::time::timeout_at(deadline.into(), journal.changed()).await.is_ok()
    {
        match journal.read(SMALL_BATCH_BYTES) {
            Ok(more) => entries.extend(more),
            // The next read meets the error again.
            Err(_) => return,
        }
    }
}

/// The present time.
pub(super) fn now() -> Now {
    Now { instant: Instant::now(), unix_ms: plexus_book::now_ms() }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
