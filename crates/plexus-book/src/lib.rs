//! The approval book. [`Commits`] writes to the ledger and wakes the tasks that wait for a change. [`Book`] resolves
//! approvals, waits for their answers, and lets them expire.
//!
//! The crate knows neither sessions nor doors nor who may answer. It uses a [`plexus_store::Ledger`] and `tokio` only, so
//! `explore/` runs the same code under a scheduler that tries different interleavings.

#[cfg(feature = "explore")]
extern crate shuttle_tokio as tokio;

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
pub use runtime::now;
pub use signals::{Signals, Topic, next};
