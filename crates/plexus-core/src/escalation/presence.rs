//! Who is there: whoever is in a call now, or was a short while ago. A hub that has just come up takes everyone to be
//! there: they had no chance to call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many are remembered before those who have long been gone are forgotten.
const REMEMBERED: usize = 8192;

/// When everyone was last seen.
#[derive(Debug)]
pub(super) struct Presence {
    since: Instant,
    seen: Mutex<HashMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    calls: usize,
    last: Instant,
}

impl Default for Presence {
    fn default() -> Self {
        Self { since: Instant::now(), seen: Mutex::default() }
    }
}

impl Presence {
    /// Somebody calls; dropped, the call is over.
    pub(super) fn enter(&self, key: String) -> Here<'_> {
        let mut seen = self.lock();
        if seen.len() >= REMEMBERED && !seen.contains_key(&key) {
            // Nothing is lost with the longest gone: whoever is not known counts from the hub's start on.
            let gone = seen.iter().filter(|(_, seen)| seen.calls == 0).min_by_key(|(_, seen)| seen.last);
            if let Some(gone) = gone.map(|(key, _)| key.clone()) {
                seen.remove(&gone);
            }
        }
        let now = Instant::now();
        seen.entry(key.clone()).or_insert(Seen { calls: 0, last: now }).calls += 1;
        drop(seen);
        Here { presence: self, key }
    }

    /// Whether somebody is in a call, or was within this time.
    pub(super) fn is_here(&self, key: &str, within: Duration) -> bool {
        match self.lock().get(key) {
            Some(seen) => seen.calls > 0 || seen.last.elapsed() < within,
            None => self.since.elapsed() < within,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call of somebody.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    presence: &'a Presence,
    key: String,
}

impl Drop for Here<'_> {
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
    fn whoever_is_in_a_call_is_there_and_is_gone_when_the_time_after_it_is_over() {
        let presence = Presence::default();
        let never = Duration::ZERO;
        assert!(presence.is_here("a", Duration::from_secs(60)), "the hub has just come up");
        assert!(!presence.is_here("a", never));
        let (one, other) = (presence.enter("a".to_owned()), presence.enter("a".to_owned()));
        drop(one);
        assert!(presence.is_here("a", never), "the other call goes on");
        drop(other);
        assert!(!presence.is_here("a", never));
        assert!(presence.is_here("a", Duration::from_secs(60)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nobody_in_a_call_is_forgotten() {
        let presence = Presence::default();
        let stays = presence.enter("stays".to_owned());
        for i in 0..2 * REMEMBERED {
            drop(presence.enter(i.to_string()));
        }
        assert_eq!(presence.lock().len(), REMEMBERED);
        assert!(presence.is_here("stays", Duration::ZERO));
        drop(stays);
    }
}
