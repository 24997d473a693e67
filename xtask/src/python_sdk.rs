//! The Claude Agent SDK for Python, for the benchmarks. Its version, its dependencies and their checksums are in
//! `bench/peers/requirements.txt`. It is in a cache, in a directory whose name is derived from that file.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::cache;
use crate::workspace::run as run_command;

/// Installs the packages of a requirements file with pip, unless the cache has them. Returns their directory.
pub fn provide(cache: &Path, requirements: &Path) -> anyhow::Result<PathBuf> {
    let pins = fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    pins.hash(&mut hasher);
    let destination = cache.join(format!("{:016x}", hasher.finish()));
    cache::provide(
        cache,
        || destination.is_dir(),
        |staging| {
            eprintln!("xtask: downloading the Claude Agent SDK for Python from PyPI (about 200 MB, once)");
            let packages = staging.join("packages");
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir", "--require-hashes"]);
            pip.args(["--disable-pip-version-check", "--root-user-action=ignore"]);
            run_command(pip.arg("--target").arg(&packages).arg("--requirement").arg(requirements))?;
            // Claude Code itself is part of the package. The benchmarks use the pinned one.
            let bundled = packages.join("claude_agent_sdk/_bundled");
            if bundled.is_dir() {
                fs::remove_dir_all(bundled)?;
            }
            fs::rename(&packages, &destination)?;
            Ok(())
        },
    )?;
    Ok(destination)
}
