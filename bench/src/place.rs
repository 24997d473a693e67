//! Where a benchmark works: a folder on a real disk, and what a bare sync of that disk costs.

use std::fs::File;
use std::io::{self, Write as _};
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

/// How long it takes to have one more piece at the end of a file, and on the disk.
pub(crate) fn bare_sync(file: &mut File) -> io::Result<Duration> {
    let started = Instant::now();
    file.write_all(&PIECE)?;
    file.sync_data()?;
    Ok(started.elapsed())
}
