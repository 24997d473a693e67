//! The connections of one door. A connection is waiting unless it carries a request of an authenticated caller: before
//! its first request head, between requests, and during unauthenticated requests. The number of waiting connections is
//! limited; a new one closes the one that has waited longest. So a silent peer cannot block others, and a caller's
//! request is never cut off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_core::{Connected, DoorFigures, DoorName, RejectReason};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::callers::Charge;
use crate::refusal::Refusal;

/// The waiting connections of one door.
pub(crate) struct WaitingConnections {
    name: DoorName,
    most: usize,
    figures: DoorFigures,
    queue: Mutex<Queue>,
}

/// The waiting connections, in the order in which they started to wait.
#[derive(Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

impl WaitingConnections {
    pub(crate) fn new(name: DoorName, most: usize, figures: DoorFigures) -> Arc<Self> {
        Arc::new(Self { name, most, figures, queue: Mutex::default() })
    }

    /// Adds a new connection, which waits.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Connection> {
        let close = CancellationToken::new();
        let ticket = self.wait(close.clone());
        Arc::new(Connection {
            door: Arc::clone(self),
            close,
            ticket: Mutex::new(Some(ticket)),
            meter: Mutex::new(None),
            _counted: self.figures.connected(self.name),
        })
    }

    /// Closes the connection that has waited longest.
    pub(crate) fn close_oldest(&self) {
        let oldest = lock(&self.queue).waiting.pop_first();
        if let Some((_, close)) = oldest {
            close.cancel();
            self.figures.rejected(RejectReason::Waiting);
        }
    }

    fn wait(&self, close: CancellationToken) -> u64 {
        let mut queue = lock(&self.queue);
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.insert(ticket, close);
        let full = queue.waiting.len() > self.most;
        drop(queue);
        if full {
            self.close_oldest();
        }
        ticket
    }

    fn leave(&self, ticket: u64) {
        lock(&self.queue).waiting.remove(&ticket);
    }
}

/// One connection. It lives as long as any part of it is in use.
pub(crate) struct Connection {
    door: Arc<WaitingConnections>,
    close: CancellationToken,
    /// Its position among the waiting connections; `None` while a caller uses it.
    ticket: Mutex<Option<u64>>,
    meter: Mutex<Option<Meter>>,
    _counted: Connected,
}

/// The bytes read so far of an incomplete WebSocket message.
struct Meter {
    charge: Charge,
    began: Instant,
    last: Instant,
}

impl Connection {
    /// Returns when the connection has to make room for another.
    pub(crate) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// Marks the connection as in use until the returned value is dropped.
    pub(crate) fn occupy(self: &Arc<Self>) -> Occupied {
        if let Some(ticket) = lock(&self.ticket).take() {
            self.door.leave(ticket);
        }
        Occupied(Arc::clone(self))
    }

    pub(crate) fn figures(&self) -> &DoorFigures {
        &self.door.figures
    }

    /// Charges subsequent reads to `charge`. Returns the charge for the reads before.
    pub(crate) fn meter(&self, charge: Charge) -> Option<Charge> {
        let now = Instant::now();
        let before = lock(&self.meter).replace(Meter { charge, began: now, last: now });
        before.map(|meter| meter.charge)
    }

    /// Counts bytes that were read.
    pub(crate) fn count(&self, bytes: usize) -> Result<(), Refusal> {
        match lock(&self.meter).as_mut().filter(|_| bytes > 0) {
            None => Ok(()),
            Some(meter) => {
                meter.last = Instant::now();
                if meter.charge.is_empty() {
                    meter.began = meter.last;
                }
                meter.charge.grow(bytes)
            }
        }
    }

    /// Whether a message has started, and has paused or lasted too long. Only time after `reading_since` counts as a
    /// pause.
    pub(crate) fn is_stalled(&self, reading_since: Instant, stall: Duration, whole: Duration) -> bool {
        lock(&self.meter).as_ref().is_some_and(|meter| {
            let paused = meter.last.max(reading_since).elapsed() > stall;
            let late = meter.began.max(reading_since).elapsed() > whole;
            !meter.charge.is_empty() && (paused || late)
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(ticket) = lock(&self.ticket).take() {
            self.door.leave(ticket);
        }
    }
}

/// A connection that an authenticated caller uses. It waits again when this value is dropped.
pub(crate) struct Occupied(Arc<Connection>);

impl Drop for Occupied {
    fn drop(&mut self) {
        let Connection { door, close, ticket, .. } = &*self.0;
        let waits = door.wait(close.clone());
        *lock(ticket) = Some(waits);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(most: usize) -> Arc<WaitingConnections> {
        WaitingConnections::new(DoorName::Http, most, DoorFigures::default())
    }

    fn is_closed(connection: &Connection) -> bool {
        connection.close.is_cancelled()
    }

    #[test]
    fn the_connection_that_waited_longest_is_closed() {
        let door = door(2);
        let [first, second, third] = [(); 3].map(|()| door.enter());
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        drop(second);
        let fourth = door.enter();
        assert!(!is_closed(&third) && !is_closed(&fourth), "a closed connection frees its slot");
    }

    #[test]
    fn a_connection_in_use_is_never_closed_and_then_waits_last() {
        let door = door(2);
        let used = door.enter();
        let occupied = used.occupy();
        let others: Vec<_> = (0..5).map(|_| door.enter()).collect();
        assert!(!is_closed(&used));
        drop(occupied);
        assert!(!is_closed(&used) && is_closed(&others[3]), "it is the newest waiting connection");
        let last = door.enter();
        assert!(is_closed(&others[4]) && !is_closed(&used) && !is_closed(&last));
    }
}
