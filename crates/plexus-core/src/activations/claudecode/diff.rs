//! `claudecode.diff`: the changes in a session's worktree, as a text diff.

use std::sync::Arc;

use plexus_protocol::claudecode::{DiffParams, DiffResult, Person};
use plexus_protocol::worktree::Worktree;
use plexus_protocol::{Error, ErrorKind};
use plexus_store::SessionRow;
use plexus_worktree::WorktreeDiff;
use tokio::task::JoinError;

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::worktrees::{Shown, proposal};

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.diff",
        "Shows what a session has changed in its worktree, committed or not, as unified diffs, and what is left to \
         commit and to merge.",
        Audience::Programs,
        Needs::Read,
        diff,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn diff(hub: Arc<Hub>, caller: Admitted, params: DiffParams) -> Result<DiffResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let worktree = worktree_of(&session)?;
    let Worktree { base, branch, base_branch, .. } = worktree.clone();
    let shown = Shown { only: params.path, context_lines: params.context_lines };
    let found = hub.worktrees().worktree_diff(session.id, worktree, shown).await?;
    let author = hub.settings().git_author.as_ref();
    let proposal = proposal(hub.store(), &session, author, found.base_author).await?;
    let WorktreeDiff { files, truncated, digest, head, commits, state, .. } = found;
    Ok(DiffResult::Ok { base, branch, base_branch, digest, head, commits, state, proposal, files, truncated })
}

/// The worktree of a session.
pub(super) fn worktree_of(session: &SessionRow) -> Result<Worktree, Error> {
    session.config.worktree.clone().ok_or_else(|| {
        let message = format!(
            "session `{}` has no worktree of its own, so its changes in {} cannot be distinguished from \
             other changes",
            session.name, session.config.working_dir
        );
        Error::new(ErrorKind::NoWorktree, message)
    })
}

/// The result of a task that completes even if its caller disconnects.
pub(super) fn completed<T>(ended: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    ended.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "internal error; see the log of the hub")))
}

/// Checks the author that a caller names.
pub(super) fn check_author(author: Option<&Person>) -> Result<(), Error> {
    let Some(author) = author else { return Ok(()) };
    plexus_worktree::check_person(author).map_err(|why| Error::invalid("author", why))
}
