//! Tells a file outside the data directory how far the record goes, so that a record that was rewritten as a whole, with
//! hashes that fit, is found out as well. One line per second at most; whoever decides never waits for it.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_protocol::audit::AuditHead;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::clock::now;

const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// The file, if there is one, and what it has to be told.
pub(crate) struct HeadFile {
    path: Option<PathBuf>,
    latest: watch::Sender<AuditHead>,
    /// The number of the last head that the file has.
    written: Mutex<u64>,
}

impl HeadFile {
    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        Self { path, latest: watch::Sender::new(AuditHead::start()), written: Mutex::default() }
    }

    /// The record goes this far now.
    pub(crate) fn moved(&self, head: &AuditHead) {
        self.latest.send_replace(head.clone());
    }

    /// Writes each head that there is a second for; never ends.
    pub(crate) async fn keep(&self) {
        let mut news = self.latest.subscribe();
        news.mark_changed();
        while news.changed().await.is_ok() {
            self.write().await;
            tokio::time::sleep(BETWEEN_LINES).await;
            // What could not be written is tried again with whatever is the latest then.
            if *self.written.lock().await < self.latest.borrow().number {
                news.mark_changed();
            }
        }
    }

    /// Writes the latest head, unless the file has it. A failure is logged; the next head makes up for it.
    pub(crate) async fn write(&self) {
        let Some(path) = self.path.clone() else { return };
        let mut written = self.written.lock().await;
        let head = self.latest.borrow().clone();
        if head.number <= *written {
            return;
        }
        let line = json!({"number": head.number, "hash": head.hash, "at": now()}).to_string();
        let appended = tokio::task::spawn_blocking(move || {
            append(&path, &line).map_err(|error| format!("{}: {error}", path.display()))
        });
        match appended.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => *written = head.number,
            Err(error) => tracing::warn!(%error, "the head of the record could not be written"),
        }
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    // A line that broke off, on a full disk for instance, must not spoil this one.
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let begin = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{begin}{line}\n").as_bytes())?;
    file.sync_data()
}
