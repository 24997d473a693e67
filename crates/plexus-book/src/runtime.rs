//! The locks and the clock of the book. With the feature `explore` both belong to the scheduler.

pub(crate) use std::sync::PoisonError;

#[cfg(not(feature = "explore"))]
pub(crate) use std::sync::Mutex;

#[cfg(feature = "explore")]
pub(crate) use shuttle::sync::Mutex;

use plexus_protocol::UnixSeconds;

/// The present time.
#[cfg(not(feature = "explore"))]
pub fn now() -> UnixSeconds {
    use std::time::{SystemTime, UNIX_EPOCH};

    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A clock that advances by a random step at each reading.
#[cfg(feature = "explore")]
pub fn now() -> UnixSeconds {
    use std::sync::atomic::{AtomicU64, Ordering};

    use shuttle::rand::Rng as _;

    shuttle::thread_local! {
        static NOW: AtomicU64 = const { AtomicU64::new(1_000) };
    }
    let step = shuttle::rand::thread_rng().gen_range(0..=2);
    NOW.with(|now| now.fetch_add(step, Ordering::Relaxed) + step)
}
