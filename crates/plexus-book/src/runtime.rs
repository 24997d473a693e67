//! The locks and the clock of the book. With the feature `explore` both belong to the scheduler.

pub(crate) use std::sync::PoisonError;

#[cfg(not(feature = "explore"))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(feature = "explore")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

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
    let correction = new_correction(present_ms, machine_ms(), now_ms())?;
    CORRECTION_MS.store(correction, std::sync::atomic::Ordering::Relaxed);
    Some(-correction)
}

/// What has to be added to the clock of the machine; `None` if the corrected clock is exact enough.
#[cfg(not(feature = "explore"))]
fn new_correction(present_ms: u64, machine_ms: u64, corrected_ms: u64) -> Option<i64> {
    let differs = present_ms.abs_diff(corrected_ms) >= SMALL_MS;
    differs.then(|| present_ms.cast_signed().saturating_sub(machine_ms.cast_signed()))
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
    fn a_clock_that_differs_by_a_second_is_corrected() {
        assert_eq!(new_correction(500_000, 500_900, 500_900), None);
        assert_eq!(new_correction(500_000, 590_000, 590_000), Some(-90_000));
        assert_eq!(new_correction(500_000, 410_000, 410_000), Some(90_000));
        // It is corrected already.
        assert_eq!(new_correction(500_000, 410_000, 500_100), None);
        // The clock of the machine was set meanwhile.
        assert_eq!(new_correction(500_000, 500_000, 590_000), Some(0));
    }
}
