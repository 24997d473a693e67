//! Following what happens: the events of a session, or the approvals, from any position on and then live. A follower
//! reads the store when its reader is ready for more, so a slow one holds up nobody and misses nothing; only deltas,
//! which are not stored, are for those who listen at the time.

mod approvals;
mod changes;
mod live;

use std::sync::Arc;

use plexus_protocol::stream::SessionFrame;
use plexus_protocol::{Error, Object, SessionId};
use plexus_store::{EventRow, OnBehalf, SessionRow, Store};
use serde_json::json;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::{broadcast, watch};

pub use approvals::{ApprovalFollower, ApprovalUpdate};
pub use changes::ChangeFollower;
pub(crate) use live::LiveSessions;
use live::{Found, Live};

use crate::access::on_behalf_of;
use crate::access::{self, Needs};
use crate::caller::Caller;
use crate::deltas::Deltas;
use crate::errors::store_error;
use crate::housekeeping::{check_kept, gone};
use crate::metrics::{Metrics, Raised, Stream};
use crate::tasks::Tasks;
use crate::view;
use plexus_book::{Commits, next};

/// How many are read at a time.
const PAGE: u64 = 200;
/// How much is told at a time: what a reader that never reads keeps in memory.
const TOLD_BYTES: usize = 64 * 1024;

/// A place in a session: before event `seq` of turn `turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// The turn.
    pub turn: u64,
    /// The first event wanted.
    pub seq: u64,
}

impl EventCursor {
    fn next(self) -> Self {
        Self { seq: self.seq.saturating_add(1), ..self }
    }
}

/// An event with its place.
#[derive(Debug)]
pub struct FollowedEvent {
    /// Where it stands.
    pub place: EventCursor,
    /// `{turn, seq, event, at}` as JSON, made once for all who follow.
    pub data: String,
}

/// What a follower of a session is told.
#[derive(Debug)]
pub enum SessionUpdate {
    /// Events, in order.
    Events(Vec<Arc<FollowedEvent>>),
    /// A delta, as Claude Code sent it.
    Delta(Arc<Object>),
}

/// Follows one session.
pub struct SessionFollower {
    store: Arc<dyn Store>,
    session: SessionId,
    place: EventCursor,
    live: Arc<Live>,
    grown: watch::Receiver<()>,
    deltas: broadcast::Receiver<Arc<Object>>,
    /// Events that were read and wait for the deltas before them.
    read: Vec<Arc<FollowedEvent>>,
    /// There was more to read than it took.
    behind: bool,
    behalf: OnBehalf,
    _counted: Raised,
}

/// Followers of sessions, approvals and changes, and what they read from.
pub(crate) struct Follow {
    store: Arc<dyn Store>,
    commits: Arc<Commits>,
    metrics: Arc<Metrics>,
    deltas: Arc<Deltas>,
    tasks: Tasks,
    live: LiveSessions,
}

impl Follow {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        commits: Arc<Commits>,
        metrics: Arc<Metrics>,
        deltas: Arc<Deltas>,
        tasks: Tasks,
    ) -> Self {
        Self { store, commits, metrics, deltas, tasks, live: LiveSessions::default() }
    }

    /// Follows a session from a place on; from the beginning of its latest turn where none is given.
    pub(crate) async fn follow_session(
        &self,
        caller: Caller,
        session: SessionId,
        from: Option<EventCursor>,
    ) -> Result<SessionFollower, Error> {
        let follow = async {
            let caller = access::admit(&*self.store, caller.clone(), Needs::Read).await?;
            let row = access::find_session(&*self.store, &caller, Some(session), None).await?;
            self.follow_found(&row, from).await
        };
        on_behalf_of(&caller.principal).perform(follow).await
    }

    pub(crate) async fn follow_found(
        &self,
        row: &SessionRow,
        from: Option<EventCursor>,
    ) -> Result<SessionFollower, Error> {
        let session = row.id;
        let place = from.unwrap_or(EventCursor { turn: row.latest_turn, seq: 0 });
        check_kept(self.store.turn(session, place.turn).await.map_err(store_error)?.as_ref())?;
        let live = self.live.of(self, session, row.latest_turn).await?;
        let grown = live.subscribe();
        let deltas = self.deltas.listen(session);
        let (store, read) = (Arc::clone(&self.store), Vec::new());
        let _counted = self.metrics.listen(Stream::Session);
        let behalf = OnBehalf::current();
        Ok(SessionFollower {
            store,
            session,
            place,
            live,
            grown,
            deltas,
            read,
            behind: false,
            behalf,
            _counted,
        })
    }
}

