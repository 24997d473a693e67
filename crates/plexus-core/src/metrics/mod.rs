//! Metrics: all figures of `/metrics` in one place. Events are counted as they happen, with one or two atomics. State
//! (sessions, open approvals, journals) is read on each request from the store and the run directories, so that it is
//! correct after a restart. `docs/metrics.md` explains each figure.

pub mod doors;
mod hosts;

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use plexus_agent::RunDir;
use plexus_book::Meter;
use plexus_protocol::ApprovalStatus;
use plexus_store::{Committed, FeedEntry, RunRow, RunState, Store, StoreError, Tally, TurnStatus};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::Settings;
use crate::limits::Limit;
use crate::metrics::doors::DoorFigures;
use plexus_book::now;

pub(crate) use hosts::CommandFigures;

/// One label and its value.
type Label = [(&'static str, &'static str); 1];
/// A gauge that is set on each request; NaN if its value is unknown.
type State = Gauge<f64, AtomicU64>;

const TURN_OUTCOMES: [&str; 3] = ["complete", "failed", "interrupted"];
const ANSWERS: [&str; 4] = ["allowed", "denied", "expired", "withdrawn"];

/// The label of a finished turn; `None` for a running one.
fn outcome(status: TurnStatus) -> Option<&'static str> {
    match status {
        TurnStatus::Running => None,
        TurnStatus::Complete => Some("complete"),
        TurnStatus::Failed => Some("failed"),
        TurnStatus::Interrupted => Some("interrupted"),
    }
}

/// The stream that a client follows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Session,
    Approvals,
    Changes,
}

/// All metrics of a hub.
pub(crate) struct Metrics {
    registry: Registry,
    asked: Counter,
    decisions: Family<Label, Histogram, fn() -> Histogram>,
    turns: Family<Label, Counter>,
    commits: Histogram,
    failures: Counter,
    refused: Family<Label, Counter>,
    held: Gauge,
    listeners: Family<Label, Gauge>,
    sessions: State,
    children: State,
    open: State,
    oldest: State,
    lag: State,
    worst_lag: State,
    disk_free: State,
    doors: DoorFigures,
    commands: CommandFigures,
}

