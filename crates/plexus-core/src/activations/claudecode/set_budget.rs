//! `claudecode.set_budget`: sets the budget of a session and its descendants.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::{SetBudgetParams, SetBudgetResult};

use crate::Hub;
use crate::budget_requests;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.set_budget",
        "Sets the budget of a session and all below it, within what you have left.",
        Audience::Agents,
        Needs::Act,
        set_budget,
    )
    .repeatable()
}

async fn set_budget(
    hub: Arc<Hub>,
    caller: Admitted,
    params: SetBudgetParams,
) -> Result<SetBudgetResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let limits = params.budget.limits()?;
    if limits.is_empty() {
        return Err(Error::invalid("budget", "is empty; set at least one budget"));
    }
    let changes = budget_requests::changes(&caller.principal, session.id, &session.name, limits);
    hub.commit(changes).await.map_err(store_error)?;
    let mut rows = hub.store().budget(session.id).await.map_err(store_error)?;
    rows.retain(|row| row.session == session.id);
    let budget = budget_requests::view(&rows).unwrap_or_default();
    Ok(SetBudgetResult::Ok { session_id: session.id, budget })
}
