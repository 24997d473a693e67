//! The latest events of a followed session, read once for all followers. One task reads the store as it grows.
//! Followers take the events from memory, and read the store themselves only if they are further behind.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plexus_protocol::{Error, SessionId};
use plexus_store::Store;
use tokio::sync::watch;

use super::{EventCursor, Follow, FollowedEvent, PAGE, page};
use plexus_book::{Topic, next};

/// The bytes of events that are kept in memory for followers that are not far behind.
const KEPT_BYTES: usize = 512 * 1024;
/// The pause before a failed read is retried.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The latest events of one session.
#[derive(Debug)]
pub(super) struct LiveEvents {
    latest: Mutex<Latest>,
    grown: watch::Sender<()>,
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
        let live = Arc::new(LiveEvents { latest: Mutex::new(latest), grown: watch::Sender::new(()) });
        sessions.insert(session, Arc::downgrade(&live));
        let reader = read(Arc::clone(&follow.store), Arc::downgrade(&live), session, from, signal);
        follow.tasks.spawn_until_closing(reader);
        Ok(live)
    }

    fn known(&self, session: SessionId) -> Option<Arc<LiveEvents>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&session).and_then(Weak::upgrade)
    }
}

/// Reads the store as it grows, until the session has no follower.
async fn read(
    store: Arc<dyn Store>,
    live: Weak<LiveEvents>,
    session: SessionId,
    mut cursor: EventCursor,
    mut signal: watch::Receiver<()>,
) {
    loop {
        let Some(live) = live.upgrade() else { return };
        signal.mark_unchanged();
        match page(&*store, session, &mut cursor).await {
            Ok(events) if events.is_empty() => {
                let gone = live.grown.clone();
                drop(live);
                tokio::select! {
                    () = next(&mut signal) => {}
                    () = gone.closed() => {}
                }
            }
            Ok(events) => live.add(&events),
            Err(error) => {
                tracing::warn!(%session, %error, "cannot read the latest events; trying again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}
