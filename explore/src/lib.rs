//! The approval book of the hub, run by `shuttle`. Every lock, signal, read and commit is a point at which the scheduler may
//! switch to another task; each schedule is another interleaving.
//!
//! [`scenario`] is what is tried: agents ask and hang up, two answer at once, someone listens, an agent withdraws, time
//! passes, the store fails now and then, and the hub is killed and comes back. `disk` is what survives a kill.
#![expect(clippy::expect_used, reason = "all of this is a test: what breaks a rule panics")]

mod disk;
mod hub;
mod scenario;
mod search;

pub use scenario::{Totals, scenario};
pub use search::{Search, config, explore};
