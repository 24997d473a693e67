//! The environment of a benchmark: a directory on a real disk, the duration of a bare sync on that disk, and
//! a hub.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use plexus_testkit::hubproc::{HubOptions, HubProcess};
use plexus_testkit::{binaries, clean_env};
use tempfile::TempDir;

/// The log of the scripted agents' calls, one per line.
pub(crate) const LOG: &str = "ran.jsonl";

const TMPFS: u64 = 0x0102_1994;
/// The size of a page, which is what a small commit writes.
const PIECE: [u8; 4096] = [0x5a; 4096];

/// A directory in cargo's target directory, which is on a disk; `/tmp` often is not.
pub(crate) fn on_a_disk() -> anyhow::Result<TempDir> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("the program has no parent directory")?;
    ensure!(
        rustix::fs::statfs(target)?.f_type as u64 != TMPFS,
        "{} is in memory, so there is no disk to measure",
        target.display()
    );
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(target)?)
}

/// How long it takes to append data to a file and sync it.
pub(crate) fn bare_sync(file: &mut File) -> io::Result<Duration> {
    let started = Instant::now();
    file.write_all(&PIECE)?;
    file.sync_data()?;
    Ok(started.elapsed())
}

/// A hub with scripted agents and these lines in its `plexus.toml`.
pub(crate) async fn start_hub(place: &Path, config: &str) -> anyhow::Result<HubProcess> {
    for folder in ["home", "data", "work"] {
        std::fs::create_dir(place.join(folder))?;
    }
    let data_dir = place.join("data");
    std::fs::write(data_dir.join("plexus.toml"), format!("limits.asks_per_minute = 1000000\n{config}"))?;
    // Scripted agents talk to no model.
    let mut env = clean_env(&place.join("home"), "http://127.0.0.1:1");
    env.push(("SCRIPTED_AGENT_LOG".to_owned(), place.join(LOG).display().to_string()));
    let claude = binaries::scripted_agent()?;
    HubProcess::start(HubOptions { data_dir, claude, extra_args: Vec::new(), env }).await
}
