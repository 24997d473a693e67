//! The list of the data directories of all hubs of a user: a folder with one link per directory. An agent of one hub
//! must not read the token of another hub. Every sandbox hides the directories listed when it is created, and the list
//! itself.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::paths;

/// Adds a data directory to the list, and removes entries of directories that no longer exist.
///
/// # Errors
///
/// When the list cannot be written.
pub fn list_data_dir(list: &Path, data_dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(list)?;
    for entry in std::fs::read_dir(list)? {
        let path = entry?.path();
        if path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // Another hub may have removed it meanwhile.
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    let data_dir = data_dir.canonicalize()?;
    let found = data_dir.metadata()?;
    let name = format!("{:x}-{:x}", found.dev(), found.ino());
    let draft = list.join(format!(".{name}.{}", std::process::id()));
    symlink(&data_dir, &draft)?;
    std::fs::rename(draft, list.join(name))
}

/// The paths to other hubs' data directories and to the list, except those hidden together with `own`.
pub(super) fn others(list: &Path, own: &[PathBuf]) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for dir in listed(list)?.into_iter().chain(list.is_dir().then(|| list.to_owned())) {
        found.extend(paths::leading_to(&dir)?);
    }
    let mut others = BTreeSet::new();
    // Outer directories first: they also hide the directories inside them.
    for path in found {
        if own.iter().chain(&others).any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        if let Some(inner) = own.iter().find(|own| own.starts_with(&path)) {
            return Err(inside(inner, &path));
        }
        others.insert(path);
    }
    Ok(others)
}

fn inside(dir: &Path, other: &Path) -> io::Error {
    let message = format!(
        "{} is inside the data directory of another hub, {}; move it",
        dir.display(),
        other.display()
    );
    io::Error::other(message)
}

/// The listed directories that exist.
fn listed(list: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        // A directory that exists but is unreachable now might become reachable later. This is an error, so no sandbox
        // is created.
        match entry?.path().canonicalize() {
            Ok(dir) if dir.is_dir() => found.push(dir),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_directory_is_listed_once_for_as_long_as_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let list = home.path().join("state/plexus/hubs");
        assert_eq!(listed(&list).unwrap(), Vec::<PathBuf>::new());
        let [one, two] = ["one", "two"].map(|name| home.path().canonicalize().unwrap().join(name));
        for dir in [&one, &two] {
            std::fs::create_dir(dir).unwrap();
            for _ in 0..2 {
                list_data_dir(&list, dir).unwrap();
            }
        }
        assert_eq!(listed(&list).unwrap(), [one.clone(), two.clone()]);
        std::fs::remove_dir(&one).unwrap();
        assert_eq!(listed(&list).unwrap(), std::slice::from_ref(&two));
        list_data_dir(&list, &two).unwrap();
        assert_eq!(list.read_dir().unwrap().count(), 1);
    }

    #[test]
    fn an_unreachable_data_directory_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let looped = home.path().join("looped");
        symlink(&looped, &looped).unwrap();
        assert!(listed(home.path()).is_err());
    }
}
