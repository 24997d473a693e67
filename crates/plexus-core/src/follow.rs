//! Following what happens: the events of a session, or the approvals, from any position on and then live. A follower
//! reads the store when its reader is ready for more, so a slow one holds up nobody and misses nothing; only deltas,
//! which are not stored, are for those who listen at the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plexus_protocol::{Approval, Error, MAX_TEXT_BYTES, Object, Principal, SessionId, UnixSeconds};
use plexus_store::FeedKind;
use serde_json::Value;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::{broadcast, watch};

use crate::Hub;
use crate::hub::store_error;
use crate::signals::{Topic, next};
use crate::view;

/// How many are read at a time.
const PAGE: u64 = 200;
/// How many deltas a listener may be behind before it misses some.
const DELTAS: usize = 256;

/// A place in a session: before event `seq` of turn `turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The turn.
    pub turn: u64,
    /// The first event wanted.
    pub seq: u64,
}

/// An event with its place.
#[derive(Debug)]
pub struct Followed {
    /// Where it stands.
    pub place: Place,
    /// The event.
    pub event: Value,
    /// When it was stored.
    pub at: UnixSeconds,
}

/// What a follower of a session is told.
#[derive(Debug)]
pub enum Told {
    /// Events, in order.
    Events(Vec<Followed>),
    /// A delta, as Claude Code sent it.
    Delta(Arc<Object>),
}

/// Follows one session.
pub struct SessionFollower {
    hub: Arc<Hub>,
    session: SessionId,
    place: Place,
    signal: watch::Receiver<()>,
    deltas: broadcast::Receiver<Arc<Object>>,
    /// Events that were read and wait for the deltas before them.
    read: Vec<Followed>,
}

/// An approval that was asked, or came to its end.
#[derive(Debug)]
pub struct ApprovalTold {
    /// Its number, to go on from.
    pub number: u64,
    /// `asked` or `resolved`.
    pub what: &'static str,
    /// The approval as it is now.
    pub approval: Approval,
}

/// Follows the approvals asked of one caller, or, for the operator, of anyone.
pub struct ApprovalFollower {
    hub: Arc<Hub>,
    /// `None` for all.
    to: Option<String>,
    after: u64,
    signal: watch::Receiver<()>,
}

impl Hub {
    /// Follows a session from a place on; from the beginning of its latest turn where none is given.
    pub async fn follow_session(
        self: &Arc<Self>,
        principal: &Principal,
        session: SessionId,
        from: Option<Place>,
    ) -> Result<SessionFollower, Error> {
        self.check_may_call(principal).await?;
        let row = self.find_session(principal, Some(session), None).await?;
        let place = from.unwrap_or(Place { turn: row.latest_turn, seq: 0 });
        let signal = self.signals().subscribe(Topic::Session(session));
        let deltas = self.deltas().listen(session);
        Ok(SessionFollower { hub: Arc::clone(self), session, place, signal, deltas, read: Vec::new() })
    }

    /// Follows the approvals after number `after`; from now on where none is given.
    pub async fn follow_approvals(
        self: &Arc<Self>,
        principal: &Principal,
        after: Option<u64>,
    ) -> Result<ApprovalFollower, Error> {
        self.check_may_call(principal).await?;
        let to = (*principal != Principal::Operator).then(|| principal.asked_as().key());
        let topic = to.clone().map_or(Topic::AnyFeed, Topic::Feed);
        let signal = self.signals().subscribe(topic);
        let after = match after {
            Some(after) => after,
            None => self.store().feed_head().await.map_err(store_error)?,
        };
        Ok(ApprovalFollower { hub: Arc::clone(self), to, after, signal })
    }
}

