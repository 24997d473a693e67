//! `policy.add`: creates rules.

use std::sync::Arc;

use plexus_protocol::policy::{AddParams, AddResult};
use plexus_protocol::{Error, ErrorKind, Principal};
use plexus_store::RuleChange;

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::policy::RuleContext;
use crate::policy::view;

pub(super) fn method() -> Method {
    Method::new(
        "policy.add",
        "Adds rules for the tool calls of a session and all below it, and resolves the open approvals that \
         match.",
        Audience::Programs,
        Needs::Act,
        add,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn add(hub: Arc<Hub>, caller: Admitted, params: AddParams) -> Result<AddResult, Error> {
    if params.rules.is_empty() {
        return Err(Error::invalid("rules", "is empty"));
    }
    let session = match (params.session_id, &params.name) {
        (None, None) if caller.principal == Principal::Operator => None,
        (None, None) => {
            let message = "only the operator can add rules for every session; pass `session_id` or `name`";
            return Err(Error::new(ErrorKind::Forbidden, message).with("field", "session_id"));
        }
        (id, name) => Some(access::find_session(hub.store(), &caller, id, name.as_deref()).await?),
    };
    // A rule for all sessions has no working directory, so its relative paths start at the root.
    let base = session.as_ref().map_or("/", |session| session.config.working_dir.as_str());
    let context = RuleContext {
        principal: &caller.principal,
        session: session.as_ref().map(|row| row.id),
        base,
        home: hub.settings().home.as_deref(),
    };
    let committed = hub.commit(context.rules(&params.rules, "rules")?).await.map_err(store_error)?;
    let resolved = hub.policy().resolve_matching(hub.book(), session.map(|session| session.id)).await;
    let rules = committed.rules.iter().filter_map(|change| match change {
        RuleChange::Created(row) => view(row),
        RuleChange::Revoked(_) => None,
    });
    Ok(AddResult::Ok { rules: rules.collect(), settled: resolved })
}
