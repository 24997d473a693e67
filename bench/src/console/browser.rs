//! Runs `bench/console/load_times.mjs`, which loads pages in Chromium with the Playwright that `cargo xtask bench` downloads.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use plexus_testkit::binaries;
use plexus_testkit::hub_process::HubProcess;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/console/load_times.mjs");
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The time limit for one load. Most loads take about a second.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// A page of the console.
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) hash: String,
    /// The page is complete when this element contains this text.
    pub(super) element: &'static str,
    pub(super) shows: String,
}

/// One load of a page. Times are in milliseconds.
#[derive(Debug, Deserialize)]
pub(super) struct Load {
    pub(super) page: String,
    /// The first contentful paint.
    pub(super) paint: f64,
    /// When the page showed its content.
    pub(super) content: f64,
    /// Bytes that the page received.
    pub(super) bytes: f64,
    /// The longest task on the clock.
    pub(super) clock: f64,
    /// The longest task in CPU time.
    pub(super) cpu: f64,
}

/// The version of the browser, and the loads.
pub(super) async fn load(
    hub: &HubProcess,
    home: &Path,
    pages: &[Page],
    rounds: usize,
) -> anyhow::Result<(String, Vec<Load>)> {
    let packages = std::env::var_os("PLEXUS_BENCH_BROWSER")
        .context("PLEXUS_BENCH_BROWSER is not set: use `cargo xtask bench`")?;
    let listed: Vec<Value> = pages
        .iter()
        .map(|page| json!({"name": page.name, "hash": page.hash, "element": page.element, "shows": page.shows}))
        .collect();
    let argument = json!({
        "modules": Path::new(&packages).join("node_modules"), "chromium": chromium()?, "link": link(hub, home).await?,
        "rounds": rounds, "pages": listed,
    });
    let mut node = Command::new(on_path("node").context("`node` is not in PATH")?);
    node.arg(SCRIPT).arg(argument.to_string()).env_clear().env("HOME", home).current_dir(home);
    node.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let limit = LOAD_LIMIT * u32::try_from(1 + rounds * pages.len() * 2)?;
    let output = node.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(limit, output).await.context("the browser is too slow")??;
    ensure!(output.status.success(), "the browser failed: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout)?;
    let mut lines = printed.lines();
    let version: Value = serde_json::from_str(lines.next().context("the browser printed nothing")?)?;
    let loads = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok((version["chromium"].as_str().unwrap_or_default().to_owned(), loads))
}

/// A link that signs in to the console.
async fn link(hub: &HubProcess, home: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(binaries::plexus()?);
    command.args(["console", "--print", "--data-dir"]).arg(hub.data_dir());
    command.env_clear().env("HOME", home).kill_on_drop(true);
    let output = tokio::time::timeout(LOAD_LIMIT, command.output()).await.context("plexus console")??;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The path of Chromium: `$PLEXUS_CHROMIUM`, else a program in `PATH`.
fn chromium() -> anyhow::Result<PathBuf> {
    let chosen = std::env::var_os("PLEXUS_CHROMIUM").filter(|path| !path.is_empty()).map(PathBuf::from);
    let found = chosen.or_else(|| CHROMIUM.iter().find_map(|name| on_path(name)));
    found.context("no Chromium in PATH: set PLEXUS_CHROMIUM")
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file))
}
