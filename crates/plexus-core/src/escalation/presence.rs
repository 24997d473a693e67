//! Tracks which callers are present. A caller is present during a call and for a short time after it. For the same time
//! after its start, the hub treats every caller as present, because no caller has had time to call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of callers in memory. Beyond it, the one whose last call is oldest is dropped.
const MAX_CALLERS: usize = 8192;

/// The last call of each caller.
#[derive(Debug)]
pub(super) struct Presence {
    /// When the hub started.
    started: Instant,
    seen: Mutex<HashMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    /// The calls in progress.
    calls: usize,
    /// When the last call started or ended.
    last: Instant,
}

impl Default for Presence {
    fn default() -> Self {
        Self { started: Instant::now(), seen: Mutex::default() }
    }
}

impl Presence {
    /// Counts a call until the returned guard is dropped.
    pub(super) fn enter(&self, key: String) -> CallGuard<'_> {
        let mut seen = self.lock();
        if seen.len() >= MAX_CALLERS && !seen.contains_key(&key) {
            // The oldest caller is absent anyway: an unknown caller is present only shortly after the hub's start.
            let oldest = seen.iter().filter(|(_, seen)| seen.calls == 0).min_by_key(|(_, seen)| seen.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                seen.remove(&oldest);
            }
        }
        let now = Instant::now();
        seen.entry(key.clone()).or_insert(Seen { calls: 0, last: now }).calls += 1;
        drop(seen);
        CallGuard { presence: self, key }
    }

    /// Whether the caller is in a call, or was within this time.
    pub(super) fn is_present(&self, key: &str, within: Duration) -> bool {
        match self.lock().get(key) {
            Some(seen) => seen.calls > 0 || seen.last.elapsed() < within,
            None => self.started.elapsed() < within,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct CallGuard<'a> {
    presence: &'a Presence,
    key: String,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if let Some(seen) = self.presence.lock().get_mut(&self.key) {
            seen.calls = seen.calls.saturating_sub(1);
            seen.last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_present_during_a_call_and_for_a_time_after_it() {
        let presence = Presence::default();
        let never = Duration::ZERO;
        assert!(presence.is_present("a", Duration::from_secs(60)), "the hub has just started");
        assert!(!presence.is_present("a", never));
        let (one, other) = (presence.enter("a".to_owned()), presence.enter("a".to_owned()));
        drop(one);
        assert!(presence.is_present("a", never), "the other call is still open");
        drop(other);
        assert!(!presence.is_present("a", never));
        assert!(presence.is_present("a", Duration::from_secs(60)));
    }

    #[test]
    fn memory_is_bounded_and_a_caller_in_a_call_is_never_dropped() {
        let presence = Presence::default();
        let stays = presence.enter("stays".to_owned());
        for i in 0..2 * MAX_CALLERS {
            drop(presence.enter(i.to_string()));
        }
        assert_eq!(presence.lock().len(), MAX_CALLERS);
        assert!(presence.is_present("stays", Duration::ZERO));
        drop(stays);
    }
}
