//! Following: the events of a session, or approvals, from any position and then live. A follower takes events from memory or the store when
//! its reader is ready for more, so a slow reader delays nobody and misses nothing. Deltas are the exception: they are
//! not stored, so only current listeners receive them.

mod approvals;
mod changes;
mod live;

use std::sync::Arc;

use plexus_protocol::stream::SessionFrame;
use plexus_protocol::{Error, Object, SessionId, is_plain_json};
use plexus_store::{Committed, EventRow, OnBehalf, SessionRow, Store};
use serde_json::json;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::{broadcast, watch};

pub use approvals::{ApprovalFollower, ApprovalUpdate};
pub use changes::ChangeFollower;
pub(crate) use live::LiveSessions;
use live::{LiveEvents, Lookup};

use crate::callers::access::on_behalf_of;
use crate::callers::access::{self, Needs};
use crate::callers::caller::Caller;
use crate::deltas::Deltas;
use crate::errors::store_error;
use crate::housekeeping::{check_kept, gone};
use crate::metrics::{GaugeGuard, Metrics, Stream};
use crate::tasks::Tasks;
use crate::view;
use plexus_book::{Commits, next};

/// The maximum number of rows per read.
const PAGE: u64 = 200;
/// The maximum size of one update in bytes. It bounds the memory for a reader that never reads.
const MAX_UPDATE_BYTES: usize = 64 * 1024;

/// A position in a session: before event `seq` of turn `turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// The turn.
    pub turn: u64,
    /// The number of the next event to read.
    pub seq: u64,
}

impl EventCursor {
    fn next(self) -> Self {
        Self { seq: self.seq.saturating_add(1), ..self }
    }
}

/// An event with its position.
#[derive(Debug)]
pub struct FollowedEvent {
    /// The position of the event.
    pub cursor: EventCursor,
    /// `{turn, seq, event, at}` as JSON, serialised once for all followers.
    pub data: String,
}

/// An update for a follower of a session.
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
    cursor: EventCursor,
    live: Arc<LiveEvents>,
    grown: watch::Receiver<()>,
    deltas: broadcast::Receiver<Arc<Object>>,
    /// Events that were read, but must wait for the deltas before them.
    read: Vec<Arc<FollowedEvent>>,
    /// Whether the follower is behind the latest events.
    behind: bool,
    behalf: OnBehalf,
    _counted: GaugeGuard,
}

