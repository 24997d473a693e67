//! Metrics of hubs that share a store: the commands between them, and all hosts as this hub sees them. A hub with a store of its own has none of these.

use std::sync::atomic::AtomicU64;

use plexus_protocol::{Error, ErrorKind, HostName};
use plexus_store::{HostRow, HostState, Tally};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

/// The name of a host.
type HostLabel = [(&'static str, String); 1];
/// The name of a host, and the outcome of a command.
type CommandLabels = [(&'static str, String); 2];

/// The commands that this hub has sent and executed.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandFigures {
    sent: Family<CommandLabels, Counter>,
    executed: Family<CommandLabels, Counter>,
}

impl CommandFigures {
    /// Counts a command that this hub has sent to `host`.
    pub(crate) fn sent(&self, host: &HostName, result: &Result<Value, Error>) {
        let outcome = match result {
            Err(error) if error.kind == ErrorKind::HostUnreachable => "unreachable",
            other => outcome(other),
        };
        self.sent.get_or_create(&labels(host, outcome)).inc();
    }

    /// Counts a command of `origin` that this hub has executed.
    pub(crate) fn executed(&self, origin: &HostName, result: &Result<Value, Error>) {
        self.executed.get_or_create(&labels(origin, outcome(result))).inc();
    }

    /// Adds the figures to a page.
    pub(super) fn register(&self, to: &mut Registry) {
        let help = "Commands sent to another host, by outcome";
        to.register("commands_sent", help, self.sent.clone());
        let help = "Commands of another host that were executed, by outcome";
        to.register("commands_executed", help, self.executed.clone());
    }
}

fn outcome(result: &Result<Value, Error>) -> &'static str {
    if result.is_ok() { "done" } else { "failed" }
}

fn labels(host: &HostName, outcome: &str) -> CommandLabels {
    [("host", host.to_string()), ("outcome", outcome.to_owned())]
}

/// Adds gauges for all hosts to a page. They are new for each page: a host that was removed must not stay.
pub(super) fn register(to: &mut Registry, hosts: &[HostRow], tallies: &[(HostName, Tally)]) {
    let connected = Family::<HostLabel, Gauge>::default();
    let silent = Family::<HostLabel, Gauge<f64, AtomicU64>>::default();
    let open = Family::<HostLabel, Gauge>::default();
    for host in hosts.iter().filter(|host| host.state != HostState::Removed) {
        let label = [("host", host.name.to_string())];
        let is_connected = host.silent_ms.is_none() && host.state != HostState::Lost;
        connected.get_or_create(&label).set(is_connected.into());
        silent.get_or_create(&label).set(host.silent_ms.unwrap_or(0) as f64 / 1000.0);
        let tally = tallies.iter().find(|(name, _)| *name == host.name);
        open.get_or_create(&label).set(tally.map_or(0, |(_, tally)| tally.open_approvals.cast_signed()));
    }
    to.register("host_connected", "Whether the hub of the host is connected", connected);
    let help = "Time since the lease of the host has expired, 0 while it is valid";
    to.register_with_unit("host_silent", help, Unit::Seconds, silent);
    to.register("host_approvals_open", "Open approvals of the host", open);
}