impl SessionFollower {
    /// What comes next, however long that takes. Cancel safe.
    pub async fn next(&mut self) -> Result<Told, Error> {
        loop {
            if self.read.is_empty() {
                self.read = self.page().await?;
            }
            if self.read.len() as u64 == PAGE {
                // Who is behind does not listen at the time.
                self.deltas = self.deltas.resubscribe();
            }
            // Deltas are told before what they make up is stored, so whatever was read has its deltas here by now.
            match self.deltas.try_recv() {
                Ok(delta) => return Ok(Told::Delta(delta)),
                Err(TryRecvError::Lagged(_)) => continue,
                Err(TryRecvError::Empty | TryRecvError::Closed) => {}
            }
            if !self.read.is_empty() {
                return Ok(Told::Events(std::mem::take(&mut self.read)));
            }
            tokio::select! {
                biased;
                () = next(&mut self.signal) => {}
                Ok(delta) = self.deltas.recv() => return Ok(Told::Delta(delta)),
            }
        }
    }

    /// Goes on from another place.
    pub(crate) fn go_to(&mut self, place: Place) {
        self.place = place;
    }

    /// What comes next of one turn; `None` once its last event was told.
    pub(crate) async fn next_of(&mut self, turn: u64) -> Result<Option<Told>, Error> {
        if self.read.is_empty() && self.place.seq > 0 {
            // In this order: a turn that is over has all its events.
            let store = self.hub.store();
            let row = store.turn(self.session, turn).await.map_err(store_error)?;
            let over = row.is_none_or(|row| row.ended_at.is_some());
            let all = store.event_count(self.session, turn).await.map_err(store_error)?;
            if over && self.place.seq >= all {
                return Ok(None);
            }
        }
        self.next().await.map(Some)
    }

    async fn page(&mut self) -> Result<Vec<Followed>, Error> {
        loop {
            let store = self.hub.store();
            // Read first: a later turn begins only when all events of the one before are there.
            let latest =
                store.session(self.session).await.map_err(store_error)?.map_or(0, |row| row.latest_turn);
            let Place { turn, seq } = self.place;
            let rows = store.events(self.session, turn, seq, PAGE).await.map_err(store_error)?;
            if let Some(last) = rows.last() {
                self.place.seq = last.seq + 1;
                return Ok(rows
                    .into_iter()
                    .map(|row| {
                        let place = Place { turn: row.turn, seq: row.seq };
                        let shown = view::event(row, usize::MAX);
                        Followed { place, event: shown.event, at: shown.at }
                    })
                    .collect());
            }
            if turn >= latest {
                return Ok(Vec::new());
            }
            self.place = Place { turn: turn + 1, seq: 0 };
        }
    }
}

impl ApprovalFollower {
    /// What comes next, however long that takes. Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<ApprovalTold>, Error> {
        loop {
            let store = self.hub.store();
            let rows = match &self.to {
                Some(to) => store.feed(to, self.after, PAGE).await,
                None => store.feed_of_all(self.after, PAGE).await,
            };
            let rows = rows.map_err(store_error)?;
            let newest = rows.last().map(|row| row.number);
            let mut told = Vec::new();
            for row in rows {
                let what = match row.kind {
                    FeedKind::Asked => "asked",
                    FeedKind::Resolved => "resolved",
                    FeedKind::Finished | FeedKind::Notice => continue,
                };
                let Some(id) = row.approval else { continue };
                if let Some(approval) = store.approval(id).await.map_err(store_error)? {
                    let approval = view::approval(approval, MAX_TEXT_BYTES);
                    told.push(ApprovalTold { number: row.number, what, approval });
                }
            }
            self.after = newest.unwrap_or(self.after);
            if !told.is_empty() {
                return Ok(told);
            }
            if newest.is_none() {
                next(&mut self.signal).await;
            }
        }
    }
}

/// The deltas of sessions that have them, for those who listen.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    sessions: Mutex<HashMap<SessionId, broadcast::Sender<Arc<Object>>>>,
}

impl Deltas {
    fn listen(&self, session: SessionId) -> broadcast::Receiver<Arc<Object>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(session).or_insert_with(|| broadcast::channel(DELTAS).0).subscribe()
    }

    /// Tells whoever listens; nobody costs nothing.
    pub(crate) fn tell(&self, session: SessionId, delta: Object) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = sessions.get(&session)
            && sender.send(Arc::new(delta)).is_err()
        {
            sessions.remove(&session);
        }
    }
}