/// Raises a gauge by one until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    fn by_one(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("plexus"),
            asked: Counter::default(),
            // From one second to three days, because people sleep.
            decisions: Family::new_with_constructor(|| {
                Histogram::new([1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 259_200.0])
            }),
            turns: Family::default(),
            commits: Histogram::new(exponential_buckets(0.000_5, 2.0, 15)),
            failures: Counter::default(),
            refused: Family::default(),
            held: Gauge::default(),
            listeners: Family::default(),
            sessions: State::default(),
            children: State::default(),
            open: State::default(),
            oldest: State::default(),
            lag: State::default(),
            worst_lag: State::default(),
            disk_free: State::default(),
            doors: DoorFigures::default(),
            commands: CommandFigures::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        // A figure that exists from the start can be monitored before it first changes.
        for outcome in TURN_OUTCOMES {
            drop(self.turns.get_or_create(&[("outcome", outcome)]));
        }
        for answer in ANSWERS {
            drop(self.decisions.get_or_create(&[("answer", answer)]));
        }
        for stream in [Stream::Session, Stream::Approvals, Stream::Changes] {
            drop(self.listeners.get_or_create(&label_of(stream)));
        }
        for limit in Limit::ALL {
            drop(self.refused.get_or_create(&[("limit", limit.name())]));
        }
        let (to, seconds, bytes) = (&mut self.registry, Unit::Seconds, Unit::Bytes);
        to.register("sessions", "Existing sessions", self.sessions.clone());
        to.register("children", "Agents with a running process", self.children.clone());
        to.register("approvals_open", "Open approvals", self.open.clone());
        let help = "Age of the oldest open approval, 0 if there is none";
        to.register_with_unit("approvals_oldest", help, seconds.clone(), self.oldest.clone());
        to.register("approvals_asked", "Approvals requested since the hub started", self.asked.clone());
        let help = "Time from an approval request to its resolution, in whole seconds";
        to.register_with_unit("decision", help, seconds.clone(), self.decisions.clone());
        to.register("turns", "Turns finished since the hub started", self.turns.clone());
        let help = "Output of all agents that the hub has not stored yet";
        to.register_with_unit("journal_lag", help, bytes.clone(), self.lag.clone());
        let help = "Output that the hub has not stored yet, of the agent with the most";
        to.register_with_unit("journal_lag_worst", help, bytes.clone(), self.worst_lag.clone());
        let help = "Free space on the disk of the data directory";
        to.register_with_unit("disk_free", help, bytes, self.disk_free.clone());
        let help = "Duration of a commit, including queue and disk";
        to.register_with_unit("store_commit", help, seconds, self.commits.clone());
        to.register("store_failures", "Commits that the store could not write", self.failures.clone());
        let help = "Writes and messages to agents that wait for disk space or the store";
        to.register("held", help, self.held.clone());
        to.register("refused", "Requests rejected because a limit was reached", self.refused.clone());
        to.register("listeners", "Clients that follow events live", self.listeners.clone());
        self.doors.register(to);
    }

    /// Counts the contents of a commit.
    pub(crate) fn on_commit(&self, committed: &Committed) {
        let mut counted = None;
        for entry in &committed.feed {
            match &entry.entry {
                FeedEntry::Asked { .. } => _ = self.asked.inc(),
                // The feed has one entry per ancestor for the same turn, one after the other.
                FeedEntry::Finished { turn, .. } if counted == Some((entry.session, *turn)) => {}
                FeedEntry::Finished { turn, status, .. } => {
                    counted = Some((entry.session, *turn));
                    if let Some(outcome) = outcome(*status) {
                        self.turns.get_or_create(&[("outcome", outcome)]).inc();
                    }
                }
                FeedEntry::Resolved { .. } | FeedEntry::BudgetLow(_) | FeedEntry::Notice(_) => {}
            }
        }
        for approval in committed.approvals.iter().map(|row| &row.approval) {
            let answer = match approval.status {
                ApprovalStatus::Pending => continue,
                ApprovalStatus::Allowed => "allowed",
                ApprovalStatus::Denied => "denied",
                ApprovalStatus::Expired => "expired",
                ApprovalStatus::Withdrawn => "withdrawn",
            };
            let took = approval.resolved_at.unwrap_or_else(now).saturating_sub(approval.created_at);
            self.decisions.get_or_create(&[("answer", answer)]).observe(took as f64);
        }
    }

    /// Counts a request that was rejected because of a limit.
    pub(crate) fn refused(&self, limit: Limit) {
        self.refused.get_or_create(&[("limit", limit.name())]).inc();
    }

    /// Whether a change waits until the store is available.
    pub(crate) fn holds_changes(&self) -> bool {
        self.held.get() > 0
    }

    /// Counts a follower until the returned value is dropped.
    pub(crate) fn listen(&self, stream: Stream) -> GaugeGuard {
        GaugeGuard::by_one(&self.listeners.get_or_create(&label_of(stream)))
    }
}

fn label_of(stream: Stream) -> Label {
    match stream {
        Stream::Session => [("stream", "session")],
        Stream::Approvals => [("stream", "approvals")],
        Stream::Changes => [("stream", "changes")],
    }
}

impl Metrics {
    /// The metrics of the doors.
    pub(crate) fn doors(&self) -> &DoorFigures {
        &self.doors
    }

    /// The commands between hubs that share a store.
    pub(crate) fn commands(&self) -> &CommandFigures {
        &self.commands
    }

