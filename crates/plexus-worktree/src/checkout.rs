//! Replaces files of the user's main working tree with the versions of a new commit. Each file is replaced atomically,
//! and only if it still has the content of the old commit; a new file never replaces an existing one. No link is followed
//! and no filter runs; files that need a filter are refused before anything is written.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, Repository};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::commit::{check_filters, is_lfs_pointer};
use crate::current::{Current, Entry, GITLINK, LINK, parent_dir};
use crate::diff::display;
use crate::error::at;
use crate::names::path_problem;
use crate::target::refused;
use crate::work::MAX_COMMIT_FILE;
use crate::{Result, WorktreeError};

/// A file that changes; `None` for a missing file.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<Entry>,
    pub(crate) new: Option<Entry>,
}

/// Checks that every file has its old content, and that its new content can be written without a filter.
pub(crate) fn check_replacements(
    repo: &Repository,
    root: &Path,
    branch: &str,
    all: &[Replacement],
) -> Result<()> {
    let shown = root.display().to_string();
    for Replacement { path, old, new } in all {
        let name = display(path);
        if let Some(why) = path_problem(path) {
            return Err(refused(&shown, branch, &format!("would get a path with {why} (`{name}`)")));
        }
        if [old, new].into_iter().flatten().any(|entry| entry.mode == GITLINK) {
            return Err(refused(&shown, branch, &format!("would change its submodule `{name}`")));
        }
        let current = Current::read(root, path, MAX_COMMIT_FILE)?;
        let is_old = current.entry()? == *old && (old.is_some() || matches!(current, Current::Missing));
        if !is_old || (old.is_none() && !has_room(root, path)?) {
            return Err(refused(&shown, branch, &format!("has different content at `{name}`")));
        }
        if let Some(new) = new.filter(|new| new.mode != LINK) {
            let blob = repo.find_blob(new.id)?;
            if is_lfs_pointer(blob.content()) {
                return Err(refused(&shown, branch, &format!("would get a Git LFS pointer as `{name}`")));
            }
            check_filters(repo, path, blob.content())?;
            if converts(repo, path)? {
                return Err(refused(&shown, branch, &format!("would get other line endings in `{name}`")));
            }
        }
    }
    Ok(())
}

/// Whether a new file can be created: nothing exists at its path, and each of its parents is a directory or missing.
fn has_room(root: &Path, path: &Path) -> Result<bool> {
    let mut dir = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        dir.push(part);
        match dir.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(at(&dir)(error)),
        }
    }
    Ok(root.join(path).symlink_metadata().is_err())
}

/// Whether git would write the file with other line endings or expand `$Id$`.
fn converts(repo: &Repository, path: &Path) -> Result<bool> {
    let get = |name: &str| repo.get_attr_bytes(path, name, AttrCheckFlags::FILE_THEN_INDEX);
    let settings = repo.config()?.snapshot()?;
    let is = |key: &str, value: &str| settings.get_str(key).is_ok_and(|set| set.eq_ignore_ascii_case(value));
    let crlf = is("core.autocrlf", "true") || is("core.eol", "crlf");
    let eol = AttrValue::always_bytes(get("eol")?);
    let text = AttrValue::always_bytes(get("text")?);
    let ident = AttrValue::always_bytes(get("ident")?);
    let is_text = !matches!(text, AttrValue::False);
    let ends = matches!(eol, AttrValue::Bytes(b"crlf")) || (crlf && !matches!(eol, AttrValue::Bytes(b"lf")));
    Ok((is_text && ends) || matches!(ident, AttrValue::True))
}

/// Writes all files. `new` is the id of the new commit, which names the temporary files.
pub(crate) fn replace_all(
    repo: &Repository,
    root: &Path,
    new: &str,
    all: &[Replacement],
    observe: &mut dyn FnMut(),
) -> Result<()> {
    let temporary = temporary(new);
    for Replacement { path, old, .. } in all.iter().filter(|file| file.new.is_none()) {
        delete(root, path, *old).map_err(at(&root.join(path)))?;
        observe();
    }
    for Replacement { path, old, new } in all {
        if let Some(entry) = new {
            let content = repo.find_blob(entry.id)?.content().to_vec();
            let written = write(root, path, *old, entry.mode, &content, &temporary);
            written.map_err(at(&root.join(path)))?;
            observe();
        }
    }
    Ok(())
}

/// The name of temporary files, in the directory of each file.
pub(crate) fn temporary(new: &str) -> String {
    format!(".plexus-{}.tmp", &new[..new.len().min(12)])
}

fn write(
    root: &Path,
    path: &Path,
    old: Option<Entry>,
    mode: u32,
    content: &[u8],
    temporary: &str,
) -> io::Result<()> {
    let (dir, name) = created_dir(root, path)?;
    match unlinkat(&dir, temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    if mode == LINK {
        let target = std::ffi::CString::new(content).map_err(|_| io::ErrorKind::InvalidData)?;
        symlinkat(target, &dir, temporary)?;
    } else {
        let mode = if mode == 0o100_755 { 0o777 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&dir, temporary, flags, Mode::from_raw_mode(mode))?);
        file.write_all(content)?;
        file.sync_all()?;
    }
    let renamed = match old {
        None => renameat_with(&dir, temporary, &dir, name, RenameFlags::NOREPLACE).map_err(io::Error::from),
        // A user's editor may have written the file since the check.
        Some(_) => still(root, path, old).and_then(|()| Ok(renameat(&dir, temporary, &dir, name)?)),
    };
    if renamed.is_err() {
        let _ = unlinkat(&dir, temporary, AtFlags::empty());
    }
    renamed
}

fn delete(root: &Path, path: &Path, old: Option<Entry>) -> io::Result<()> {
    still(root, path, old)?;
    let Some((dir, name)) = parent_dir(root, path)? else { return Ok(()) };
    unlinkat(&dir, name, AtFlags::empty())?;
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

fn still(root: &Path, path: &Path, old: Option<Entry>) -> io::Result<()> {
    let is_old = Current::read(root, path, MAX_COMMIT_FILE).and_then(|current| current.entry());
    match is_old.map_err(|error: WorktreeError| io::Error::other(error.to_string()))? {
        now if now == old => Ok(()),
        _ => Err(io::Error::other("the file changed during the update and was not replaced")),
    }
}

/// Opens the directory of a file without following links, and creates it if it is missing.
fn created_dir<'a>(root: &Path, path: &'a Path) -> io::Result<(OwnedFd, &'a std::ffi::OsStr)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(rustix::fs::CWD, root, flags, Mode::empty())?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        match mkdirat(dir.as_fd(), part.as_os_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        dir = openat(&dir, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok((dir, path.file_name().ok_or(io::ErrorKind::InvalidInput)?))
}

/// Deletes a temporary file that an interrupted update left beside a file.
pub(crate) fn delete_temporary(root: &Path, path: &Path, new: &str) {
    if let Ok(Some((dir, _))) = parent_dir(root, path) {
        let _ = unlinkat(&dir, temporary(new), AtFlags::empty());
    }
}