impl SessionFollower {
    /// What comes next, however long that takes. Cancel safe.
    pub async fn next(&mut self) -> Result<SessionUpdate, Error> {
        loop {
            if self.read.is_empty() {
                self.read = self.more().await?;
            }
            if self.behind {
                // Who is behind does not listen at the time.
                self.deltas = self.deltas.resubscribe();
            }
            // Deltas are told before what they make up is stored, so whatever was read has its deltas here by now.
            match self.deltas.try_recv() {
                Ok(delta) => return Ok(SessionUpdate::Delta(delta)),
                Err(TryRecvError::Lagged(_)) => continue,
                Err(TryRecvError::Empty | TryRecvError::Closed) => {}
            }
            if !self.read.is_empty() {
                return Ok(SessionUpdate::Events(std::mem::take(&mut self.read)));
            }
            tokio::select! {
                biased;
                () = next(&mut self.grown) => {}
                Ok(delta) = self.deltas.recv() => return Ok(SessionUpdate::Delta(delta)),
            }
        }
    }

    /// Goes on from another place.
    pub(crate) fn go_to(&mut self, place: EventCursor) {
        self.place = place;
    }

    /// What comes next of one turn; `None` once its last event was told.
    pub(crate) async fn next_of(&mut self, turn: u64) -> Result<Option<SessionUpdate>, Error> {
        if self.read.is_empty() && self.place.seq > 0 {
            // In this order: a turn that is over has all its events.
            let store = &self.store;
            let row = store.turn(self.session, turn).await.map_err(store_error)?;
            let over = row.is_none_or(|row| row.ended_at.is_some());
            let all = store.event_count(self.session, turn).await.map_err(store_error)?;
            if over && self.place.seq >= all {
                return Ok(None);
            }
        }
        self.next().await.map(Some)
    }

    async fn more(&mut self) -> Result<Vec<Arc<FollowedEvent>>, Error> {
        self.grown.mark_unchanged();
        let (mut events, past) = match self.live.after(self.place) {
            Found::Next(events) => (events, false),
            Found::Past => {
                let mut place = self.place;
                let page = page(&*self.store, self.session, &mut place);
                (self.behalf.clone().perform(page).await?, true)
            }
        };
        let mut bytes = 0;
        let fits = events.iter().take_while(|followed| {
            bytes += followed.data.len();
            bytes <= TOLD_BYTES
        });
        let fits = fits.count().max(1);
        self.behind = past || events.len() > fits || events.len() as u64 == PAGE;
        events.truncate(fits);
        if let Some(last) = events.last() {
            self.place = last.place.next();
        }
        Ok(events)
    }
}

/// Reads the store from a place on, into the next turn if need be, and moves the place.
async fn page(store: &dyn Store, session: SessionId, place: &mut EventCursor) -> Result<Vec<Arc<FollowedEvent>>, Error> {
    loop {
        // Read first: a later turn begins only when all events of the one before are there.
        let latest = store.session(session).await.map_err(store_error)?.map_or(0, |row| row.latest_turn);
        let rows = store.events(session, place.turn, place.seq, PAGE).await.map_err(store_error)?;
        if rows.first().is_some_and(|first| first.seq > place.seq) {
            return Err(gone(place.turn));
        }
        if let Some(last) = rows.last() {
            place.seq = last.seq + 1;
            return Ok(rows.into_iter().map(|row| Arc::new(followed(row))).collect());
        }
        if place.turn >= latest {
            return Ok(Vec::new());
        }
        check_kept(store.turn(session, place.turn).await.map_err(store_error)?.as_ref())?;
        *place = EventCursor { turn: place.turn + 1, seq: 0 };
    }
}

fn followed(row: EventRow) -> FollowedEvent {
    let place = EventCursor { turn: row.turn, seq: row.seq };
    let shown = view::event(row, usize::MAX);
    let frame = SessionFrame { turn: place.turn, seq: place.seq, event: shown.event, at: shown.at };
    FollowedEvent { place, data: json!(frame).to_string() }
}
