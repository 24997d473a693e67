//! `token.new`: issues a token.

use std::sync::Arc;

use plexus_protocol::token::{NewParams, NewResult};
use plexus_protocol::{Decider, Error, ErrorKind};
use plexus_store::{Change, TokenRow};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::callers::secret::{new_token, token_hash};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use plexus_book::now;

pub(super) fn method() -> Method {
    Method::new(
        "token.new",
        "Creates a named token with one right: to read, to answer approvals, or all rights of the operator. \
         The token is shown only once.",
        Audience::Programs,
        Needs::Rule,
        new,
    )
}

async fn new(hub: Arc<Hub>, caller: Admitted, params: NewParams) -> Result<NewResult, Error> {
    let NewParams { name, right, expires_secs } = params;
    if expires_secs == Some(0) {
        return Err(Error::invalid(
            "expires_secs",
            "must be at least 1; omit it for a token that does not expire",
        ));
    }
    let created_at = now();
    let expires_at = expires_secs.map(|secs| created_at.saturating_add(secs));
    let token = new_token().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    let row = TokenRow { name: name.clone(), right, created_at, expires_at };
    let by = Decider::from(&caller.principal);
    let change = Change::CreateToken { token: row, hash: token_hash(&token), by };
    hub.commit(vec![change]).await.map_err(store_error)?;
    Ok(NewResult::Created { name, token, expires_at })
}
