//! `claudecode.list`: the sessions the caller answers for.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{ListResult, NoParams};

use crate::Hub;
use crate::access::{Admitted, Needs};
use crate::method::{Audience, Method};

pub(super) fn method() -> Method {
    Method::new("claudecode.list", "The sessions you answer for.", Audience::Agents, Needs::Read, list)
        .repeatable()
}

async fn list(hub: Arc<Hub>, caller: Admitted, _params: NoParams) -> Result<ListResult, Error> {
    let mut sessions = Vec::new();
    for session in hub.visible_sessions(&caller).await? {
        sessions.push(hub.session_view(session).await?);
    }
    Ok(ListResult::Ok { sessions })
}
