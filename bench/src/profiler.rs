//! Records where hubs spend processor time, for `cargo xtask flame`: attaches `perf record` to each hub that a benchmark starts. Results of
//! such a run are not written, because the recording slows the hub down.

use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use plexus_testkit::hub_process::HubProcess;

/// The directory for the recordings. Without it nothing is recorded.
const DIRECTORY: &str = "PLEXUS_BENCH_PERF";
/// Samples per second; a prime, so that they do not follow any timer.
const FREQUENCY: &str = "997";

/// The running recordings. Each ends with its hub.
static RECORDINGS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn directory() -> Option<PathBuf> {
    env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Whether this run is recorded.
pub(crate) fn is_on() -> bool {
    directory().is_some()
}

/// Records a hub until it ends, if this run is recorded.
pub(crate) fn attach(hub: &HubProcess) -> anyhow::Result<()> {
    let Some(directory) = directory() else { return Ok(()) };
    let pid = hub.pid().to_string();
    let recording = Command::new("perf")
        // The software clock is also available in virtual machines.
        .args(["record", "--quiet", "--event", "cpu-clock", "--freq", FREQUENCY, "--call-graph", "fp"])
        .args(["--pid", &pid, "--output"])
        .arg(directory.join(format!("{pid}.data")))
        .stdin(Stdio::null())
        .spawn()
        .context("perf")?;
    RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner).push(recording);
    Ok(())
}

/// Waits until all recordings are written. Their hubs have ended.
pub(crate) fn finish() -> anyhow::Result<()> {
    for mut recording in RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let status = recording.wait()?;
        ensure!(status.success(), "perf cannot record the hub ({status}); it needs root");
    }
    Ok(())
}
