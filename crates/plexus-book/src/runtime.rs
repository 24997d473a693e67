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
    now_ms() / 1000
}

/// What has to be added to the clock of this machine. Hubs that share a database use the clock of the database.
#[cfg(not(feature = "explore"))]
static CORRECTION_MS: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);

/// A smaller difference is not corrected: measuring it is not exact, and the time should not jump.
#[cfg(not(feature = "explore"))]
const SMALL_MS: u64 = 1000;

/// The present time, in milliseconds since 1970.
#[cfg(not(feature = "explore"))]
pub fn now_ms() -> u64 {
    machine_ms().saturating_add_signed(CORRECTION_MS.load(std::sync::atomic::Ordering::Relaxed))
}

/// Corrects the clock: this is the present time, in milliseconds since 1970. Returns by how much the clock of this machine is wrong, if that is new.
#[cfg(not(feature = "explore"))]
pub fn correct_clock(present_ms: u64) -> Option<i64> {
    if present_ms.abs_diff(now_ms()) < SMALL_MS {
        return None;
    }
    let correction = present_ms.cast_signed().saturating_sub(machine_ms().cast_signed());
    CORRECTION_MS.store(correction, std::sync::atomic::Ordering::Relaxed);
    Some(-correction)
}

/// The clock of this machine.
#[cfg(not(feature = "explore"))]
fn machine_ms() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};

    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_add_signed(wrong_by_ms())
}

/// By how much the clock of this machine seems to be wrong: a chaos run sets it. A release has no such setting.
#[cfg(all(debug_assertions, not(feature = "explore")))]
fn wrong_by_ms() -> i64 {
    static OFFSET: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *OFFSET.get_or_init(|| {
        let secs = std::env::var("PLEXUS_CLOCK_OFFSET_SECS").ok().and_then(|secs| secs.parse::<i64>().ok());
        secs.map_or(0, |secs| secs.saturating_mul(1000))
    })
}

#[cfg(all(not(debug_assertions), not(feature = "explore")))]
fn wrong_by_ms() -> i64 {
    0
}

/// The present time, in milliseconds since 1970.
#[cfg(feature = "explore")]
pub fn now_ms() -> u64 {
    now() * 1000
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

#[cfg(all(test, not(feature = "explore")))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_corrected_by_more_than_a_second() {
        let machine = machine_ms();
        assert_eq!(correct_clock(machine + 200), None);
        let wrong_by = correct_clock(machine - 90_000).unwrap();
        assert!((89_000..91_000).contains(&wrong_by), "{wrong_by}");
        assert!(now_ms().abs_diff(machine - 90_000) < 10_000);
        assert!(correct_clock(machine).is_some());
        assert!(now_ms().abs_diff(machine) < 10_000);
    }
}