    /// All metrics, in the OpenMetrics text format, which Prometheus reads.
    pub(crate) async fn text(&self, store: &dyn Store, settings: &Settings, current: Current) -> String {
        let (fleet, lags) = tokio::join!(self.fleet(store), lags(store, settings));
        let tally = match &fleet {
            Some(fleet) => fleet.own,
            None => store.tally().await.ok(),
        };
        // A figure that cannot be read is NaN; the others are still shown.
        let (mut sessions, mut open, mut oldest) = (f64::NAN, f64::NAN, f64::NAN);
        if let Some(tally) = tally {
            (sessions, open) = (tally.sessions as f64, tally.open_approvals as f64);
            oldest = tally.oldest_open.map_or(0.0, |since| now().saturating_sub(since) as f64);
        }
        let (mut lag, mut worst) = (f64::NAN, f64::NAN);
        if let Ok(lags) = lags {
            lag = lags.iter().sum::<u64>() as f64;
            worst = lags.iter().max().copied().unwrap_or(0) as f64;
        }
        self.sessions.set(sessions);
        self.children.set(current.children as f64);
        self.open.set(open);
        self.oldest.set(oldest);
        self.lag.set(lag);
        self.worst_lag.set(worst);
        self.disk_free.set(current.disk_free.map_or(f64::NAN, |free| free as f64));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        if let Some(fleet) = fleet {
            let _ = encode_registry(&mut text, &fleet.page);
        }
        let _ = encode_eof(&mut text);
        text
    }

    /// The figures of all hosts; `None` for a store of a single machine.
    async fn fleet(&self, store: &dyn Store) -> Option<FleetFigures> {
        let fleet = store.fleet()?;
        let mut page = Registry::with_prefix("plexus");
        self.commands.register(&mut page);
        let mut own = None;
        if let (Ok(hosts), Ok(tallies)) = tokio::join!(fleet.hosts(), store.tallies()) {
            hosts::register(&mut page, &hosts, &tallies);
            own = tallies.into_iter().find(|(host, _)| host == fleet.host()).map(|(_, tally)| tally);
        }
        Some(FleetFigures { page, own })
    }
}

impl Meter for Metrics {
    fn committed(&self, after: Duration, outcome: &Result<Committed, StoreError>) {
        self.commits.observe(after.as_secs_f64());
        if matches!(outcome, Err(StoreError::Unavailable(_) | StoreError::Unusable(_))) {
            self.failures.inc();
        }
    }

    fn hold(&self) -> Box<dyn Any + Send> {
        Box::new(GaugeGuard::by_one(&self.held))
    }
}

/// The figures of hubs that share a store.
struct FleetFigures {
    page: Registry,
    /// The sessions and approvals of this host: each hub reports its own, so that a sum over hubs counts none twice.
    own: Option<Tally>,
}

/// Figures that only the hub knows, at the time of the request.
pub(crate) struct Current {
    /// The number of children with a running process.
    pub(crate) children: usize,
    pub(crate) disk_free: Option<u64>,
}

/// For each run with a process, the bytes that it has written and the store does not have yet.
async fn lags(store: &dyn Store, settings: &Settings) -> Result<Vec<u64>, StoreError> {
    let runs = store.open_runs().await?;
    let with_a_process = |run: &RunRow| matches!(run.state, RunState::Running | RunState::Ending);
    let journals: Vec<_> = runs
        .iter()
        .filter(|run| with_a_process(run))
        .map(|run| (RunDir::new(settings.run_dir(run.key)).journal(), run.journal_offset))
        .collect();
    let lags = move || {
        let size = |path| std::fs::metadata(path).map_or(0, |journal| journal.len());
        journals.into_iter().map(|(path, stored)| size(path).saturating_sub(stored)).collect()
    };
    Ok(tokio::task::spawn_blocking(lags).await.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_operation_counts_until_it_continues() {
        let metrics = Metrics::default();
        let (one, other) = (metrics.hold(), metrics.hold());
        assert_eq!(metrics.held.get(), 2);
        drop(one);
        assert_eq!(metrics.held.get(), 1);
        drop(other);
        assert_eq!(metrics.held.get(), 0);
    }
}
