//! The latest events of a followed session, prepared once for all followers. One task takes them from the commits, and reads the store
//! if there is a gap between its position and a commit. Followers take the events from memory, and read the store themselves only if they are
//! further behind.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plexus_protocol::{Error, SessionId};
use plexus_store::{EventRow, Store};
use tokio::sync::watch;

use super::{EventCursor, Follow, FollowedEvent, PAGE, followed, page};
use plexus_book::{Topic, next};

/// The bytes of events that are kept in memory for followers that are not far behind.
const KEPT_BYTES: usize = 512 * 1024;
/// The bytes of committed events that wait for the task.
const WAITING_BYTES: usize = 4 * 1024 * 1024;
/// The pause before a failed read is retried.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The latest events of one session.
#[derive(Debug)]
pub(super) struct LiveEvents {
    latest: Mutex<Latest>,
    /// Events of commits that are not among the latest yet.
    committed: Mutex<CommittedEvents>,
    grown: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct CommittedEvents {
    rows: VecDeque<EventRow>,
    bytes: usize,
    /// Whether the store may have events that are not in `rows`, apart from those that the task already has.
    incomplete: bool,
}

/// The result of taking committed events.
enum Taken {
    /// The next events.
    Events(Vec<Arc<FollowedEvent>>),
    /// There are no more.
    All,
    /// The next events are in the store.
    Incomplete,
}

#[derive(Debug)]
struct Latest {
    /// All events from this position on are in `events`.
    from: EventCursor,
    events: VecDeque<Arc<FollowedEvent>>,
    bytes: usize,
}

/// The result of a lookup in the latest events.
pub(super) enum Lookup {
    /// The next events; empty if the follower has read them all.
    Next(Vec<Arc<FollowedEvent>>),
    /// The follower is too far behind and must read the store.
    TooFarBehind,
}

impl LiveEvents {
    /// The events from a position on.
    pub(super) fn after(&self, cursor: EventCursor) -> Lookup {
        let latest = self.latest();
        if cursor < latest.from {
            return Lookup::TooFarBehind;
        }
        let first = latest.events.partition_point(|followed| followed.cursor < cursor);
        Lookup::Next(latest.events.range(first..).take(PAGE as usize).cloned().collect())
    }

    /// Signals whenever more events are available.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }

    /// Takes the events that follow `cursor` from the commits, as many as a page has, and advances it.
    fn take_committed(&self, cursor: &mut EventCursor) -> Taken {
        let mut committed = self.committed();
        if std::mem::take(&mut committed.incomplete) {
            return Taken::Incomplete;
        }
        let mut rows = Vec::new();
        while let Some(row) = committed.rows.front()
            && rows.len() < PAGE as usize
        {
            let at = EventCursor { turn: row.turn, seq: row.seq };
            if at > *cursor {
                // The first event of another turn.
                break;
            }
            let row = committed.rows.pop_front();
            committed.bytes -= row.as_ref().map_or(0, |row| row.event.as_str().len());
            // Other events were already read from the store.
            if at == *cursor {
                rows.extend(row);
                *cursor = cursor.next();
            }
        }
        let more = !committed.rows.is_empty();
        drop(committed);
        match (rows.is_empty(), more) {
            (true, false) => Taken::All,
            (true, true) => Taken::Incomplete,
            (false, _) => Taken::Events(rows.into_iter().map(|row| Arc::new(followed(row))).collect()),
        }
    }

