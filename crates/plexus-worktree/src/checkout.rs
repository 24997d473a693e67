//! Replaces files of the user's main working tree with the versions of a new commit. Each file is replaced atomically,
//! and only if it still has the content of the old commit; a new file never replaces an existing one. No link is followed
//! and no filter runs; files that need a filter are refused before anything is written.

use std::io;
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, Repository};

use crate::Result;
use crate::commit::{check_filters, is_lfs_pointer};
use crate::current::{Current, Entry, GITLINK, LINK};
use crate::diff::display;
use crate::error::at;
use crate::names::path_problem;
use crate::swap::{self, Leftover, New};
use crate::target::refused;
use crate::update::Step;
use crate::work::MAX_COMMIT_FILE;

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
    observe: &mut dyn FnMut(Step),
) -> Result<()> {
    let aside = temporary(new);
    for Replacement { path, old, .. } in all.iter().filter(|file| file.new.is_none()) {
        swap::delete(root, path, *old, &aside, observe).map_err(at(&root.join(path)))?;
        observe(Step::FileWritten);
    }
    for Replacement { path, old, new } in all {
        if let Some(entry) = new {
            let blob = repo.find_blob(entry.id)?;
            let new = New { mode: entry.mode, content: blob.content() };
            swap::write(root, path, *old, &new, &aside, observe).map_err(at(&root.join(path)))?;
            observe(Step::FileWritten);
        }
    }
    Ok(())
}

/// The name of temporary files, in the directory of each file.
pub(crate) fn temporary(new: &str) -> String {
    format!(".plexus-{}.tmp", &new[..new.len().min(12)])
}

/// Deletes the temporary files that an interrupted update left. Returns the first that is not a version of one of the
/// files, if there is one: a user saved it during the update.
pub(crate) fn delete_temporaries(
    repo: &Repository,
    root: &Path,
    new: &str,
    all: &[Replacement],
) -> Result<Option<PathBuf>> {
    let aside = temporary(new);
    let mut saved = None;
    for pass in [Pass::Delete, Pass::Report] {
        for file in all {
            let content = |entry: Option<Entry>| {
                entry.filter(|entry| entry.mode != GITLINK).map(|entry| repo.find_blob(entry.id)).transpose()
            };
            let beside = file.path.with_file_name(&aside);
            if root.join(&beside).symlink_metadata().is_err() {
                continue;
            }
            let (old, new) = (content(file.old)?, content(file.new)?);
            let versions = [&old, &new].map(|blob| blob.as_ref().map(git2::Blob::content));
            let left =
                swap::delete_leftover(root, &file.path, versions, &aside).map_err(at(&root.join(&beside)))?;
            if left == Leftover::Saved && matches!(pass, Pass::Report) {
                saved.get_or_insert(beside);
            }
        }
    }
    Ok(saved)
}

/// All files of a directory share the name of their temporary file, so it is only reported when no file matches it.
enum Pass {
    Delete,
    Report,
}