/// Creates followers of sessions, approvals and changes, and holds their sources.
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

    /// Follows a session from a position, by default from the start of its latest turn.
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

    /// Hands the events of a commit to the followers of their sessions.
    pub(crate) fn on_commit(&self, committed: &Committed) {
        self.live.on_commit(&committed.events);
    }

    /// Another hub has stored events of this session. The signal of the session wakes its followers.
    pub(crate) fn on_remote_events(&self, session: SessionId) {
        self.live.read_store(session);
    }

    /// Other hubs may have stored events of any session.
    pub(crate) fn on_remote_events_of_all(&self) {
        self.live.read_store_for_all();
    }

    pub(crate) async fn follow_found(
        &self,
        row: &SessionRow,
        from: Option<EventCursor>,
    ) -> Result<SessionFollower, Error> {
        let session = row.id;
        let cursor = from.unwrap_or(EventCursor { turn: row.latest_turn, seq: 0 });
        check_kept(self.store.turn(session, cursor.turn).await.map_err(store_error)?.as_ref())?;
        let live = self.live.of(self, session, row.latest_turn).await?;
        let grown = live.subscribe();
        let deltas = self.deltas.listen(session);
        let (store, read) = (Arc::clone(&self.store), Vec::new());
        let _counted = self.metrics.listen(Stream::Session);
        let behalf = OnBehalf::current();
        Ok(SessionFollower {
            store,
            session,
            cursor,
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
    /// Waits for the next update, without a time limit. Cancel safe.
    pub async fn next(&mut self) -> Result<SessionUpdate, Error> {
        loop {
            if self.read.is_empty() {
                self.read = self.more().await?;
            }
            if self.behind {
                // A follower that is behind is not a current listener, so it gets no deltas.
                self.deltas = self.deltas.resubscribe();
            }
            // Deltas are published before the event they make up is stored, so the deltas of every event in `read` have
            // arrived.
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

    /// Continues from another position.
    pub(crate) fn go_to(&mut self, cursor: EventCursor) {
        self.cursor = cursor;
    }

    /// Waits for the next update of one turn; `None` after its last event.
    pub(crate) async fn next_of(&mut self, turn: u64) -> Result<Option<SessionUpdate>, Error> {
        if self.read.is_empty() && self.cursor.seq > 0 {
            // The turn is read before the count, because a finished turn has all its events.
            let store = &self.store;
            let row = store.turn(self.session, turn).await.map_err(store_error)?;
            let over = row.is_none_or(|row| row.ended_at.is_some());
            let all = store.event_count(self.session, turn).await.map_err(store_error)?;
            if over && self.cursor.seq >= all {
                return Ok(None);
            }
        }
        self.next().await.map(Some)
    }

    async fn more(&mut self) -> Result<Vec<Arc<FollowedEvent>>, Error> {
        self.grown.mark_unchanged();
        let (mut events, too_far_behind) = match self.live.after(self.cursor) {
            Lookup::Next(events) => (events, false),
            Lookup::TooFarBehind => {
                let mut cursor = self.cursor;
                let page = page(&*self.store, self.session, &mut cursor);
                (self.behalf.clone().perform(page).await?, true)
            }
        };
        let mut bytes = 0;
        let fits = events.iter().take_while(|followed| {
            bytes += followed.data.len();
            bytes <= MAX_UPDATE_BYTES
        });
        let fits = fits.count().max(1);
        self.behind = too_far_behind || events.len() > fits || events.len() as u64 == PAGE;
        events.truncate(fits);
        if let Some(last) = events.last() {
            self.cursor = last.cursor.next();
        }
        Ok(events)
    }
}

/// Reads the next page from the store, continues into the next turn if necessary, and advances the position.
async fn page(
    store: &dyn Store,
    session: SessionId,
    cursor: &mut EventCursor,
) -> Result<Vec<Arc<FollowedEvent>>, Error> {
    loop {
        // The latest turn is read first, because a turn starts only after all events of the previous one are stored.
        let latest = store.session(session).await.map_err(store_error)?.map_or(0, |row| row.latest_turn);
        let rows = store.events(session, cursor.turn, cursor.seq, PAGE).await.map_err(store_error)?;
        if rows.first().is_some_and(|first| first.seq > cursor.seq) {
            return Err(gone(cursor.turn));
        }
        if let Some(last) = rows.last() {
            cursor.seq = last.seq + 1;
            return Ok(rows.into_iter().map(|row| Arc::new(followed(row))).collect());
        }
        if cursor.turn >= latest {
            return Ok(Vec::new());
        }
        check_kept(store.turn(session, cursor.turn).await.map_err(store_error)?.as_ref())?;
        *cursor = EventCursor { turn: cursor.turn + 1, seq: 0 };
    }
}

fn followed(row: EventRow) -> FollowedEvent {
    let EventRow { turn, seq, at, .. } = row;
    let data = if is_plain_json(row.event.as_str()) {
        format!("{{\"turn\":{turn},\"seq\":{seq},\"event\":{},\"at\":{at}}}", row.event.as_str())
    } else {
        json!(SessionFrame { turn, seq, event: view::event(&row, usize::MAX).event, at }).to_string()
    };
    FollowedEvent { cursor: EventCursor { turn, seq }, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::Event;
    use plexus_store::EventJson;

    #[test]
    fn a_frame_is_the_same_with_and_without_misleading_characters() {
        for text in ["plain \"text\"\n", "bell \u{7}"] {
            let event = Event::Content { text: text.to_owned(), parent_tool_use_id: None, truncated: None };
            let event = EventJson::new(&event).expect("JSON");
            let row = EventRow { session: SessionId::random(), turn: 1, seq: 2, event: event.clone(), at: 3 };
            let frame: SessionFrame = serde_json::from_str(&followed(row.clone()).data).expect("a frame");
            let event = view::event(&row, usize::MAX).event;
            assert_eq!(frame, SessionFrame { turn: 1, seq: 2, event, at: 3 });
        }
    }
}
