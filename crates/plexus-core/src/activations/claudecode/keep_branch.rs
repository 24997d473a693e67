//! `claudecode.keep_branch`: returns the commands that push the branch of a worktree, for the user's terminal. It pushes
//! nothing and changes nothing in the repository; it only writes an audit entry.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{KeepBranchParams, KeepBranchResult, PushCommand};
use plexus_worktree::{Pushable, check_plain_branch};
use serde_json::json;

use super::diff::worktree_of;
use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.keep_branch",
        "Returns the branch of a session's worktree and the commands that push it. Pushes nothing.",
        Audience::Programs,
        Needs::Rule,
        keep_branch,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn keep_branch(
    hub: Arc<Hub>,
    caller: Admitted,
    params: KeepBranchParams,
) -> Result<KeepBranchResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let worktree = worktree_of(&session)?;
    let target = params.remote_branch.unwrap_or_else(|| worktree.branch.clone());
    check_plain_branch(&target)
        .map_err(|why| Error::invalid("remote_branch", format!("`{target}` {why}")))?;
    check_plain_branch(&worktree.branch).map_err(|why| Error::invalid("session_id", why))?;
    let (branch, dir) = (worktree.branch.clone(), quoted(&worktree.path));
    let Pushable { head, uncommitted, remotes } = hub.worktrees().pushable(session.id, worktree).await?;
    let detail = json!({"branch": branch, "head": head, "remote_branch": target});
    session_audit::record(hub.commits(), &caller, "branch_kept", &session, detail).await?;
    let pushes = remotes.into_iter().map(|(remote, url)| {
        // The full name: git would refuse a name that is also that of a tag.
        let command = format!("git -C {dir} push {remote} refs/heads/{branch}:refs/heads/{target}");
        PushCommand { remote, url, command }
    });
    Ok(KeepBranchResult::Ok { head, uncommitted, pushes: pushes.collect(), branch })
}

/// A path as one word for a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(quoted("/home/me/app"), "/home/me/app");
        assert_eq!(quoted("/it's $(mine)"), "'/it'\\''s $(mine)'");
    }
}
