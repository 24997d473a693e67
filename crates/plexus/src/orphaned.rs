//! Detects when a relay is no longer needed: its parent process has exited, or the data directory of its hub was deleted. Its stdin
//! may stay open in both cases, because other processes may have inherited the other end.

use std::future::pending;
use std::path::Path;

use plexus_agent::{DirState, DirWatch, parent_ended};
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the parent process has exited or the data directory was deleted.
pub(crate) async fn orphaned(data_dir: Option<&Path>) {
    tokio::select! {
        () = parent_ended() => {}
        () = data_dir_deleted(data_dir) => {}
    }
}

/// Returns when the directory was deleted. A directory that does not exist yet is not watched.
async fn data_dir_deleted(data_dir: Option<&Path>) {
    // Install the handler first: without it the signal of the watch would kill this process.
    let (Some(dir), Ok(mut changed)) = (data_dir, signal(SignalKind::io())) else { return pending().await };
    let Ok(watch) = DirWatch::new(dir) else { return pending().await };
    while watch.state() == DirState::Present {
        if changed.recv().await.is_none() {
            return pending().await;
        }
    }
}
