//! `claudecode.list`: the sessions that the caller is responsible for, as trees.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{ListParams, ListResult};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;
use crate::tree::without_archived;
use crate::view::session_view;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.list",
        "Lists your sessions, each followed by the sessions below it.",
        Audience::Agents,
        Needs::Read,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, caller: Admitted, params: ListParams) -> Result<ListResult, Error> {
    let seen = access::visible_sessions(hub.store(), &caller).await?;
    let seen = if params.archived == Some(true) { seen } else { without_archived(seen) };
    Ok(ListResult::Ok {
        sessions: seen.into_iter().map(|one| session_view(one, &hub.parts().keepers)).collect(),
    })
}
