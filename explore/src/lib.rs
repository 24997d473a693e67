//! The approval book of the hub, run by `shuttle`: the same source as in `plexus-core`, but every lock, signal, read
//! and commit is a place at which another task may go on, and each schedule is another order of them.
//!
//! [`scenario`] is what is tried: agents ask and hang up, two answer at once, someone listens, an agent withdraws, time
//! passes, the store fails now and then, and the hub is killed and comes back. `disk` is what survives a kill.
#![expect(clippy::expect_used, reason = "all of this is a test: what breaks a rule panics")]

#[expect(dead_code, reason = "the hub uses more of it than is tried here")]
#[path = "../../crates/plexus-core/src/book/mod.rs"]
mod book;
mod disk;
mod hub;
mod scenario;
mod search;
mod stand_ins;

// What the book finds in `crate::` when it is part of the hub.
use stand_ins::{clock, kill_point, metrics, sync};

pub use scenario::{Tried, scenario};
pub use search::{Search, config, explore};
