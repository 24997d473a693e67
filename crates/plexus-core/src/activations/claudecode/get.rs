//! `claudecode.get`: one session, with its status, its settings and the changes in its worktree.

use std::sync::Arc;

use plexus_agent::RunDir;
use plexus_protocol::Error;
use plexus_protocol::claudecode::{GetResult, SessionParams};
use plexus_store::RunKey;

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::session_not_found;
use crate::hub::Method;
use crate::loading;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::view::session_view;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.get",
        "Returns one session: its status, turn, settings and worktree changes.",
        Audience::Agents,
        Needs::Read,
        get,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::ExecuteHere)
}

async fn get(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<GetResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let (id, worktree) = (session.id, session.config.worktree.clone());
    let latest = RunKey { session: id, run: session.latest_run };
    // The usage sums need every session of the tree. The session found above may have been deleted by now.
    let mut seen = access::visible_sessions(hub.store(), &caller).await?.into_iter();
    let seen = seen.find(|seen| seen.session.row.id == id).ok_or_else(|| session_not_found(id))?;
    let mut view = session_view(seen, &hub.parts().keepers);
    if !hub.is_own(session.host.as_ref()) {
        // Its host is unreachable, and so are its files.
        return Ok(GetResult::Ok { session: view });
    }
    hub.parts().sandbox.show(&mut view, &RunDir::new(hub.settings().run_dir(latest)));
    view.loads = loading::shown(hub.files(), &hub.parts().user_settings, &session.config).await;
    if let Some(worktree) = worktree {
        view.worktree = Some(hub.worktrees().worktree_view(id, worktree).await);
    }
    Ok(GetResult::Ok { session: view })
}
