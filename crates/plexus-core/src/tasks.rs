//! The background tasks of a hub, and the signal that ends them.

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts tasks and waits for their end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    closing: CancellationToken,
}

impl Tasks {
    /// Cancelled when the hub shuts down.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Starts a task that ends by itself when the hub shuts down.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn(task)
    }

    /// Starts a task that is dropped when the hub shuts down.
    pub(crate) fn spawn_until_closing<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) {
        let closing = self.closing.clone();
        self.tracker.spawn(async move { closing.run_until_cancelled(task).await });
    }

    /// Waits until all tasks have ended by themselves.
    #[cfg(test)]
    pub(crate) async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Ends all tasks and waits until they have ended.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
