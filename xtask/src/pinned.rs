//! The real Claude Code programs the tests run, pinned by version. Owns the cache they lie in, as
//! `CACHE/<version>/claude`: what is there under that name is whole and of that version. What cannot be had is
//! said and left out; the tests that miss it report themselves.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::workspace::run as run_command;

/// The versions the test suite runs against: the oldest we support and the newest we know.
const VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];

/// The package that is nothing but the program for one platform; it needs no Node to run.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";

/// Folders with this prefix in the cache are half-done work.
const STAGING_PREFIX: &str = "fetching-";

/// Where the programs are kept, by the environment that `var` reads: a folder of its own choice, else the
/// user's cache folder. Always absolute, because tests do not run where we were called.
pub fn cache_dir(var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let set = |name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(chosen) = set("PLEXUS_CLAUDE_CACHE") {
        return std::path::absolute(&chosen).with_context(|| format!("{} is no folder", chosen.display()));
    }
    // The XDG rules have a relative path count as none.
    let user_cache = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
    let user_cache = user_cache.or_else(|| set("HOME").map(|home| home.join(".cache")));
    Ok(user_cache
        .context("set HOME or PLEXUS_CLAUDE_CACHE: there is nowhere to keep Claude Code")?
        .join("plexus/claude"))
}

/// Brings every pinned program that is not in the cache yet, and says which could not be had.
pub fn provide(cache: &Path) {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        eprintln!(
            "xtask: the pinned Claude Code programs are for Linux on x86-64 only: this platform is not"
        );
        eprintln!("xtask: supported, and the tests that need a real Claude Code are skipped");
        return;
    }
    for version in VERSIONS {
        if let Err(error) = provide_one(cache, version, npm_pack) {
            eprintln!("xtask: no Claude Code {version}, the tests that need it are skipped: {error:#}");
        }
    }
}

/// Brings one version with `pack`, which puts the package as a `.tgz` into the folder it is given.
fn provide_one(
    cache: &Path,
    version: &str,
    pack: impl FnOnce(&str, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let program = cache.join(version).join("claude");
    if check(&program, version).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let _lock = lock(cache).with_context(|| format!("{} cannot be locked", cache.display()))?;
    // Whoever held the lock before us may have brought it.
    if check(&program, version).is_ok() {
        return Ok(());
    }
    sweep(cache).context("what an earlier fetch left cannot be removed")?;

    let staging = tempfile::Builder::new().prefix(STAGING_PREFIX).tempdir_in(cache)?;
    pack(version, staging.path())?;
    let tarball = the_tarball_in(staging.path())?;
    run_command(Command::new("tar").arg("-xzf").arg(tarball).current_dir(staging.path()))?;
    let unpacked = staging.path().join("package/claude");
    check(&unpacked, version).context("what was fetched is not usable")?;

    fs::create_dir_all(cache.join(version))?;
    // In place at once or not at all; a test that runs an older file there keeps that one.
    fs::rename(&unpacked, &program).with_context(|| format!("{} cannot be written", program.display()))?;
    eprintln!("xtask: Claude Code {version} is in {}", program.display());
    Ok(())
}

/// Has npm fetch the package of one version, with a cache of its own that goes away with the folder: the program
/// is kept by us, and a second copy under the user's home would be of no use.
fn npm_pack(version: &str, into: &Path) -> anyhow::Result<()> {
    eprintln!("xtask: fetching Claude Code {version} from the npm registry (about 100 MB, once)");
    let mut npm = Command::new("npm");
    npm.args(["pack", "--loglevel=error", "--no-update-notifier", "--cache"]).arg(into.join("npm-cache"));
    npm.arg(format!("{PACKAGE}@{version}")).current_dir(into).stdin(Stdio::null()).stdout(Stdio::null());
    match npm.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("npm pack {PACKAGE}@{version} failed ({status})"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("npm is not installed"),
        Err(error) => Err(error).context("npm could not be started"),
    }
}

/// Runs `claude --version`, in an empty environment so that no setting or credential of the user is in reach,
/// and compares.
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
        .with_context(|| format!("{} cannot be run", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.split_whitespace().next() == Some(version),
        "{} says {:?} ({}), not {version}",
        program.display(),
        said.trim(),
        output.status
    );
    Ok(())
}

/// Waits until no other xtask fetches into this cache. The lock ends with the file, at the latest with us.
fn lock(cache: &Path) -> io::Result<File> {
    let file = File::create(cache.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("xtask: waiting for another xtask that is fetching Claude Code");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

/// Removes what a fetch that was killed left behind. Only under the lock.
fn sweep(cache: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// The name of the one package in a folder.
fn the_tarball_in(dir: &Path) -> anyhow::Result<OsString> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "tgz") {
            return Ok(name);
        }
    }
    bail!("npm left no package in {}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_dir_with(vars: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
        cache_dir(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

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
    fn the_nearest_setting_chooses_the_cache() {
        let all = [("PLEXUS_CLAUDE_CACHE", "/own"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/me")];
        assert_eq!(cache_dir_with(&all).unwrap(), Path::new("/own"));
        assert_eq!(cache_dir_with(&all[1..]).unwrap(), Path::new("/xdg/plexus/claude"));
        assert_eq!(cache_dir_with(&all[2..]).unwrap(), Path::new("/home/me/.cache/plexus/claude"));
        assert!(cache_dir_with(&[]).is_err());
    }

    #[test]
    fn an_empty_setting_counts_as_none() {
        let vars = [("PLEXUS_CLAUDE_CACHE", ""), ("XDG_CACHE_HOME", ""), ("HOME", "/home/me")];
        assert_eq!(cache_dir_with(&vars).unwrap(), Path::new("/home/me/.cache/plexus/claude"));
    }

    #[test]
    fn the_cache_is_absolute_whatever_was_set() {
        assert!(cache_dir_with(&[("PLEXUS_CLAUDE_CACHE", "near/by")]).unwrap().is_absolute());
        let vars = [("XDG_CACHE_HOME", "relative"), ("HOME", "/home/me")];
        assert_eq!(cache_dir_with(&vars).unwrap(), Path::new("/home/me/.cache/plexus/claude"));
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
    fn what_is_in_the_cache_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        provide_one(cache.path(), "1.2.3", pack_a_program_that_claims).unwrap();
        provide_one(cache.path(), "1.2.3", |_, _| bail!("fetched again")).unwrap();
    }

    #[test]
    fn a_program_of_another_version_never_gets_into_the_cache() {
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

    #[test]
    fn of_several_at_once_one_fetches_for_all() {
        let cache = tempfile::tempdir().unwrap();
        let fetches = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    provide_one(cache.path(), "1.2.3", |version, into| {
                        fetches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        pack_a_program_that_claims(version, into)
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(fetches.into_inner(), 1);
    }
}
