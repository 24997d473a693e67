//! The limits of the doors: how long the hub waits for a peer, and how many connections, calls and bytes it holds for
//! that peer. The settings come from `[doors]` in `plexus.toml`. The modules that wait or hold enforce the limits.

use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The interval after which a silent stream sends a heartbeat. A client that receives nothing for more than twice as
/// long is disconnected.
pub const HEARTBEAT: Duration = Duration::from_secs(3);

/// How long a peer may take, and how much the hub holds for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorLimits {
    /// The time for a TLS handshake.
    pub handshake: Duration,
    /// The time for a request head, from the connection or the previous response, and for the first WebSocket message.
    pub head: Duration,
    /// The longest pause within a request body or a WebSocket message.
    pub body_stall: Duration,
    /// The time for a whole request body or WebSocket message.
    pub body: Duration,
    /// The longest time in which a peer accepts none of the pending bytes.
    pub write_stall: Duration,
    /// The interval after which a silent stream sends a heartbeat; at most [`HEARTBEAT`].
    pub heartbeat: Duration,
    /// Connections of one door without an authenticated request in progress.
    pub waiting: usize,
    /// Requests in progress of one caller other than the operator.
    pub calls_per_caller: usize,
    /// Requests in progress of all callers of one class.
    pub calls: usize,
    /// Bytes of request bodies held for one caller.
    pub bytes_per_caller: usize,
    /// Bytes of request bodies held for all callers of one class.
    pub bytes: usize,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            body_stall: Duration::from_secs(30),
            body: Duration::from_secs(600),
            write_stall: Duration::from_secs(60),
            heartbeat: HEARTBEAT,
            waiting: 1024,
            calls_per_caller: 256,
            calls: 2048,
            bytes_per_caller: 64 * MIB,
            bytes: 256 * MIB,
        }
    }
}

impl DoorLimits {
    /// The same limits, lowered so that connections leave most of the `files` open files to the rest of the hub.
    pub(crate) fn within_open_files(self, files: Option<u64>) -> Self {
        let share = |of: u64| {
            files.map_or(usize::MAX, |files| usize::try_from(files / of).unwrap_or(usize::MAX).max(1))
        };
        Self { waiting: self.waiting.min(share(16)), calls: self.calls.min(share(8)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_use_only_part_of_the_open_file_limit() {
        let usual = DoorLimits::default();
        assert_eq!(usual.within_open_files(None), usual);
        assert_eq!(usual.within_open_files(Some(1 << 20)), usual);
        let few = usual.within_open_files(Some(1024));
        assert_eq!((few.waiting, few.calls), (64, 128));
        assert_eq!(usual.within_open_files(Some(0)).waiting, 1);
    }
}
