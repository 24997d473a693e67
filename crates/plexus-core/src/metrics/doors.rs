//! Metrics of the doors: open connections per door, and the peers that were rejected because they took too long or
//! asked for too much. The doors count; `/metrics` shows the figures with all others.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// One label and its value.
type Label = [(&'static str, &'static str); 1];

/// A door of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorName {
    /// HTTP on the loopback interface.
    Http,
    /// The console for other machines.
    Tls,
    /// `hub.sock`.
    Socket,
}

impl DoorName {
    const ALL: [Self; 3] = [Self::Http, Self::Tls, Self::Socket];

    fn label(self) -> Label {
        [(
            "door",
            match self {
                Self::Http => "http",
                Self::Tls => "tls",
                Self::Socket => "socket",
            },
        )]
    }
}

/// Why a door rejected a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// A waiting connection was closed to make room for another.
    Waiting,
    /// A TLS handshake took too long.
    Handshake,
    /// A request head took too long, or a connection was idle for too long.
    Head,
    /// A request body, or a WebSocket message, took too long.
    Body,
    /// A peer did not read its response.
    Write,
    /// One caller had too many requests in progress.
    CallerCalls,
    /// All callers of a class together had too many requests in progress.
    Calls,
    /// The request bodies of one caller were too large in total.
    CallerBytes,
    /// The request bodies of all callers of a class were too large in total.
    Bytes,
}

impl RejectReason {
    const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Handshake,
        Self::Head,
        Self::Body,
        Self::Write,
        Self::CallerCalls,
        Self::Calls,
        Self::CallerBytes,
        Self::Bytes,
    ];

    /// The limit that was reached, by the name of its setting.
    fn label(self) -> Label {
        [(
            "limit",
            match self {
                Self::Waiting => "waiting",
                Self::Handshake => "handshake_secs",
                Self::Head => "head_secs",
                Self::Body => "body_secs",
                Self::Write => "write_stall_secs",
                Self::CallerCalls => "calls_per_caller",
                Self::Calls => "calls",
                Self::CallerBytes => "bodies_per_caller_mb",
                Self::Bytes => "bodies_mb",
            },
        )]
    }
}

/// The metrics of all doors.
#[derive(Debug, Clone, Default)]
pub struct DoorFigures {
    connections: Family<Label, Gauge>,
    rejected: Family<Label, Counter>,
}

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl DoorFigures {
    pub(crate) fn register(&self, to: &mut Registry) {
        for door in DoorName::ALL {
            drop(self.connections.get_or_create(&door.label()));
        }
        for reason in RejectReason::ALL {
            drop(self.rejected.get_or_create(&reason.label()));
        }
        to.register("connections", "Open connections", self.connections.clone());
        let help = "Connections and requests rejected because a limit of the doors was reached";
        to.register("turned_away", help, self.rejected.clone());
    }

    /// Counts an accepted connection until the returned value is dropped.
    pub fn connected(&self, door: DoorName) -> Connected {
        let gauge = self.connections.get_or_create(&door.label()).clone();
        gauge.inc();
        Connected(gauge)
    }

    /// Counts a peer that was rejected.
    pub fn rejected(&self, why: RejectReason) {
        self.rejected.get_or_create(&why.label()).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_until_it_is_closed() {
        let figures = DoorFigures::default();
        let (one, other) = (figures.connected(DoorName::Http), figures.connected(DoorName::Http));
        let counted = || figures.connections.get_or_create(&DoorName::Http.label()).get();
        assert_eq!(counted(), 2);
        drop((one, other));
        assert_eq!(counted(), 0);
    }
}
