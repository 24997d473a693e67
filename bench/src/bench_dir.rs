//! The directory of a benchmark: on a real disk, with the cost of a bare sync of that disk, and with a hub in it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use plexus_store::Durability;
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::{binaries, clean_env};
use tempfile::TempDir;

use crate::profiler;

/// The log of the scripted agents: one line per call that ran.
pub(crate) const LOG: &str = "ran.jsonl";

const TMPFS: u64 = 0x0102_1994;
/// One page, which is what a small commit writes.
const PAGE: [u8; 4096] = [0x5a; 4096];

/// A directory in cargo's target directory, which is on a disk. `/tmp` often is not.
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

/// The time to append a page to a file and sync it.
pub(crate) fn bare_sync(file: &mut File) -> io::Result<Duration> {
    let started = Instant::now();
    file.write_all(&PAGE)?;
    file.sync_data()?;
    Ok(started.elapsed())
}

/// The value of the setting `durability`.
pub(crate) fn setting(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "full",
        Durability::Normal => "normal",
    }
}

/// A hub with scripted agents and these lines in its `plexus.toml`.
pub(crate) async fn start_hub(dir: &Path, config: &str) -> anyhow::Result<HubProcess> {
    let hub = HubProcess::start(prepare(dir, config)?).await?;
    profiler::attach(&hub)?;
    Ok(hub)
}

/// Creates the directories and the settings of such a hub.
pub(crate) fn prepare(dir: &Path, config: &str) -> anyhow::Result<HubOptions> {
    for folder in ["home", "data", "work"] {
        std::fs::create_dir(dir.join(folder))?;
    }
    let data_dir = dir.join("data");
    std::fs::write(data_dir.join("plexus.toml"), format!("limits.asks_per_minute = 1000000\n{config}"))?;
    // Scripted agents use no model.
    let mut env = clean_env(&dir.join("home"), "http://127.0.0.1:1");
    env.push(("SCRIPTED_AGENT_LOG".to_owned(), dir.join(LOG).display().to_string()));
    let claude = binaries::scripted_agent()?;
    Ok(HubOptions { data_dir, claude, extra_args: Vec::new(), env })
}
