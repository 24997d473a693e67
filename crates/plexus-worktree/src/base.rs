//! Resolves the base revision of a worktree. Git prefers a tag to a branch of the same name, and a reference to a commit
//! id, so a tag that an agent creates could replace the branch that the caller means. This module refuses a name that
//! means different commits, and reports a branch only if its head is the base.

use std::path::Path;

use git2::{ErrorCode, Oid, Repository};

use crate::person::check_branch;
use crate::{Result, WorktreeError};

/// The length of a full commit id, in hexadecimal digits.
const FULL_ID: usize = 40;
/// The minimum length of an abbreviated commit id.
const SHORT_ID: usize = 4;

/// The commit that a worktree starts from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) commit: Oid,
    /// The local branch whose head the commit is, if the caller means a branch.
    pub(crate) branch: Option<String>,
}

/// The base that the caller names, or the commit that is checked out at `path`.
pub(crate) fn base(repo: &Repository, path: &Path, given: Option<&str>) -> Result<Base> {
    if let Some(given) = given {
        return named(repo, given);
    }
    let unusable = |error: git2::Error| match error.code() {
        ErrorCode::UnbornBranch | ErrorCode::NotFound => WorktreeError::NoCommits(path.to_owned()),
        _ => error.into(),
    };
    let head = repo.head().map_err(unusable)?;
    let commit = head.peel_to_commit().map_err(unusable)?.id();
    let name = head.name().ok().map(str::to_owned);
    Ok(Base { commit, branch: name.and_then(|name| branch(repo, &name, commit)) })
}

fn named(repo: &Repository, given: &str) -> Result<Base> {
    let no_such = |error: git2::Error| WorktreeError::NoSuchBase {
        base: given.to_owned(),
        why: error.message().to_owned(),
    };
    if given.len() == FULL_ID
        && let Ok(id) = given.parse::<Oid>()
    {
        let commit =
            repo.find_object(id, None).and_then(|object| object.peel_to_commit()).map_err(no_such)?;
        return Ok(Base { commit: commit.id(), branch: None });
    }
    let (name, suffix) = given.split_at(given.find(['^', '~', ':']).unwrap_or(given.len()));
    let (name, suffix) = match name.find("@{") {
        Some(at) => given.split_at(at),
        None => (name, suffix),
    };
    let meant = candidates(repo, name);
    let mut others = meant.iter().filter(|other| other.1 != meant[0].1).peekable();
    if others.peek().is_some() {
        let names: Vec<String> =
            meant[..1].iter().chain(others).map(|(full, _)| format!("`{full}{suffix}`")).collect();
        return Err(WorktreeError::AmbiguousBase { base: given.to_owned(), names: names.join(" or ") });
    }
    let full = meant.first().map(|(full, _)| full);
    // A reflog or an upstream belongs to a name in its short form.
    let written = match full {
        Some(full) if !suffix.starts_with('@') => format!("{full}{suffix}"),
        _ => given.to_owned(),
    };
    let commit =
        repo.revparse_single(&written).and_then(|object| object.peel_to_commit()).map_err(no_such)?.id();
    let branch = full.filter(|_| suffix.is_empty()).and_then(|full| branch(repo, full, commit));
    Ok(Base { commit, branch })
}

/// Everything that a name can mean, as full names with their commits, a branch first.
fn candidates(repo: &Repository, name: &str) -> Vec<(String, Oid)> {
    let reference = |full: String| {
        let commit = repo.find_reference(&full).and_then(|reference| reference.peel_to_commit());
        commit.ok().map(|commit| (full, commit.id()))
    };
    if name == "HEAD" || name.starts_with("refs/") {
        // A full name. A tag can be called `refs/heads/main` too.
        return reference(name.to_owned()).into_iter().collect();
    }
    let full = [
        format!("refs/heads/{name}"),
        format!("refs/tags/{name}"),
        format!("refs/remotes/{name}"),
        format!("refs/remotes/{name}/HEAD"),
        format!("refs/{name}"),
        name.to_owned(),
    ];
    let mut found: Vec<(String, Oid)> = full.into_iter().filter_map(reference).collect();
    let is_id = name.len() >= SHORT_ID && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id && let Ok(commit) = repo.find_commit_by_prefix(name) {
        found.push((commit.id().to_string(), commit.id()));
    }
    found
}

/// The name of the local branch `full`, if `commit` is its head.
fn branch(repo: &Repository, full: &str, commit: Oid) -> Option<String> {
    let name = full.strip_prefix("refs/heads/")?;
    check_branch(name).ok()?;
    (repo.find_reference(full).ok()?.target() == Some(commit)).then(|| name.to_owned())
}
