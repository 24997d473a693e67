//! Free space on the disk of the data directory. The hub keeps a reserve so that decisions can always be written: below
//! it, the hub starts nothing new and stops reading the output of children until space is available again. One task
//! checks the disk.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use plexus_protocol::{Error, ErrorKind};
use tokio::sync::watch;

use crate::limits::Limit;
use crate::metrics::Metrics;

/// The interval between two checks.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Whether the free space is above the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Enough,
    Low,
}

/// The disk of the data directory.
#[derive(Debug)]
pub(crate) struct Disk {
    dir: File,
    reserve: u64,
    state: watch::Sender<State>,
    warned: OnceLock<()>,
}

impl Disk {
    pub(crate) fn of(data_dir: &Path, reserve: u64) -> io::Result<Self> {
        let disk = Self {
            dir: File::open(data_dir)?,
            reserve,
            state: watch::Sender::new(State::Enough),
            warned: OnceLock::new(),
        };
        disk.check();
        Ok(disk)
    }

    /// The free space in bytes; `None` if it cannot be determined. An unknown disk counts as having enough: each write
    /// will report its own failure.
    pub(crate) fn free(&self) -> Option<u64> {
        match plexus_agent::free_bytes(&self.dir) {
            Ok(free) => Some(free),
            Err(error) => {
                self.warned
                    .get_or_init(|| tracing::warn!(%error, "cannot determine the free space on the disk"));
                None
            }
        }
    }

    fn check(&self) -> State {
        let free = self.free();
        let state = if free.is_some_and(|free| free < self.reserve) { State::Low } else { State::Enough };
        let changed = self.state.send_if_modified(|known| std::mem::replace(known, state) != state);
        match (changed, state) {
            (true, State::Low) => {
                tracing::warn!(free, "the disk is almost full: no new session or turn can start")
            }
            (true, State::Enough) => tracing::info!(free, "the disk has enough free space again"),
            (false, _) => {}
        }
        state
    }

    /// Waits until space is available, which is usually at once.
    pub(crate) async fn wait_for_space(&self) {
        let mut state = self.state.subscribe();
        // `self` owns the sender, so it is not dropped while this waits.
        let _ = state.wait_for(|state| *state == State::Enough).await;
    }

    /// Checks the disk periodically, for as long as it is polled.
    pub(crate) async fn watch(&self) -> Infallible {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            self.check();
        }
    }

    /// Returns an error while the disk is low.
    pub(crate) fn check_space(&self, metrics: &Metrics) -> Result<(), Error> {
        if self.check() == State::Enough {
            return Ok(());
        }
        metrics.refused(Limit::Reserve);
        let reserve = self.reserve / (1024 * 1024);
        let message = format!(
            "the disk of the data directory has less than {reserve} MB left, which is reserved for \
             decisions: free some space, or lower `reserve_mb` under [limits] in plexus.toml"
        );
        Err(Error::new(ErrorKind::DiskLow, message))
    }
}
