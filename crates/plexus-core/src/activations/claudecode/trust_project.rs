//! `claudecode.trust_project`: the operator trusts a session's current project configuration, or withdraws the trust.

use std::path::Path;
use std::sync::Arc;

use plexus_protocol::claudecode::{TrustProjectParams, TrustProjectResult};
use plexus_protocol::{Decider, Error};
use plexus_store::Change;
use serde_json::json;

use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::loading::{LoadedProject, project_view};
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::inheritance::may_be_given;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.trust_project",
        "Loads the project's settings, MCP servers and agents in their current state, from the next process \
         on.",
        Audience::Programs,
        Needs::Rule,
        trust_project,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn trust_project(
    hub: Arc<Hub>,
    caller: Admitted,
    params: TrustProjectParams,
) -> Result<TrustProjectResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let dir = Path::new(&session.config.working_dir);
    let taken = match params.trust {
        Some(false) => None,
        Some(true) | None => Some(
            LoadedProject::read(hub.files(), dir, hub.settings().home.as_deref(), |name| {
                may_be_given(hub.settings(), name)
            })
            .await?,
        ),
    };
    let by = Decider::from(&caller.principal);
    let before = hub.policy().in_force.of_project(session.id).into_iter();
    let mut changes: Vec<Change> =
        before.map(|number| Change::RevokeRule { number, by: by.clone() }).collect();
    let (act, files) = match &taken {
        Some(taken) => ("project_trusted", json!({"files": taken.project.files})),
        None => ("project_not_trusted", json!({})),
    };
    changes.extend(taken.iter().flat_map(|taken| taken.rules(session.id)));
    changes.push(session_audit::change(&caller, act, &session, files));
    let project = taken.map(|taken| taken.project);
    let shown = match &project {
        Some(project) => Some(project_view(hub.files(), project, dir).await),
        None => None,
    };
    hub.session(session.id).trust(project, changes).await?;
    hub.policy().resolve_matching(hub.book(), Some(session.id)).await;
    Ok(TrustProjectResult::Ok { session_id: session.id, project: shown })
}
