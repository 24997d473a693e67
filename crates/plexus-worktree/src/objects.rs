//! Opens the objects of a repository without the files beside them that change what git makes of these objects. Those
//! files are not covered by any commit id, and a child can write them: grafts and `shallow` change the parents of a
//! commit, a commit graph states parents of its own, and attributes and settings can turn a conflict into a merge of both
//! sides. Ancestry and merges are computed here; new objects stay in memory until [`store`] copies them.

use std::collections::{HashSet, VecDeque};
use std::path::Path;

use git2::{ErrorClass, ErrorCode, ObjectType, Odb, Oid, Repository, Sort};

use crate::current::GITLINK;
use crate::update::replacements;
use crate::{Result, WorktreeError};

/// The file system root has no objects and no commit graph, and only root can write there.
const WITHOUT_COMMIT_GRAPH: &str = "/";
/// The precedence of objects in memory over those on disk, which have 1 and 2.
pub(crate) const IN_MEMORY: i32 = 1000;

/// The maximum number of commits of a base to compare with where the history is incomplete. Further ones count as new.
const MAX_AVAILABLE: usize = 100_000;

/// Opens the objects of the repository in this git directory.
pub(crate) fn open_objects(repo: &str) -> Result<Repository> {
    let objects = Path::new(repo).join("objects");
    let odb = Odb::new()?;
    odb.add_new_mempack_backend(IN_MEMORY)?;
    // libgit2 reads the commit graph of the first directory only.
    odb.add_disk_alternate(WITHOUT_COMMIT_GRAPH)?;
    odb.add_disk_alternate(&objects.to_string_lossy())?;
    Ok(Repository::from_odb(odb)?)
}

/// The commits of `tip` that `base` does not contain, newest first, at most `limit`.
pub(crate) fn commits_since(objects: &Repository, base: Oid, tip: Oid, limit: usize) -> Result<Vec<Oid>> {
    if tip == base {
        return Ok(Vec::new());
    }
    let walk = || {
        let mut walk = objects.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL)?;
        walk.push(tip)?;
        walk.hide(base)?;
        walk.take(limit).collect::<std::result::Result<Vec<_>, _>>()
    };
    match walk() {
        // A shallow clone lacks the parents of its oldest commits.
        Err(error) if is_missing(&error) => commits_down_to(objects, base, tip, limit),
        commits => Ok(commits?),
    }
}

/// Like [`commits_since`], for a repository that lacks old commits.
fn commits_down_to(objects: &Repository, base: Oid, tip: Oid, limit: usize) -> Result<Vec<Oid>> {
    let contained = available(objects, base, &HashSet::new(), MAX_AVAILABLE)?;
    available(objects, tip, &contained.into_iter().collect(), limit)
}

/// A commit and its ancestors, as far as they exist, without `excluded` ones. At most `limit`.
fn available(objects: &Repository, tip: Oid, excluded: &HashSet<Oid>, limit: usize) -> Result<Vec<Oid>> {
    let (mut found, mut seen, mut waiting) = (Vec::new(), HashSet::from([tip]), VecDeque::from([tip]));
    while let Some(id) = waiting.pop_front().filter(|_| found.len() < limit) {
        match objects.find_commit(id) {
            _ if excluded.contains(&id) => {}
            Ok(commit) => {
                found.push(id);
                waiting.extend(commit.parent_ids().filter(|parent| seen.insert(*parent)));
            }
            Err(error) if is_missing(&error) && id != tip => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The number of commits that only `tip` has, and that only `target` has. In a shallow clone, each is at most `limit`.
pub(crate) fn ahead_behind(
    objects: &Repository,
    tip: Oid,
    target: Oid,
    limit: usize,
) -> Result<(usize, usize)> {
    match objects.graph_ahead_behind(tip, target) {
        Err(error) if is_missing(&error) => {
            let count = |base, tip| commits_since(objects, base, tip, limit).map(|commits| commits.len());
            Ok((count(target, tip)?, count(tip, target)?))
        }
        counted => Ok(counted?),
    }
}

/// Whether `commit` has `ancestor` among its ancestors.
pub(crate) fn is_descendant(objects: &Repository, commit: Oid, ancestor: Oid) -> Result<bool> {
    objects.graph_descendant_of(commit, ancestor).map_err(incomplete)
}

/// Whether an object is missing. Some functions of libgit2 return no code for it.
fn is_missing(error: &git2::Error) -> bool {
    error.code() == ErrorCode::NotFound || error.class() == ErrorClass::Odb
}

/// Explains that a commit is missing. Other errors are unchanged.
pub(crate) fn incomplete(error: git2::Error) -> WorktreeError {
    if !is_missing(&error) {
        return error.into();
    }
    WorktreeError::Refused(format!(
        "The repository lacks a part of its history ({}). If it is a shallow clone, run `git fetch --unshallow`; or merge \
         with git",
        error.message()
    ))
}

/// Writes the objects of the new commit `after`, and of the new commits below it, from memory to the repository.
pub(crate) fn store(objects: &Repository, repo: &Repository, before: Oid, after: Oid) -> Result<()> {
    let (from, to) = (objects.odb()?, repo.odb()?);
    let copy = |id: Oid| {
        let object = from.read(id)?;
        to.write(object.kind(), object.data()).map(drop)
    };
    let mut commits = vec![after];
    // A merge or a squashed commit has `before` as its first parent; a rebase is a chain of commits down to it.
    while let Some(first) = commits.last().copied() {
        match objects.find_commit(first)?.parent_id(0) {
            Ok(parent) if parent != before => commits.push(parent),
            _ => break,
        }
    }
    let mut old = before;
    for id in commits.into_iter().rev() {
        for file in replacements(objects, old, id)? {
            match file.new {
                Some(new) if new.mode != GITLINK && !to.exists(new.id) => copy(new.id)?,
                _ => {}
            }
        }
        let tree = |id| Ok::<_, git2::Error>(objects.find_commit(id)?.tree_id());
        copy_trees(objects, Some(tree(old)?), tree(id)?, &copy)?;
        copy(id)?;
        old = id;
    }
    Ok(())
}

/// Copies a tree and its subtrees, except those that are equal in the old tree.
fn copy_trees(
    objects: &Repository,
    old: Option<Oid>,
    new: Oid,
    copy: &dyn Fn(Oid) -> std::result::Result<(), git2::Error>,
) -> Result<()> {
    if old == Some(new) {
        return Ok(());
    }
    let old = old.map(|old| objects.find_tree(old)).transpose()?;
    for entry in objects.find_tree(new)?.iter().filter(|entry| entry.kind() == Some(ObjectType::Tree)) {
        let before = old.as_ref().and_then(|old| {
            let name = entry.name_bytes();
            let found = old.iter().find(|old| old.name_bytes() == name)?;
            (found.kind() == Some(ObjectType::Tree)).then(|| found.id())
        });
        copy_trees(objects, before, entry.id(), copy)?;
    }
    Ok(copy(new)?)
}
