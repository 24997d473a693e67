//! `token.list`: the tokens in use.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::NoParams;
use plexus_protocol::token::{ListResult, Token};
use plexus_store::TokenRow;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use plexus_book::now;

pub(super) fn method() -> Method {
    Method::new(
        "token.list",
        "Lists the tokens in use, without their secrets.",
        Audience::Programs,
        Needs::Rule,
        list,
    )
    .repeatable()
}

async fn list(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<ListResult, Error> {
    let tokens = hub.store().tokens(now()).await.map_err(store_error)?;
    let shown =
        |TokenRow { name, right, created_at, expires_at }| Token { name, right, created_at, expires_at };
    Ok(ListResult::Ok { tokens: tokens.into_iter().map(shown).collect() })
}
