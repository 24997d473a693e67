//! Checks the trees that a branch adds, before its content is shown or merged. libgit2 reads trees that git refuses to
//! check out: with `.git`, `..`, slashes or the same name twice. Such a tree can show one content and merge another.

use std::collections::{HashMap, HashSet};

use git2::{ObjectType, Odb, Oid, Repository};

use crate::names::problem;
use crate::objects::commits_since;
use crate::{Result, WorktreeError};

/// The maximum number of commits to check.
const MAX_COMMITS: usize = 10_000;
/// The maximum number of trees to read.
const MAX_TREES: usize = 200_000;
/// The maximum number of files in new trees. A small tree can contain itself many times, so this is counted.
const MAX_FILES: u64 = 1_000_000;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 500;

const TREE: &[u8] = b"40000";
const LINK: &[u8] = b"120000";

/// Checks all trees of the commits that `tip` has and `base` lacks. Subtrees that are equal in the base are not read.
pub(crate) fn check_new_trees(objects: &Repository, base: Oid, tip: Oid) -> Result<()> {
    let commits = commits_since(objects, base, tip, MAX_COMMITS + 1)?;
    if commits.len() > MAX_COMMITS {
        return Err(WorktreeError::Refused(format!(
            "The branch has more than {MAX_COMMITS} commits that its base lacks, too many to check. Merge it with git"
        )));
    }
    let known = objects.find_commit(base)?.tree_id();
    let mut trees = Trees { odb: objects.odb()?, checked: HashMap::new() };
    for commit in commits {
        let tree = objects.find_commit(commit)?.tree_id();
        let files = trees.check(tree, Some(known), 0).map_err(|fault| match fault {
            Fault::Git(error) => error.into(),
            Fault::TooMuch => WorktreeError::TooMuch,
            Fault::Malformed(tree, why) => WorktreeError::Refused(format!(
                "The commit {commit} contains {why} (in the tree {tree}), which git itself never writes. Ask the agent to \
                 create the commit again with git, or start a new session"
            )),
        })?;
        if files > MAX_FILES {
            return Err(WorktreeError::TooMuch);
        }
    }
    Ok(())
}

enum Fault {
    Git(git2::Error),
    TooMuch,
    Malformed(Oid, &'static str),
}

impl From<git2::Error> for Fault {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

struct Trees<'repo> {
    odb: Odb<'repo>,
    /// The checked trees, with the number of files that each adds.
    checked: HashMap<Oid, u64>,
}

impl Trees<'_> {
    /// Checks a tree and its subtrees, except those that are equal in `old`. Returns the number of files.
    fn check(&mut self, id: Oid, old: Option<Oid>, depth: usize) -> std::result::Result<u64, Fault> {
        if old == Some(id) {
            return Ok(0);
        }
        if let Some(files) = self.checked.get(&id) {
            return Ok(*files);
        }
        if depth > MAX_DEPTH || self.checked.len() >= MAX_TREES {
            return Err(Fault::TooMuch);
        }
        let data = {
            let tree = self.odb.read(id)?;
            if tree.kind() != ObjectType::Tree {
                return Err(Fault::Malformed(id, "an entry that is not a directory"));
            }
            tree.data().to_vec()
        };
        let entries = checked_entries(&data).map_err(|why| Fault::Malformed(id, why))?;
        let old = match old.map(|old| self.odb.read(old)).transpose()? {
            Some(old) => subtrees(old.data()),
            None => HashMap::new(),
        };
        let mut files: u64 = 0;
        for entry in entries {
            let added = match entry.mode {
                TREE => self.check(entry.id, old.get(entry.name).copied(), depth + 1)?,
                _ => 1,
            };
            files = files.saturating_add(added);
        }
        self.checked.insert(id, files);
        Ok(files)
    }
}

struct TreeEntry<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    id: Oid,
}

/// Splits off the first entry of a tree: mode, space, name, zero byte, id.
fn next(data: &[u8]) -> Option<(TreeEntry<'_>, &[u8])> {
    let space = data.iter().position(|byte| *byte == b' ')?;
    let (mode, rest) = (&data[..space], &data[space + 1..]);
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (&rest[..end], &rest[end + 1..]);
    let (id, rest) = rest.split_at_checked(Oid::ZERO_SHA1.as_bytes().len())?;
    Some((TreeEntry { mode, name, id: Oid::from_bytes(id).ok()? }, rest))
}

/// The entries of a tree, if git could have written it.
fn checked_entries(mut data: &[u8]) -> std::result::Result<Vec<TreeEntry<'_>>, &'static str> {
    let (mut entries, mut names) = (Vec::<TreeEntry<'_>>::new(), HashSet::new());
    while !data.is_empty() {
        let (entry, rest) = next(data).ok_or("a damaged entry")?;
        if !matches!(entry.mode, TREE | LINK | b"100644" | b"100755" | b"160000") {
            return Err("an entry with an unknown mode");
        }
        if let Some(why) = problem(entry.name) {
            return Err(why);
        }
        if entry.mode == LINK && entry.name.eq_ignore_ascii_case(b".gitmodules") {
            return Err("a symbolic link `.gitmodules`");
        }
        if !names.insert(entry.name) {
            return Err("the same name twice");
        }
        if entries.last().is_some_and(|last| sort_key(last) >= sort_key(&entry)) {
            return Err("names in the wrong order");
        }
        entries.push(entry);
        data = rest;
    }
    Ok(entries)
}

/// Git sorts a directory as if its name ended with a slash.
fn sort_key(entry: &TreeEntry<'_>) -> Vec<u8> {
    let slash: &[u8] = if entry.mode == TREE { b"/" } else { b"" };
    [entry.name, slash].concat()
}

/// The subtrees of a tree that needs no check.
fn subtrees(mut data: &[u8]) -> HashMap<Vec<u8>, Oid> {
    let mut found = HashMap::new();
    while let Some((entry, rest)) = next(data) {
        if entry.mode == TREE {
            found.insert(entry.name.to_vec(), entry.id);
        }
        data = rest;
    }
    found
}
