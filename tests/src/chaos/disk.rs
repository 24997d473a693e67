//! A disk that fails under the hub's store for short spans: no room, broken writes, broken syncs, all of them or some.
//! The hub is told by a file (`faulty_disk` in `plexus-store`); a span may begin before a hub and outlast it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use tokio::time::sleep;

use super::Run;

/// What goes wrong, in the words of the store.
const FAULTS: [&str; 3] = ["no space", "broken write", "broken sync"];

/// The file that says what is wrong with the disk; nothing is once this is dropped.
pub(super) struct FailingDisk {
    file: PathBuf,
}

impl FailingDisk {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Fails and mends until it is aborted.
    pub(super) async fn fail_now_and_then(self, run: Arc<Run>, mut rng: Rng) -> anyhow::Result<()> {
        loop {
            sleep(Duration::from_millis(rng.u64(50..1200))).await;
            let fault = FAULTS[rng.usize(..FAULTS.len())];
            // Every write or sync, or every so many: then half of what belongs together fails.
            let every = if rng.bool() { 1 } else { rng.u32(2..7) };
            self.tell(&format!("{every} {fault}"))?;
            run.spans.fetch_add(1, Ordering::SeqCst);
            let span = if rng.u8(0..10) < 7 { rng.u64(10..300) } else { rng.u64(300..2500) };
            sleep(Duration::from_millis(span)).await;
            std::fs::remove_file(&self.file)?;
        }
    }

    /// In place at once or not at all.
    fn tell(&self, what: &str) -> anyhow::Result<()> {
        let staged = self.file.with_extension("staged");
        std::fs::write(&staged, what)?;
        std::fs::rename(&staged, &self.file).context("the fault of the disk")
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
