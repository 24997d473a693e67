//! A disk that fails under the hub's store for short periods: no space, failed writes, failed syncs, on every operation or on some. The hub
//! reads the fault from a file (`faulty_disk` in `plexus-store`). A period may start before the hub starts and end after it exits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use tokio::time::sleep;

use super::Run;

/// The faults, as the store names them.
const FAULTS: [&str; 3] = ["no space", "broken write", "broken sync"];

/// The file that names the fault. Dropping this ends the fault.
pub(super) struct FailingDisk {
    file: PathBuf,
}

impl FailingDisk {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Starts and ends faults until it is aborted.
    pub(super) async fn fail_sometimes(self, run: Arc<Run>, mut rng: Rng) -> anyhow::Result<()> {
        loop {
            sleep(Duration::from_millis(rng.u64(50..1200))).await;
            let fault = FAULTS[rng.usize(..FAULTS.len())];
            // Every write or sync fails, or only one in a few. In that case part of a commit may fail.
            let every = if rng.bool() { 1 } else { rng.u32(2..7) };
            self.write_fault(&format!("{every} {fault}"))?;
            run.spans.fetch_add(1, Ordering::SeqCst);
            let span = if rng.u8(0..10) < 7 { rng.u64(10..300) } else { rng.u64(300..2500) };
            sleep(Duration::from_millis(span)).await;
            std::fs::remove_file(&self.file)?;
        }
    }

    /// Writes the file atomically.
    fn write_fault(&self, what: &str) -> anyhow::Result<()> {
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
