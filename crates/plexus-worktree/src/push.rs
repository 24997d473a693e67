//! Finds what a user needs to push a worktree's branch: its commit, and the remotes of the repository. It pushes nothing.

use plexus_protocol::visible;
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::changes::branch_tip;
use crate::work::Work;
use crate::{InitialState, Result, WorktreeError};

/// The maximum number of remotes.
const MAX_REMOTES: usize = 20;
/// The maximum length of an address, in bytes.
const MAX_URL_BYTES: usize = 500;

/// A branch that can be pushed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pushable {
    /// The commit of the branch.
    pub head: String,
    /// The number of changed files whose content is not committed.
    pub uncommitted: u64,
    /// The names and addresses of the remotes, without passwords.
    pub remotes: Vec<(String, String)>,
}

/// Finds the commit of the branch and the remotes.
pub fn pushable(worktree: &Worktree, initial_state: &InitialState) -> Result<Pushable> {
    let work = Work::of(worktree, initial_state)?;
    let repo = &work.comparison.repo;
    let head = branch_tip(repo, worktree)?
        .ok_or_else(|| WorktreeError::Refused(format!("The branch `{}` was deleted", worktree.branch)))?;
    let mut uncommitted = work.undone().count() as u64;
    for difference in &work.differences {
        let now = work.read_for_diff(&difference.path)?;
        uncommitted += u64::from(!work.is_committed(&difference.path, &now)?);
    }
    let mut remotes = Vec::new();
    for name in repo.remotes()?.iter().flatten().flatten().filter(|name| is_plain(name)).take(MAX_REMOTES) {
        let remote = repo.find_remote(name)?;
        let url = remote.pushurl_bytes().unwrap_or_else(|| remote.url_bytes());
        remotes.push((name.to_owned(), shown(&String::from_utf8_lossy(url))));
    }
    Ok(Pushable { head: head.to_string(), uncommitted, remotes })
}

/// Whether a remote's name can be part of a command.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !name.starts_with('-') && name.chars().all(plain)
}

/// An address for display, without user name and password.
fn shown(url: &str) -> String {
    let mut url = visible(url).unwrap_or_else(|| url.to_owned());
    if let Some((scheme, rest)) = url.split_once("://") {
        let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
        if let Some((_, host)) = host.rsplit_once('@') {
            url = format!("{scheme}://{host}{}", path.map_or(String::new(), |path| format!("/{path}")));
        }
    }
    url.truncate(url.floor_char_boundary(MAX_URL_BYTES));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, expected) in [
            ("https://me:secret@example.org/a/b.git", "https://example.org/a/b.git"),
            ("https://token@example.org", "https://example.org"),
            ("https://example.org/a@b", "https://example.org/a@b"),
            ("git@example.org:a/b.git", "git@example.org:a/b.git"),
            ("ext::sh -c x", "ext::sh -c x"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_remote_with_an_unusual_name_is_left_out() {
        assert!(is_plain("origin") && is_plain("my-fork.2"));
        assert!(!is_plain("-f") && !is_plain("a;b") && !is_plain("$(x)") && !is_plain("a b"));
    }
}
