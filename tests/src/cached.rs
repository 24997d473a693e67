//! npm packages that `cargo xtask test` has fetched into the user's cache: where they are. Which ones, and their exact versions,
//! stand in a lock file; the folder's name is made from it, so that none is taken for another.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

/// The `node_modules` of what a lock file names, if it was fetched: in the folder that the variable `chosen` names, else in
/// that called `name` in the user's cache. Kept in step with xtask's `packages.rs`.
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
