//! Caches outside the checkout, for downloads that every checkout can share. Everything in a cache is
//! complete: one xtask at a time downloads it to a staging directory, checks it and then renames it. The
//! callers decide what to download and how to check it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The prefix of staging directories in a cache.
const STAGING_PREFIX: &str = "fetching-";

/// The directory of the cache `name`: the one in the environment variable `chosen`, otherwise one in the
/// user's cache directory. The path is absolute, because tests run in other working directories.
pub fn dir(chosen: &str, name: &str, var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(given) = set(chosen) {
        return std::path::absolute(&given)
            .with_context(|| format!("{} is not a directory", given.display()));
    }
    // According to the XDG specification, a relative path is ignored.
    let user_cache = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
    let user_cache = user_cache.or_else(|| set("HOME").map(|home| home.join(".cache")));
    let user_cache =
        user_cache.with_context(|| format!("cannot find a cache directory: set HOME or {chosen}"))?;
    Ok(user_cache.join("plexus").join(name))
}

/// Calls `fetch` unless the cache already has the result. `fetch` works in an empty staging directory, which
/// is deleted afterwards in any case, and moves its result to its place.
pub fn provide(
    cache: &Path,
    is_installed: impl Fn() -> bool,
    fetch: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if is_installed() {
        return Ok(());
    }
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let _lock = lock(cache).with_context(|| format!("cannot lock {}", cache.display()))?;
    // The previous holder of the lock may have downloaded it.
    if is_installed() {
        return Ok(());
    }
    sweep(cache).context("cannot delete what an earlier download left behind")?;
    let staging = tempfile::Builder::new().prefix(STAGING_PREFIX).tempdir_in(cache)?;
    fetch(staging.path())
}

/// Runs npm in `folder` with a temporary npm cache below `staging`: the result is in our own cache, so a
/// second copy in the user's home directory would be useless.
pub fn npm(staging: &Path, folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut npm = Command::new("npm");
    npm.args(args)
        .args(["--loglevel=error", "--no-update-notifier", "--cache"])
        .arg(staging.join("npm-cache"));
    npm.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    match npm.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("npm {} failed ({status})", args.join(" ")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("npm is not installed"),
        Err(error) => Err(error).context("cannot start npm"),
    }
}

/// Waits until no other xtask uses this cache. The lock ends when the file is closed, at the latest when this
/// process ends.
fn lock(cache: &Path) -> io::Result<File> {
    let file = File::create(cache.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("xtask: waiting for another xtask that downloads to {}", cache.display());
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

/// Deletes what a killed download left behind. The caller holds the lock.
fn sweep(cache: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_with(vars: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
        dir("OWN", "things", |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_nearest_setting_chooses_the_cache() {
        let all = [("OWN", "/own"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/me")];
        assert_eq!(dir_with(&all).unwrap(), Path::new("/own"));
        assert_eq!(dir_with(&all[1..]).unwrap(), Path::new("/xdg/plexus/things"));
        assert_eq!(dir_with(&all[2..]).unwrap(), Path::new("/home/me/.cache/plexus/things"));
        assert!(dir_with(&[]).is_err());
    }

    #[test]
    fn an_empty_setting_counts_as_none() {
        let vars = [("OWN", ""), ("XDG_CACHE_HOME", ""), ("HOME", "/home/me")];
        assert_eq!(dir_with(&vars).unwrap(), Path::new("/home/me/.cache/plexus/things"));
    }

    #[test]
    fn the_cache_is_absolute_whatever_was_set() {
        assert!(dir_with(&[("OWN", "near/by")]).unwrap().is_absolute());
        let vars = [("XDG_CACHE_HOME", "relative"), ("HOME", "/home/me")];
        assert_eq!(dir_with(&vars).unwrap(), Path::new("/home/me/.cache/plexus/things"));
    }

    #[test]
    fn concurrent_callers_share_one_fetch() {
        let cache = tempfile::tempdir().unwrap();
        let destination = cache.path().join("thing");
        let fetches = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    provide(
                        cache.path(),
                        || destination.exists(),
                        |staging| {
                            fetches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            fs::write(staging.join("made"), "whole")?;
                            Ok(fs::rename(staging.join("made"), &destination)?)
                        },
                    )
                    .unwrap();
                });
            }
        });
        assert_eq!(fetches.into_inner(), 1);
    }
}
