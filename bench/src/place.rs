//! Where a benchmark works: a folder on a real disk, and what a bare sync of that disk costs.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

const TMPFS: u64 = 0x0102_1994;
/// The size of a page, which is what a small commit writes.
const PIECE: [u8; 4096] = [0x5a; 4096];

/// A folder in cargo's target folder, which is on a disk; `/tmp` often is not.
pub(crate) fn on_a_disk() -> anyhow::Result<TempDir> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("the program lies in no folder")?;
    ensure!(
        rustix::fs::statfs(target)?.f_type as u64 != TMPFS,
        "{} is in memory: there is no disk to measure",
        target.display()
    );
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(target)?)
}

/// A file on that disk which is appended to and synced, and does nothing else.
pub(crate) struct BareSync(File);

impl BareSync {
    pub(crate) fn new(dir: &Path) -> io::Result<Self> {
        File::options().create(true).append(true).open(dir.join("appended")).map(Self)
    }

    /// How long it takes to have one more piece on the disk.
    pub(crate) fn once(&mut self) -> io::Result<Duration> {
        let started = Instant::now();
        self.0.write_all(&PIECE)?;
        self.0.sync_data()?;
        Ok(started.elapsed())
    }
}
