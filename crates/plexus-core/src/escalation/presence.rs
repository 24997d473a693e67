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
    /// When other hubs have last seen a caller.
    elsewhere: Mutex<HashMap<String, Instant>>,
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
        Self { started: Instant::now(), seen: Mutex::default(), elsewhere: Mutex::default() }
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

    /// The callers that are in a call at this hub, or were within this time.
    pub(super) fn within(&self, within: Duration) -> Vec<String> {
        let seen = self.lock();
        let recent = seen.iter().filter(|(_, seen)| seen.calls > 0 || seen.last.elapsed() < within);
        recent.map(|(key, _)| key.clone()).collect()
    }

    /// The callers that other hubs have seen, and how long ago.
    pub(super) fn set_elsewhere(&self, callers: Vec<(String, Duration)>) {
        let now = Instant::now();
        let at = |(key, ago)| Some((key, now.checked_sub(ago)?));
        *self.lock_elsewhere() = callers.into_iter().take(MAX_CALLERS).filter_map(at).collect();
    }

    /// Whether the caller is in a call, or was within this time.
    pub(super) fn is_present(&self, key: &str, within: Duration) -> bool {
        let here = self.lock().get(key).map(|seen| seen.calls > 0 || seen.last.elapsed() < within);
        let elsewhere = || self.lock_elsewhere().get(key).map(|at| at.elapsed() < within);
        match (here, elsewhere()) {
            (None, None) => self.started.elapsed() < within,
            (here, elsewhere) => here.unwrap_or(false) || elsewhere.unwrap_or(false),
        }
    }

    fn lock_elsewhere(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_caller_at_another_hub_is_present() {
        let presence = Presence::default();
        let seen = |secs| vec![("a".to_owned(), Duration::from_secs(secs))];
        presence.set_elsewhere(seen(20));
        assert!(presence.is_present("a", Duration::from_secs(60)));
        assert!(!presence.is_present("a", Duration::from_secs(10)));
        assert!(presence.within(Duration::from_secs(60)).is_empty(), "it was not seen here");
        let call = presence.enter("a".to_owned());
        presence.set_elsewhere(seen(50));
        assert!(presence.is_present("a", Duration::ZERO), "it is in a call here");
        assert_eq!(presence.within(Duration::ZERO), ["a"]);
        drop(call);
        assert!(presence.is_present("a", Duration::from_secs(10)));
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
