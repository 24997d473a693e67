//! The time, in the only unit the wire knows.

use std::time::{SystemTime, UNIX_EPOCH};

use plexus_protocol::UnixSeconds;

/// Now.
pub fn now() -> UnixSeconds {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
