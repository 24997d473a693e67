//! Replaces or deletes one file of the user's working tree without losing what a user saves at the same moment. The file
//! is first exchanged with the new one, or moved aside, in one step, and only then compared: if it does not have its old
//! content, it is put back. No link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use git2::{ObjectType, Oid};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::current::{Current, Entry, LINK, parent_dir, read_in};
use crate::names::path_problem;
use crate::update::Step;
use crate::work::MAX_COMMIT_FILE;

/// A new version of a file.
pub(crate) struct New<'a> {
    pub(crate) mode: u32,
    pub(crate) content: &'a [u8],
}

/// Writes a file that has the content `old`, or does not exist. `aside` is the name of a temporary file in its directory.
pub(crate) fn write(
    root: &Path,
    path: &Path,
    old: Option<Entry>,
    new: &New<'_>,
    aside: &str,
    observe: &mut dyn FnMut(Step),
) -> io::Result<()> {
    let (dir, name) = created_dir(root, path)?;
    create(&dir, aside, new)?;
    observe(Step::FileReady);
    let Some(old) = old else {
        let renamed = renameat_with(&dir, aside, &dir, name, RenameFlags::NOREPLACE);
        if renamed.is_err() {
            let _ = unlinkat(&dir, aside, AtFlags::empty());
        }
        return Ok(renamed?);
    };
    if let Err(error) = renameat_with(&dir, aside, &dir, name, RenameFlags::EXCHANGE) {
        let _ = unlinkat(&dir, aside, AtFlags::empty());
        return Err(if error == Errno::NOENT { changed() } else { error.into() });
    }
    observe(Step::FileSwapped);
    if is(&dir, aside, old.id)? {
        return Ok(unlinkat(&dir, aside, AtFlags::empty())?);
    }
    renameat_with(&dir, aside, &dir, name, RenameFlags::EXCHANGE)?;
    if is(&dir, aside, Oid::hash_object(ObjectType::Blob, new.content).map_err(io::Error::other)?)? {
        unlinkat(&dir, aside, AtFlags::empty())?;
        return Err(changed());
    }
    Err(saved_aside(aside))
}

/// Deletes a file that has the content `old`, and the directories that become empty.
pub(crate) fn delete(
    root: &Path,
    path: &Path,
    old: Option<Entry>,
    aside: &str,
    observe: &mut dyn FnMut(Step),
) -> io::Result<()> {
    check(path)?;
    let (Some(old), Some((dir, name))) = (old, parent_dir(root, path)?) else { return Err(changed()) };
    observe(Step::FileReady);
    renameat_with(&dir, name, &dir, aside, RenameFlags::NOREPLACE).map_err(|error| match error {
        Errno::NOENT => changed(),
        error => error.into(),
    })?;
    observe(Step::FileSwapped);
    if !is(&dir, aside, old.id)? {
        renameat_with(&dir, aside, &dir, name, RenameFlags::NOREPLACE).map_err(|_| saved_aside(aside))?;
        return Err(changed());
    }
    unlinkat(&dir, aside, AtFlags::empty())?;
    let mut emptied = path.parent();
    while let Some(path) = emptied.filter(|path| !path.as_os_str().is_empty()) {
        let Some((dir, name)) = parent_dir(root, path)? else { break };
        // Another file keeps the directory.
        if unlinkat(&dir, name, AtFlags::REMOVEDIR).is_err() {
            break;
        }
        emptied = path.parent();
    }
    Ok(())
}

/// What an interrupted update left beside a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    Nothing,
    /// A file that neither the update nor the old commit contains: a user saved it during the update.
    Saved,
}

/// Deletes the temporary file that an interrupted update left beside a file, if it is a version of this file.
pub(crate) fn delete_leftover(
    root: &Path,
    path: &Path,
    versions: [Option<&[u8]>; 2],
    aside: &str,
) -> io::Result<Leftover> {
    let Some((dir, _)) = parent_dir(root, path)? else { return Ok(Leftover::Nothing) };
    match read_in(&dir, OsStr::new(aside), MAX_COMMIT_FILE)? {
        Current::Missing => Ok(Leftover::Nothing),
        Current::File { content, .. }
            // The update may have been interrupted while it wrote the new version.
            if versions.into_iter().flatten().any(|version| version.starts_with(&content)) =>
        {
            unlinkat(&dir, aside, AtFlags::empty())?;
            Ok(Leftover::Nothing)
        }
        _ => Ok(Leftover::Saved),
    }
}

fn create(dir: &OwnedFd, name: &str, new: &New<'_>) -> io::Result<()> {
    let exists = |error| match error {
        Errno::EXIST => io::Error::other(format!(
            "an earlier update left the file `{name}` beside it. Look at its content, then delete it"
        )),
        error => error.into(),
    };
    if new.mode == LINK {
        let target = std::ffi::CString::new(new.content).map_err(|_| io::ErrorKind::InvalidData)?;
        return symlinkat(target, dir, name).map_err(exists);
    }
    let mode = if new.mode == 0o100_755 { 0o777 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, name, flags, Mode::from_raw_mode(mode)).map_err(exists)?);
    let written = file.write_all(new.content).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = unlinkat(dir, name, AtFlags::empty());
    }
    written
}

fn is(dir: &OwnedFd, name: &str, id: Oid) -> io::Result<bool> {
    let now = read_in(dir, OsStr::new(name), MAX_COMMIT_FILE)?;
    let entry = now.entry().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entry.is_some_and(|entry| entry.id == id))
}

fn changed() -> io::Error {
    io::Error::other("the file changed during the update and was not replaced")
}

