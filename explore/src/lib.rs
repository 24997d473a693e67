//! The approval book of the hub, run by `shuttle`. Every lock, signal, read and commit is a point at which the scheduler may
//! switch to another task; each schedule is another interleaving.
//!
//! [`scenario`] runs in each schedule: agents request approvals and disconnect, two deciders answer at once, one task
//! checks the feed, approvals are withdrawn and expire, the store fails at times, and one of two hubs is killed and restarts.
//! `disk` is the state that survives a kill.
#![expect(clippy::expect_used, reason = "all of this is a test: what breaks a rule panics")]

mod disk;
mod hub;
mod scenario;
mod search;
mod wakes;

pub use scenario::{Totals, scenario};
pub use search::{Search, config, explore};
