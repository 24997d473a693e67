//! Folders outside the checkout for what is slow to fetch and the same for every checkout. Whatever stands in one is
//! whole: it is made in a folder beside its place, by one xtask at a time, and put there at once. What is fetched, and
//! how it is told good from bad, is for its own module to say.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Folders with this prefix in a cache are half-done work.
const STAGING_PREFIX: &str = "fetching-";

/// Where the things called `name` are kept, by the environment that `var` reads: in the folder that `chosen` names,
/// else in the user's cache folder. Always absolute, because tests do not run where we were called.
pub fn dir(chosen: &str, name: &str, var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(given) = set(chosen) {
        return std::path::absolute(&given).with_context(|| format!("{} is no folder", given.display()));
    }
    // The XDG rules have a relative path count as none.
    let user_cache = set("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
    let user_cache = user_cache.or_else(|| set("HOME").map(|home| home.join(".cache")));
    let user_cache = user_cache.with_context(|| format!("set HOME or {chosen}: there is no cache folder"))?;
    Ok(user_cache.join("plexus").join(name))
}

/// Has `fetch` bring what is not there yet. It works in an empty folder of the cache, which goes away whatever
/// happens, and moves what is good to its place.
pub fn provide(
    cache: &Path,
    is_installed: impl Fn() -> bool,
    fetch: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if is_installed() {
        return Ok(());
    }
    fs::create_dir_all(cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let _lock = lock(cache).with_context(|| format!("{} cannot be locked", cache.display()))?;
    // Whoever held the lock before us may have brought it.
    if is_installed() {
        return Ok(());
    }
    sweep(cache).context("what an earlier fetch left cannot be removed")?;
    let staging = tempfile::Builder::new().prefix(STAGING_PREFIX).tempdir_in(cache)?;
    fetch(staging.path())
}

/// Runs npm in `folder`, with a cache of its own that goes away with `staging`: what is kept is kept by us, and a
/// second copy under the user's home would be of no use.
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
        Err(error) => Err(error).context("npm could not be started"),
    }
}

/// Waits until no other xtask fetches into this cache. The lock ends with the file, at the latest with us.
fn lock(cache: &Path) -> io::Result<File> {
    let file = File::create(cache.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("xtask: waiting for another xtask that is fetching into {}", cache.display());
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
    fn of_several_at_once_one_fetches_for_all() {
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
