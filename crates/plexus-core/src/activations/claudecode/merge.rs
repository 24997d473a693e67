//! `claudecode.merge`: merges the reviewed branch of a worktree into its base branch or another local branch, or returns
//! the conflicts.
//!
//! Agents may not call it: it changes the user's own branch and working tree, and passes no gate.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{MergeParams, MergeResult};
use plexus_protocol::worktree::Worktree;
use plexus_store::{OnBehalf, SessionRow};
use plexus_worktree::{AffectedTree, MergeRequest, PreparedMerge, check_branch, check_message};
use serde_json::json;

use super::diff::{check_author, completed, worktree_of};
use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.merge",
        "Merges the reviewed branch of a session's worktree into another branch. Conflicts are returned, and nothing \
         is changed. Runs no hooks, filters or merge drivers.",
        Audience::Programs,
        Needs::Rule,
        merge,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn merge(hub: Arc<Hub>, caller: Admitted, params: MergeParams) -> Result<MergeResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let worktree = worktree_of(&session)?;
    if let Some(message) = &params.message {
        check_message(message).map_err(|why| Error::invalid("message", why))?;
    }
    check_author(params.author.as_ref())?;
    let into = params.into.clone().or_else(|| worktree.base_branch.clone()).ok_or_else(|| {
        Error::invalid(
            "into",
            "is missing, and the worktree was not created from a branch; pass the local branch to merge into",
        )
    })?;
    check_branch(&into).map_err(|why| Error::invalid("into", format!("`{into}` {why}")))?;
    // The task completes even if the caller disconnects.
    let work = merge_reviewed(Arc::clone(&hub), caller, session, worktree, into, params);
    completed(hub.tasks().spawn(OnBehalf::current().perform(work)).await)
}

async fn merge_reviewed(
    hub: Arc<Hub>,
    caller: Admitted,
    session: SessionRow,
    worktree: Worktree,
    into: String,
    params: MergeParams,
) -> Result<MergeResult, Error> {
    let worktrees = hub.worktrees();
    let _updating = worktrees.start_update(session.id).await?;
    let author = params.author.or_else(|| hub.settings().git_author.clone());
    let (branch, head, how) = (worktree.branch.clone(), params.head, params.how);
    let request = MergeRequest {
        head: head.clone(),
        into: into.clone(),
        onto: params.onto,
        preview: params.preview.clone(),
        how,
        message: params.message,
        author,
    };
    let update = match worktrees.prepare_merge(worktree, request).await? {
        PreparedMerge::Ready(update) => update,
        PreparedMerge::Differs { before, preview, files } => {
            return Ok(MergeResult::Differs { into, before, preview, files });
        }
        PreparedMerge::Conflicts { before, commit, files, truncated } => {
            return Ok(MergeResult::Conflicts { into, before, commit, files, truncated });
        }
    };
    let (before, after) = (update.old.clone(), update.new.clone());
    let checkout = match &update.tree {
        AffectedTree::Checkout { root } => Some(root.clone()),
        AffectedTree::None | AffectedTree::Index { .. } => None,
    };
    let detail = json!({
        "branch": branch, "head": head, "into": into, "how": how, "before": before, "after": after,
        "checkout": checkout, "author": update.by, "preview": params.preview,
    });
    worktrees.update_branch(&caller, &session, "merge", detail, update).await?;
    Ok(MergeResult::Ok { into, before, after, checkout })
}
