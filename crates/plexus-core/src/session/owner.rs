//! The task that owns a session: its state, its loop, and how it makes things durable and sends lines.
//!
//! What the child writes is read in batches; a batch is stored in one commit together with the place it was read up
//! to, and only then acted upon. What cannot be stored is held: nothing is answered, nothing is read on, until it
//! can be. Stopping works all the same.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use plexus_protocol::arbor::Position;
use plexus_protocol::{Error, ErrorKind, SessionId};
use plexus_store::{Change, Committed, RunKey, SessionRow, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::Command;
use super::asks::{Ask, Call};
use super::budget::HeldCall;
use super::changes::Asked;
use super::ending::Cause;
use super::nodes::Message;
use super::reading::Batch;
use super::run::{LiveRun, Stir, at, child_stirs};
use super::time::Time;
use super::turn::{Progress, Turn};
use crate::Hub;
use crate::kill_point::kill_point;
use crate::limits::Pace;
use crate::lineage::Lineage;

/// How much of a journal is read before commands are looked at again.
pub(super) const BATCH_BYTES: usize = 256 * 1024;
/// What any session may read at any time, however many there are. More takes a place that few have at once: what is
/// read is in memory several times over until it is stored.
const LITTLE: usize = 8 * 1024;
/// How long such a place is waited for; after that a little is read without.
const PLACE_WITHIN: Duration = Duration::from_millis(100);
/// Pauses between tries to store what is held.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The hub is going away: the task ends where it is, and the next hub takes it up from the store.
#[derive(Debug)]
pub(super) struct Closing;

/// A session's owner.
pub(super) struct Owner {
    pub(super) hub: Arc<Hub>,
    pub(super) row: SessionRow,
    /// It and all above it.
    pub(super) lineage: Lineage,
    pub(super) inbox: mpsc::UnboundedReceiver<Command>,
    /// Commands that came while something was held.
    pub(super) deferred: VecDeque<Command>,
    pub(super) run: Option<LiveRun>,
    pub(super) turn: Option<Turn>,
    /// The progress of the latest turn that is over, for what the next one inherits.
    pub(super) last_progress: Progress,
    /// Calls the gate has seen and that have no result yet, by tool_use_id.
    pub(super) calls: HashMap<String, Call>,
    /// Questions whose key lives, by tool_use_id.
    pub(super) asks: HashMap<String, Ask>,
    /// Calls that wait at the gate until more is given.
    pub(super) held: Vec<HeldCall>,
    /// How long the turn in progress may run.
    pub(super) time: Time,
    /// How often it asks.
    pub(super) pace: Pace,
    /// The assistant message being received.
    pub(super) message: Option<Message>,
    /// Requests of ours that the child has not answered, and who waits for that.
    pub(super) requests: HashMap<String, Asked>,
    /// Who waits for the end of an interrupted turn.
    pub(super) interrupting: Vec<oneshot::Sender<()>>,
    /// Runs whose processes are not ours.
    pub(super) external: Vec<RunKey>,
    /// Those below ask, and it is to be woken because of that as soon as it has no turn.
    pub(super) asked_for: bool,
    /// Tools that are at work, and what they are called.
    pub(super) at_work: HashMap<String, String>,
    /// Calls of this turn that Claude Code never shows to its hooks.
    pub(super) ungated: HashSet<String>,
}

/// Owns session `id` until the hub goes away or the session is deleted.
pub(super) async fn own(hub: Weak<Hub>, id: SessionId, inbox: mpsc::UnboundedReceiver<Command>) {
    let Some(hub) = hub.upgrade() else { return };
    let closing = hub.closing().clone();
    let Some(mut owner) = Owner::load(hub, id, inbox).await else { return };
    let work = async {
        owner.take_up().await?;
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
    async fn work(&mut self) -> Result<(), Closing> {
        loop {
            if self.turn.is_none() {
                for waiting in self.interrupting.drain(..) {
                    let _ = waiting.send(());
                }
            }
            self.check_journal().await?;
            if self.asked_for && self.turn.is_none() {
                self.asked_for = false;
                self.wake().await?;
                continue;
            }
            self.look_at_time().await?;
            if let Some(command) = self.deferred.pop_front() {
                if matches!(command, Command::Retire) {
                    return Ok(());
                }
                self.obey(command).await?;
                continue;
            }
            tokio::select! {
                biased;
                command = self.inbox.recv() => match command {
                    Some(Command::Retire) | None => return Ok(()),
                    Some(command) => self.obey(command).await?,
                },
                stir = child_stirs(&mut self.run, self.hub.disk()) => match stir {
                    Stir::Wrote => { self.read_some().await?; }
                    Stir::Ended => self.finish_run(Cause::Ended).await?,
                    Stir::Late => self.on_late().await?,
                },
                () = at(self.time.by) => self.on_time().await?,
            }
        }
    }

    /// Reads what the child has written, up to a limit; says whether there was anything.
    pub(super) async fn read_some(&mut self) -> Result<bool, Closing> {
        let Some(run) = self.run.as_mut() else { return Ok(false) };
        let much = run.journal.waiting().is_ok_and(|waiting| waiting > LITTLE as u64);
        let place = match much.then(|| Arc::clone(self.hub.reading()).acquire_owned()) {
            Some(place) => tokio::time::timeout(PLACE_WITHIN, place).await.ok(),
            None => None,
        };
        let entries = match run.journal.read(if place.is_some() { BATCH_BYTES } else { LITTLE }) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(session = %self.row.id, %error, "the journal cannot be read; tried again");
                tokio::time::sleep(LONGEST_PAUSE).await;
                return Ok(true);
            }
        };
        run.more = !entries.is_empty();
        if entries.is_empty() {
            return Ok(false);
        }
        self.note_answers();
        let mut batch = self.digest(entries);
        batch.place = place.and_then(Result::ok);
        self.perform(batch).await?;
        Ok(true)
    }

    /// Looks at the answers that have come in. An answer is in the inbox before the child is told of it, so the line
    /// that follows from it is never read without it.
    fn note_answers(&mut self) {
        while let Ok(command) = self.inbox.try_recv() {
            if let Command::Resolved(row) = &command {
                self.note_answer(row);
            }
            self.deferred.push_back(command);
        }
    }

    /// Reads the journal to its present end.
    pub(super) async fn read_all(&mut self) -> Result<(), Closing> {
        while self.read_some().await? {}
        Ok(())
    }

    /// Stores a batch, then acts upon it.
    pub(super) async fn perform(&mut self, batch: Batch) -> Result<(), Closing> {
        let what = batch.what();
        if batch.alarm.is_some()
            && let Some(keeper) = self.run.as_ref().and_then(|run| run.keeper.as_ref())
            && let Err(error) = keeper.kill()
        {
            tracing::error!(session = %self.row.id, %error, "a child that has to end at once could not be killed");
        }
        // Refusals of what cannot be read need no record to be safe: they are not held up by the store, and a hub
        // that dies before the commit reads the same lines again and says the same.
        for line in batch.before {
            self.send(&line).await?;
        }
        kill_point(what, "read");
        let made = self.store_held(batch.changes).await?;
        drop(batch.place);
        kill_point(what, "stored");
        for (tool_use_id, line) in batch.gated {
            if !made.holds(&tool_use_id) {
                self.send(&line).await?;
            }
        }
        for line in batch.after {
            self.send(&line).await?;
        }
        kill_point(what, "answered");
        self.hold(&made).await?;
        for (reply, outcome) in batch.answers {
            let refused = |why| Error::new(ErrorKind::AgentRefused, format!("the agent refused: {why}"));
            // Whoever asked may have gone.
            let _ = reply.send(outcome.map_err(refused));
        }
        if let Some(cause) = batch.alarm {
            return Box::pin(self.end_run(cause)).await;
        }
        if batch.ready {
            self.send_prompt().await?;
        }
        Ok(())
    }

    /// Makes changes durable, however long it takes. Meanwhile a wish to stop ends the processes at once, a prompt or a
    /// message is refused, and the rest waits its turn.
    pub(super) async fn commit_held(&mut self, changes: Vec<Change>) -> Result<(), Closing> {
        self.store_held(changes).await.map(drop)
    }

    /// The same, for those who want to know what came of it.
    pub(super) async fn store_held(&mut self, changes: Vec<Change>) -> Result<Committed, Closing> {
        if changes.is_empty() {
            return Ok(Committed::default());
        }
        let mut pause = FIRST_PAUSE;
        let mut held = None;
        loop {
            let why = match self.hub.commit(changes.clone()).await {
                Ok(made) => return Ok(made),
                Err(StoreError::Unavailable(why)) => why,
                Err(error) => {
                    // Ours to have prevented. Closing the gate for good is the only safe thing left.
                    tracing::error!(session = %self.row.id, %error, "a batch cannot be stored; the child is ended");
                    self.kill_child();
                    return Ok(Committed::default());
                }
            };
            tracing::warn!(session = %self.row.id, why, "held until it can be stored");
            held.get_or_insert_with(|| self.hub.metrics().hold());
            tokio::select! {
                () = self.hub.closing().cancelled() => return Err(Closing),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                command = self.inbox.recv() => match command {
                    // Both may be large, and nobody knows for how long they would be kept.
                    Some(Command::Prompt { reply, .. } | Command::Send { reply, .. }) => {
                        let why = "nothing can be written down now, so nothing was done; try again later";
                        let _ = reply.send(Err(Error::new(ErrorKind::StoreUnavailable, why)));
                    }
                    Some(command) => {
                        if matches!(command, Command::Stop { .. }) {
                            self.kill_child();
                        }
                        self.deferred.push_back(command);
                    }
                    None => return Err(Closing),
                },
            }
        }
    }

    fn kill_child(&self) {
        if let Some(run) = &self.run
            && let Some(keeper) = &run.keeper
            && let Err(error) = keeper.terminate()
        {
            tracing::error!(session = %self.row.id, %error, "a child could not be ended");
        }
    }

    /// Passes a line on to the child, once, however long the disk takes to have room for it. After a restart, what is
    /// to be said is found in more than one way: read again, kept in the store, just decided.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), Closing> {
        let id = plexus_claude::sent_id(line.as_bytes());
        let mut pause = FIRST_PAUSE;
        let mut held = None;
        loop {
            let Some(run) = self.run.as_mut() else { return Ok(()) };
            if id.as_ref().is_some_and(|id| run.sent.contains(id)) {
                return Ok(());
            }
            match run.outbox.append(line) {
                Ok(()) => {
                    run.sent.extend(id);
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(session = %self.row.id, %error, "a line is held until it can be sent");
                    held.get_or_insert_with(|| self.hub.metrics().hold());
                }
            }
            tokio::select! {
                () = self.hub.closing().cancelled() => return Err(Closing),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    /// The turn events belong to: the one in progress, or the latest.
    pub(super) fn event_turn(&self) -> u64 {
        self.turn.as_ref().map_or(self.row.latest_turn, |turn| turn.number)
    }

    /// Where the conversation stands.
    pub(super) fn head(&self) -> Position {
        Position { tree_id: self.row.tree, node_id: self.row.head }
    }
}
