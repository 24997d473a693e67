//! `claudecode.diff`: the changes in a session's worktree, as a text diff.

use std::sync::Arc;

use plexus_protocol::claudecode::{DiffParams, DiffResult};
use plexus_protocol::{Error, ErrorKind};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.diff",
        "Shows what a session has changed in its worktree, committed or not, as unified diffs.",
        Audience::Programs,
        Needs::Read,
        diff,
    )
    .repeatable()
}

async fn diff(hub: Arc<Hub>, caller: Admitted, params: DiffParams) -> Result<DiffResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let Some(worktree) = session.config.worktree else {
        let message = format!(
            "session `{}` has no worktree of its own, so its changes in {} cannot be distinguished from \
             other changes",
            session.name, session.config.working_dir
        );
        return Err(Error::new(ErrorKind::NoWorktree, message));
    };
    let (base, branch) = (worktree.base.clone(), worktree.branch.clone());
    let found = hub.worktrees().worktree_diff(session.id, worktree, params.path).await?;
    Ok(DiffResult::Ok { base, branch, files: found.files, truncated: found.truncated })
}