    fn committed(&self) -> MutexGuard<'_, CommittedEvents> {
        // Any contents are consistent.
        self.committed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, events: &[Arc<FollowedEvent>]) {
        let mut latest = self.latest();
        for followed in events {
            latest.bytes += followed.data.len();
            latest.events.push_back(Arc::clone(followed));
        }
        while latest.bytes > KEPT_BYTES
            && let Some(oldest) = latest.events.pop_front()
        {
            latest.bytes -= oldest.data.len();
            latest.from = oldest.cursor.next();
        }
        drop(latest);
        self.grown.send_replace(());
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        // Every step leaves the data consistent, so a panic elsewhere has not damaged it.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions that have followers.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions {
    sessions: Mutex<HashMap<SessionId, Weak<LiveEvents>>>,
}

impl LiveSessions {
    /// The latest events of a session. They stay in memory for as long as a follower holds them.
    pub(super) async fn of(
        &self,
        follow: &Follow,
        session: SessionId,
        turn: u64,
    ) -> Result<Arc<LiveEvents>, Error> {
        if let Some(live) = self.known(session) {
            return Ok(live);
        }
        // Subscribed before the events are counted, so that no later event is missed.
        let signal = follow.commits.signals().subscribe(Topic::Session(session));
        let count = follow.store.event_count(session, turn).await.map_err(crate::errors::store_error)?;
        let from = EventCursor { turn, seq: count };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = sessions.get(&session).and_then(Weak::upgrade) {
            return Ok(live);
        }
        sessions.retain(|_, live| live.strong_count() > 0);
        let latest = Latest { from, events: VecDeque::new(), bytes: 0 };
        let live = Arc::new(LiveEvents {
            latest: Mutex::new(latest),
            committed: Mutex::default(),
            grown: watch::Sender::new(()),
        });
        sessions.insert(session, Arc::downgrade(&live));
        let reader = read(Arc::clone(&follow.store), Arc::downgrade(&live), session, from, signal);
        follow.tasks.spawn_until_closing(reader);
        Ok(live)
    }

    /// Hands committed events to the tasks of their sessions. The signal of the commit wakes the tasks.
    pub(super) fn on_commit(&self, events: &[EventRow]) {
        for of_session in events.chunk_by(|a, b| a.session == b.session) {
            let Some(live) = of_session.first().and_then(|row| self.known(row.session)) else { continue };
            let mut committed = live.committed();
            committed.rows.extend(of_session.iter().cloned());
            committed.bytes += of_session.iter().map(|row| row.event.as_str().len()).sum::<usize>();
            if committed.bytes > WAITING_BYTES {
                *committed = CommittedEvents { incomplete: true, ..CommittedEvents::default() };
            }
        }
    }

    /// The store has events of this session that were not handed over.
    pub(super) fn read_store(&self, session: SessionId) {
        if let Some(live) = self.known(session) {
            live.committed().incomplete = true;
        }
    }

    /// The store may have events of any session that were not handed over.
    pub(super) fn read_store_for_all(&self) {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for live in sessions.values().filter_map(Weak::upgrade) {
            live.committed().incomplete = true;
        }
    }

    fn known(&self, session: SessionId) -> Option<Arc<LiveEvents>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&session).and_then(Weak::upgrade)
    }
}

/// Adds events as they are committed, until the session has no follower.
async fn read(
    store: Arc<dyn Store>,
    live: Weak<LiveEvents>,
    session: SessionId,
    mut cursor: EventCursor,
    mut signal: watch::Receiver<()>,
) {
    let mut read_store = true;
    loop {
        let Some(live) = live.upgrade() else { return };
        signal.mark_unchanged();
        if !read_store {
            match live.take_committed(&mut cursor) {
                Taken::Events(events) => {
                    live.add(&events);
                    tokio::task::yield_now().await;
                }
                Taken::All => wait(live, &mut signal).await,
                Taken::Incomplete => read_store = true,
            }
            continue;
        }
        match page(&*store, session, &mut cursor).await {
            Ok(events) if events.is_empty() => read_store = false,
            Ok(events) => live.add(&events),
            Err(error) => {
                tracing::warn!(%session, %error, "cannot read the latest events; trying again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// Waits for a commit, or until the session has no follower.
async fn wait(live: Arc<LiveEvents>, signal: &mut watch::Receiver<()>) {
    let gone = live.grown.clone();
    drop(live);
    tokio::select! {
        () = next(signal) => {}
        () = gone.closed() => {}
    }
}
