//! `policy.revoke`: revokes a rule.

use std::sync::Arc;

use plexus_protocol::policy::{RevokeParams, RevokeResult};
use plexus_protocol::{Decider, Error, ErrorKind, Principal};
use plexus_store::Change;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "policy.revoke",
        "Revokes a rule that you added; the operator can revoke any rule.",
        Audience::Programs,
        Needs::Act,
        revoke,
    )
}

async fn revoke(hub: Arc<Hub>, caller: Admitted, params: RevokeParams) -> Result<RevokeResult, Error> {
    let number = params.number;
    let mine = |created_by: Decider| {
        caller.principal == Principal::Operator || created_by == Decider::from(&caller.principal)
    };
    let rule = match hub.policy().in_force.rule(number) {
        // A rule that another hub has just created is in the store before this hub knows it.
        None => {
            let stored = hub.store().rules().await.map_err(store_error)?;
            stored.rules.into_iter().find(|row| row.number == number)
        }
        known => known,
    };
    if !rule.is_some_and(|row| mine(row.rule.created_by)) {
        return Err(Error::new(ErrorKind::RuleNotFound, format!("no rule {number} is in force")));
    }
    hub.commit(vec![Change::RevokeRule { number, by: Decider::from(&caller.principal) }])
        .await
        .map_err(store_error)?;
    Ok(RevokeResult::Ok { number })
}
