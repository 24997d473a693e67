//! The approval book. [`Commits`] writes to the ledger and wakes the tasks that wait for a change. [`Book`] resolves
//! approvals, waits for their answers, and expires them at their deadlines.
//!
//! The crate does not depend on sessions, doors or access rules. It uses a [`plexus_store::Ledger`] and `tokio` only, so
//! `explore/` runs the same code under a scheduler that tries different interleavings.

#[cfg(feature = "explore")]
extern crate shuttle_tokio as tokio;

mod answers;
mod book;
mod commits;
mod deadlines;
mod expiry;
mod feed;
mod kill_point;
mod runtime;
mod signals;

pub use book::{Book, Resolved};
pub use commits::{Commits, Meter};
pub use deadlines::Deadlines;
pub use feed::NewEntries;
pub use kill_point::kill_point;
#[cfg(not(feature = "explore"))]
pub use runtime::correct_clock;
pub use runtime::{now, now_ms};
pub use signals::{Signals, Topic, next};
