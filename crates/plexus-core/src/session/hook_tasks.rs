//! The running hooks of a session, each callback in a task of its own, and their outcomes for the owner. When the owner ends, its tasks
//! stop their commands; the callbacks stay in the store for the next owner.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::hooks::{HookOutcome, HookRun};
use crate::shared_parts::Parts;

/// The number of callbacks of a session whose commands run at the same time.
const AT_ONCE: usize = 4;

/// The tasks, and the channel on which they report.
pub(super) struct HookTasks {
    running: HashMap<String, CancellationToken>,
    all: CancellationToken,
    _cancel_on_drop: DropGuard,
    slots: Arc<Semaphore>,
    report: mpsc::UnboundedSender<(String, HookOutcome)>,
    reports: mpsc::UnboundedReceiver<(String, HookOutcome)>,
}

impl Default for HookTasks {
    fn default() -> Self {
        let all = CancellationToken::new();
        let (report, reports) = mpsc::unbounded_channel();
        Self {
            running: HashMap::new(),
            _cancel_on_drop: all.clone().drop_guard(),
            all,
            slots: Arc::new(Semaphore::new(AT_ONCE)),
            report,
            reports,
        }
    }
}

impl HookTasks {
    /// Runs the commands of a callback.
    pub(super) fn start(&mut self, parts: Arc<Parts>, request_id: String, run: HookRun) {
        let cancelled = self.all.child_token();
        self.running.insert(request_id.clone(), cancelled.clone());
        let (slots, report) = (Arc::clone(&self.slots), self.report.clone());
        parts.tasks.clone().spawn(async move {
            let closing = parts.tasks.closing();
            let slot = tokio::select! {
                slot = slots.acquire() => slot,
                () = cancelled.cancelled() => return,
                () = closing.cancelled() => return,
            };
            let outcome = run.run(&parts, &cancelled).await;
            drop(slot);
            if let Some(outcome) = outcome {
                // An owner that is gone needs no report.
                let _ = report.send((request_id, outcome));
            }
        });
    }

    /// Ends the commands of these callbacks.
    pub(super) fn cancel(&mut self, request_ids: &[String]) {
        for request_id in request_ids {
            if let Some(cancelled) = self.running.remove(request_id) {
                cancelled.cancel();
            }
        }
    }

    /// The next outcome. Cancel safe.
    pub(super) async fn next(&mut self) -> (String, HookOutcome) {
        match self.reports.recv().await {
            Some((request_id, outcome)) => {
                self.running.remove(&request_id);
                (request_id, outcome)
            }
            // Unreachable: this struct has a sender.
            None => std::future::pending().await,
        }
    }
}
