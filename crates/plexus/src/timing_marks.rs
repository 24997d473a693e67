//! Writes timing marks to stderr, each line with the monotonic clock in nanoseconds. The clock is the same in all processes of a machine, so
//! the marks of hub and keepers can be compared. `cargo xtask trace` reads them.

use std::fmt;

use plexus_agent::TIMING;
use rustix::time::{ClockId, clock_gettime};
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The monotonic clock.
struct Monotonic;

impl FormatTime for Monotonic {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        let now = clock_gettime(ClockId::Monotonic);
        write!(line, "{}{:09}", now.tv_sec, now.tv_nsec)
    }
}

/// Writes the marks, and nothing else.
pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = lines.with_timer(Monotonic).with_level(false);
    lines.with_filter(Targets::new().with_target(TIMING, Level::TRACE))
}

/// Turns on the marks of a keeper.
pub(crate) fn start() {
    tracing_subscriber::registry().with(layer()).init();
}
