//! The location of npm packages that `cargo xtask test` has fetched into the user's cache. A lock file lists the packages with their exact
//! versions. The name of the cache directory is derived from the lock file, so that versions are never mixed up.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

/// The `node_modules` for a lock file, if it was fetched: in the directory of the environment variable `chosen`, else in the directory
/// `name` of the user's cache. Keep in step with xtask's `packages.rs`.
#[must_use]
pub fn modules(chosen: &str, name: &str, lock_file: &str) -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let cache = var(chosen).map(PathBuf::from).or_else(|| {
        let user = var("XDG_CACHE_HOME").map(PathBuf::from);
        let user = user.or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache")))?;
        Some(user.join("plexus").join(name))
    })?;
    let mut hasher = DefaultHasher::new();
    lock_file.hash(&mut hasher);
    let modules = cache.join(format!("{:016x}", hasher.finish())).join("node_modules");
    modules.is_dir().then_some(modules)
}
