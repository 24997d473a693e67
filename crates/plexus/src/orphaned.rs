//! When a relay is of no use any more: the process that started it has ended, or the data directory of its hub is gone. Its
//! stdin may stay open then for good, as other processes may have inherited the other end.

use std::future::pending;
use std::path::Path;

use plexus_agent::{DirState, DirWatch, parent_ended};
use tokio::signal::unix::{SignalKind, signal};

/// Returns when this process has lost its parent, or the data directory where it knows one.
pub(crate) async fn orphaned(data_dir: Option<&Path>) {
    tokio::select! {
        () = parent_ended() => {}
        () = gone(data_dir) => {}
    }
}

/// A directory that is not there yet may still come, with a hub: that is not noticed, and nothing ends.
async fn gone(data_dir: Option<&Path>) {
    // The handler first: without one the signal of the watch would end this process.
    let (Some(dir), Ok(mut changed)) = (data_dir, signal(SignalKind::io())) else { return pending().await };
    let Ok(watch) = DirWatch::new(dir) else { return pending().await };
    while watch.state() == DirState::There {
        if changed.recv().await.is_none() {
            return pending().await;
        }
    }
}