fn saved_aside(aside: &str) -> io::Error {
    io::Error::other(format!(
        "the file was saved twice during the update. One version is in `{aside}` beside it; move it where you want it"
    ))
}

/// Refuses a path that leads into a git directory or outside the tree, whatever was checked before.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match path_problem(path) {
        None => Ok(()),
        Some(why) => Err(io::Error::other(format!("the path has {why}. Plexus does not write it"))),
    }
}

/// Opens the directory of a file without following links, and creates it if it is missing.
pub(crate) fn created_dir<'a>(root: &Path, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    check(path)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, root, flags, Mode::empty())?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        match mkdirat(dir.as_fd(), part.as_os_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        dir = openat(&dir, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok((dir, path.file_name().ok_or(io::ErrorKind::InvalidInput)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASIDE: &str = ".aside";

    fn entry(text: &str) -> Option<Entry> {
        let id = Oid::hash_object(ObjectType::Blob, text.as_bytes()).unwrap();
        Some(Entry { mode: 0o100_644, id })
    }

    fn new(text: &str) -> New<'_> {
        New { mode: 0o100_644, content: text.as_bytes() }
    }

    /// Saves at a step, as an editor does: by a rename, or in place.
    fn save_at<'a>(step: Step, saves: &'a [(&'a Path, &'a str)]) -> impl FnMut(Step) + 'a {
        move |now| {
            for (path, text) in saves.iter().filter(|_| now == step) {
                let draft = path.with_extension("draft");
                std::fs::write(&draft, text).unwrap();
                std::fs::rename(draft, path).unwrap();
            }
        }
    }

    #[test]
    fn a_save_during_the_exchange_is_never_lost() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let path = Path::new("a");
        for step in [Step::FileReady, Step::FileSwapped] {
            std::fs::write(&file, "old").unwrap();
            let outcome = write(
                dir.path(),
                path,
                entry("old"),
                &new("new"),
                ASIDE,
                &mut save_at(step, &[(&file, "mine")]),
            );
            assert_eq!((outcome.is_err(), &*read(&file)), (step == Step::FileReady, "mine"), "{step:?}");
            assert!(!dir.path().join(ASIDE).exists());

            std::fs::write(&file, "old").unwrap();
            let outcome =
                delete(dir.path(), path, entry("old"), ASIDE, &mut save_at(step, &[(&file, "mine")]));
            assert_eq!((outcome.is_err(), &*read(&file)), (step == Step::FileReady, "mine"), "{step:?}");
            assert!(!dir.path().join(ASIDE).exists());
        }
        // Saved before the exchange and again before the file is put back: both versions exist.
        for deleted in [false, true] {
            std::fs::write(&file, "old").unwrap();
            let mut count = 0;
            let mut observe = |_| {
                count += 1;
                std::fs::write(file.with_extension("draft"), format!("mine {count}")).unwrap();
                std::fs::rename(file.with_extension("draft"), &file).unwrap();
            };
            let outcome = match deleted {
                false => write(dir.path(), path, entry("old"), &new("new"), ASIDE, &mut observe),
                true => delete(dir.path(), path, entry("old"), ASIDE, &mut observe),
            };
            let told = outcome.unwrap_err().to_string();
            assert!(told.contains("saved twice") && told.contains(ASIDE), "{told}");
            let mut versions = [read(&file), read(&dir.path().join(ASIDE))];
            versions.sort();
            assert_eq!(versions, ["mine 1", "mine 2"]);
            std::fs::remove_file(dir.path().join(ASIDE)).unwrap();
        }
        // An editor that opened and truncated the file before the exchange, and writes afterwards.
        std::fs::write(&file, "old").unwrap();
        let mut editor = None;
        let mut observe = |step| match step {
            Step::FileReady => editor = Some(File::create(&file).unwrap()),
            _ => editor.as_mut().unwrap().write_all(b"mine").unwrap(),
        };
        assert!(write(dir.path(), path, entry("old"), &new("new"), ASIDE, &mut observe).is_err());
        assert_eq!(read(&file), "mine");
    }

    #[test]
    fn a_new_file_never_replaces_one_and_no_git_directory_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let saved = write(
            dir.path(),
            Path::new("a"),
            None,
            &new("new"),
            ASIDE,
            &mut save_at(Step::FileReady, &[(&file, "mine")]),
        );
        assert!(saved.is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        for path in [".git/hooks/x", "sub/.GIT/x", "git~1/x", ".git", "../x", "a//b", "a/./b"] {
            let refused =
                write(dir.path(), Path::new(path), None, &new("x"), ASIDE, &mut |_| {}).unwrap_err();
            assert!(refused.to_string().contains("Plexus does not write it"), "{path}: {refused}");
            assert!(delete(dir.path(), Path::new(path), entry("x"), ASIDE, &mut |_| {}).is_err(), "{path}");
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn only_a_version_of_the_file_is_deleted_as_a_leftover() {
        let dir = tempfile::tempdir().unwrap();
        let aside = dir.path().join(ASIDE);
        let leftover =
            || delete_leftover(dir.path(), Path::new("a"), [Some(b"old"), Some(b"new one")], ASIDE).unwrap();
        assert_eq!(leftover(), Leftover::Nothing);
        for (text, found) in
            [("old", Leftover::Nothing), ("new", Leftover::Nothing), ("mine", Leftover::Saved)]
        {
            std::fs::write(&aside, text).unwrap();
            assert_eq!(leftover(), found, "{text}");
            assert_eq!(aside.exists(), found == Leftover::Saved);
        }
    }
}
