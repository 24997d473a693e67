//! Announcements of commits that are not urgent. A message announces the commits of all hubs so far, up to the number that it contains. So a hub
//! whose commits another one has announced sends no message, and the number of messages does not grow with the number of hubs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use plexus_protocol::HostName;
use tokio::time::Instant;

/// The shortest time between two announcements, and between two reads because of announcements.
pub(super) const INTERVAL: Duration = Duration::from_millis(25);
/// Hubs wait up to this much longer, each for a different time, so that one of them announces the commits of all.
const STAGGER_MS: u64 = 10;

/// The last announcement.
pub(super) struct Announcements {
    /// The last transaction that was announced.
    upto: u64,
    at: Option<Instant>,
    interval: Duration,
}

impl Announcements {
    pub(super) fn of(host: &HostName) -> Self {
        let mut hasher = DefaultHasher::new();
        host.as_str().hash(&mut hasher);
        let stagger = Duration::from_millis(hasher.finish() % STAGGER_MS);
        Self { upto: 0, at: None, interval: INTERVAL + stagger }
    }

    /// A message of any hub has announced the transactions up to this number.
    pub(super) fn received(&mut self, upto: u64, now: Instant) {
        self.upto = upto;
        self.at = Some(now);
    }

    /// Messages may have been missed.
    pub(super) fn forget(&mut self) {
        self.upto = 0;
    }

    /// When a commit of now is announced: at once, unless there was an announcement a moment ago.
    pub(super) fn next(&self, now: Instant) -> Instant {
        self.at.map_or(now, |at| now.max(at + self.interval))
    }

    /// Whether a transaction has been announced.
    pub(super) fn include(&self, number: u64) -> bool {
        number <= self.upto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcements(host: &str) -> Announcements {
        Announcements::of(&HostName::try_from(host.to_owned()).unwrap())
    }

    #[test]
    fn the_first_commit_is_announced_at_once_and_the_next_ones_together() {
        let mut announcements = announcements("laptop");
        let start = Instant::now();
        assert_eq!(announcements.next(start), start);
        announcements.received(7, start);
        let due = announcements.next(start + Duration::from_millis(1));
        assert!(due >= start + INTERVAL && due < start + INTERVAL + Duration::from_millis(STAGGER_MS));
        let later = start + Duration::from_secs(1);
        assert_eq!(announcements.next(later), later);
    }

    #[test]
    fn a_message_announces_all_transactions_up_to_its_number() {
        let mut announcements = announcements("laptop");
        announcements.received(7, Instant::now());
        assert!(announcements.include(6) && announcements.include(7) && !announcements.include(8));
        announcements.forget();
        assert!(!announcements.include(7));
    }
}
