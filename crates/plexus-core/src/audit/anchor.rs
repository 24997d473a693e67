//! Anchors of the audit log: destinations outside the data directory that receive its head. They reveal an audit log
//! that was rewritten as a whole with consistent hashes. Each anchor receives at most one head per second; no decision
//! waits for it.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use plexus_files::AppendLine;
use plexus_protocol::audit::AuditHead;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::processes::files::Files;
use plexus_book::now;

/// The time between two heads for one anchor; it grows while the anchor fails.
const INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// A destination that receives heads of the audit log.
pub trait AuditAnchor: Send + Sync {
    /// Delivers one head, a line of JSON. The error says why delivery failed.
    fn deliver(&self, head: String) -> BoxFuture<'_, Result<(), String>>;
}

/// The anchors of a hub, and the head that they receive next.
pub(crate) struct AuditAnchors {
    anchors: Vec<Tracked>,
    latest: watch::Sender<AuditHead>,
}

struct Tracked {
    destination: Destination,
    /// The number of the last head that was delivered.
    delivered: Mutex<u64>,
}

enum Destination {
    /// Appends a line to a file.
    File(PathBuf),
    Other(Box<dyn AuditAnchor>),
}

/// Whether an anchor has the latest head.
enum Delivery {
    Done,
    Failed,
}

impl AuditAnchors {
    pub(crate) fn new(file: Option<PathBuf>, others: Vec<Box<dyn AuditAnchor>>) -> Self {
        let destinations =
            file.map(Destination::File).into_iter().chain(others.into_iter().map(Destination::Other));
        let anchors =
            destinations.map(|destination| Tracked { destination, delivered: Mutex::default() }).collect();
        Self { anchors, latest: watch::Sender::new(AuditHead::start()) }
    }

    /// Publishes the new head of the audit log to the anchors.
    pub(crate) fn on_commit(&self, head: &AuditHead) {
        self.latest.send_replace(head.clone());
    }

    /// Delivers new heads to each anchor, for as long as it is polled.
    pub(crate) async fn run(&self, files: &Files) {
        join_all(self.anchors.iter().map(|anchor| self.run_one(anchor, files))).await;
    }

    /// Delivers the latest head to each anchor that does not have it yet.
    pub(crate) async fn deliver(&self, files: &Files) {
        join_all(self.anchors.iter().map(|anchor| anchor.deliver(&self.latest, files))).await;
    }

    async fn run_one(&self, anchor: &Tracked, files: &Files) {
        let mut changed = self.latest.subscribe();
        changed.mark_changed();
        let mut pause = INTERVAL;
        while changed.changed().await.is_ok() {
            match anchor.deliver(&self.latest, files).await {
                Delivery::Done => pause = INTERVAL,
                Delivery::Failed => {
                    // The retry delivers the head that is the latest by then.
                    changed.mark_changed();
                    pause = (pause * 2).min(MAX_INTERVAL);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}

impl Tracked {
    async fn deliver(&self, latest: &watch::Sender<AuditHead>, files: &Files) -> Delivery {
        let mut delivered = self.delivered.lock().await;
        let head = latest.borrow().clone();
        if head.number <= *delivered {
            return Delivery::Done;
        }
        let line = json!({"number": head.number, "hash": head.hash, "at": now()}).to_string();
        let done = match &self.destination {
            Destination::File(path) => append(files, path.clone(), line).await,
            Destination::Other(anchor) => anchor.deliver(line).await,
        };
        match done {
            Ok(()) => {
                *delivered = head.number;
                Delivery::Done
            }
            Err(error) => {
                tracing::warn!(%error, "cannot deliver the head of the audit log");
                Delivery::Failed
            }
        }
    }
}

/// A helper process appends the line, because a child may be able to replace the file with a link.
async fn append(files: &Files, path: PathBuf, line: String) -> Result<(), String> {
    let at = format!("{}: ", path.display());
    let appended = files.call(AppendLine { path, line }, None, &mut tokio::io::sink()).await;
    appended.map_err(|error| format!("{at}{error}"))?.map_err(|error| format!("{at}{error}"))
}
