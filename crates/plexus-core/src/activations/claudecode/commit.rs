//! `claudecode.commit`: commits what the operator reviewed in a session's worktree, on the worktree's branch.
//!
//! Agents may not call it: the commit carries the operator's name and passes no gate. An agent that should commit runs
//! git, as a tool call that the gate sees.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{CommitParams, CommitResult};
use plexus_protocol::worktree::Worktree;
use plexus_store::{OnBehalf, SessionRow};
use plexus_worktree::{CommitRequest, PreparedCommit, check_message};
use serde_json::json;

use super::diff::{check_author, completed, worktree_of};
use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.commit",
        "Commits the reviewed changes of a session's worktree on its branch. Runs no hooks and no filters.",
        Audience::Programs,
        Needs::Rule,
        commit,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn commit(hub: Arc<Hub>, caller: Admitted, params: CommitParams) -> Result<CommitResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let worktree = worktree_of(&session)?;
    check_message(&params.message).map_err(|why| Error::invalid("message", why))?;
    check_author(params.author.as_ref())?;
    // The task completes even if the caller disconnects.
    let work = commit_reviewed(Arc::clone(&hub), caller, session, worktree, params);
    completed(hub.tasks().spawn(OnBehalf::current().perform(work)).await)
}

async fn commit_reviewed(
    hub: Arc<Hub>,
    caller: Admitted,
    session: SessionRow,
    worktree: Worktree,
    params: CommitParams,
) -> Result<CommitResult, Error> {
    let worktrees = hub.worktrees();
    let _updating = worktrees.start_update(session.id).await?;
    let author = params.author.or_else(|| hub.settings().git_author.clone());
    let request =
        CommitRequest { digest: params.digest.clone(), message: params.message, author, paths: params.paths };
    let prepared = worktrees.prepare_commit(session.id, worktree.clone(), request).await?;
    let PreparedCommit { update, files, converted } = prepared;
    let (head, parent, branch) = (update.new.clone(), update.old.clone(), update.branch.clone());
    let detail = json!({
        "branch": branch, "before": parent, "after": head, "digest": params.digest, "files": files, "author": update.by,
    });
    worktrees.update_branch(&caller, &session, "commit", detail, update).await?;
    Ok(CommitResult::Ok { head, parent, branch, files, converted })
}
