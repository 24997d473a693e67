//! What the book finds around it here: a clock that the schedule moves on, shuttle's locks, and nothing else.

/// A time that goes on when someone looks at it, sooner or later as chance has it.
pub(crate) mod clock {
    use std::sync::atomic::{AtomicU64, Ordering};

    use plexus_protocol::UnixSeconds;
    use shuttle::rand::Rng as _;

    shuttle::thread_local! {
        static NOW: AtomicU64 = const { AtomicU64::new(1_000) };
    }

    pub(crate) fn now() -> UnixSeconds {
        let step = shuttle::rand::thread_rng().gen_range(0..=2);
        NOW.with(|now| now.fetch_add(step, Ordering::Relaxed) + step)
    }
}

/// Being killed between two steps is a matter of the schedule.
pub(crate) mod kill_point {
    pub(crate) fn kill_point(_what: &str, _step: &str) {
        shuttle::thread::yield_now();
    }
}

/// Nobody counts here.
pub(crate) mod metrics {
    use std::time::Duration;

    use plexus_store::StoreError;

    pub(crate) struct Metrics;

    impl Metrics {
        pub(crate) fn committed<T>(&self, _after: Duration, _answer: &Result<T, StoreError>) {}
        pub(crate) fn hold(&self) {}
    }
}

/// The scheduler's own locks.
pub(crate) mod sync {
    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use std::sync::PoisonError;
}
