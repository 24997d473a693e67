//! The real Claude Code programs for the tests, pinned by version, in the cache as `CACHE/<version>/claude`.
//! A file in the cache is complete and has that version. If a download fails, this module prints why; the
//! tests that need the program report that they were skipped.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use plexus_claude::TESTED_VERSIONS;

use crate::cache::{self, npm};
use crate::workspace::run as run_command;

/// The package that contains only the program for one platform; it needs no Node.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";

/// Downloads every pinned program that is not in the cache, and prints which downloads failed.
pub fn provide(cache: &Path) {
    for version in TESTED_VERSIONS {
        if let Err(error) = provide_one(cache, version, npm_pack) {
            eprintln!(
                "xtask: cannot download Claude Code {version}, so the tests that need it are skipped: \
                {error:#}"
            );
        }
    }
}

/// Downloads one version with `pack`, which writes the package as a `.tgz` file into the given directory.
fn provide_one(
    cache: &Path,
    version: &str,
    pack: impl FnOnce(&str, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let program = cache.join(version).join("claude");
    let is_installed = || check(&program, version).is_ok();
    cache::provide(cache, is_installed, |staging| {
        pack(version, staging)?;
        let tarball = the_tarball_in(staging)?;
        run_command(Command::new("tar").arg("-xzf").arg(tarball).current_dir(staging))?;
        let unpacked = staging.join("package/claude");
        check(&unpacked, version).context("the download is not usable")?;

        fs::create_dir_all(cache.join(version))?;
        // The rename is atomic. A test that is running the previous file keeps it.
        fs::rename(&unpacked, &program).with_context(|| format!("cannot write {}", program.display()))?;
        eprintln!("xtask: Claude Code {version} is in {}", program.display());
        Ok(())
    })
}

/// Downloads the package of one version with npm.
fn npm_pack(version: &str, into: &Path) -> anyhow::Result<()> {
    eprintln!("xtask: downloading Claude Code {version} from the npm registry (about 100 MB, once)");
    npm(into, into, &["pack", &format!("{PACKAGE}@{version}")])
}

/// Runs `claude --version` and compares the output. The environment is empty, so that no settings or
/// credentials of the user are available.
fn check(program: &Path, version: &str) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let output = Command::new(program)
        .arg("--version")
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && printed.split_whitespace().next() == Some(version),
        "{} prints {:?} ({}), not {version}",
        program.display(),
        printed.trim(),
        output.status
    );
    Ok(())
}

/// The name of the only package in a directory.
fn the_tarball_in(dir: &Path) -> anyhow::Result<OsString> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "tgz") {
            return Ok(name);
        }
    }
    bail!("npm downloaded no package to {}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs a program that claims to be `claims`. A shell writes it: a file that this process has open for
    /// writing cannot be run, and every other test that starts a process holds it open for a moment.
    fn pack_a_program_that_claims(claims: &str, into: &Path) -> anyhow::Result<()> {
        let script = format!(
            r#"mkdir package && printf '#!/bin/sh\necho "{claims} (Claude Code)"\n' >package/claude &&
            chmod +x package/claude && tar -czf made.tgz package && rm -r package"#
        );
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).current_dir(into).env_clear().env("PATH", "/usr/bin:/bin");
        run_command(&mut shell)
    }

    fn names_in(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_fetched_program_is_in_place_and_nothing_else_stays() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir_all(cache.path().join("fetching-left-by-a-killed-one")).unwrap();
        provide_one(cache.path(), "1.2.3", pack_a_program_that_claims).unwrap();
        assert_eq!(names_in(cache.path()), ["1.2.3", "lock"]);
        check(&cache.path().join("1.2.3/claude"), "1.2.3").unwrap();
    }

    #[test]
    fn a_cached_program_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        provide_one(cache.path(), "1.2.3", pack_a_program_that_claims).unwrap();
        provide_one(cache.path(), "1.2.3", |_, _| bail!("fetched again")).unwrap();
    }

    #[test]
    fn a_program_of_another_version_is_not_cached() {
        let cache = tempfile::tempdir().unwrap();
        let error = provide_one(cache.path(), "1.2.3", |_, into| pack_a_program_that_claims("1.2.30", into));
        assert!(format!("{:#}", error.unwrap_err()).contains("not 1.2.3"));
        assert_eq!(names_in(cache.path()), ["lock"]);
    }

    #[test]
    fn a_wrong_program_in_the_cache_is_replaced() {
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir_all(cache.path().join("1.2.3")).unwrap();
        fs::write(cache.path().join("1.2.3/claude"), "half a download").unwrap();
        provide_one(cache.path(), "1.2.3", pack_a_program_that_claims).unwrap();
        check(&cache.path().join("1.2.3/claude"), "1.2.3").unwrap();
    }

    #[test]
    fn a_failed_fetch_leaves_nothing_behind() {
        let cache = tempfile::tempdir().unwrap();
        provide_one(cache.path(), "1.2.3", |_, _| bail!("no network")).unwrap_err();
        assert_eq!(names_in(cache.path()), ["lock"]);
    }
}
