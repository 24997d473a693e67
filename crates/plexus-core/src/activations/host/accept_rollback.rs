//! `host.accept_rollback`: after the database has lost commits, lets this host continue with the state that the database has. The hub stops; the
//! next one of this host continues.

use std::sync::Arc;

use plexus_protocol::Error;
use plexus_protocol::claudecode::NoParams;
use plexus_protocol::host::AcceptRollbackResult;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.accept_rollback",
        "Accepts that the database has lost commits that this host had made or seen, and stops the hub. The next one continues with the state of the database.",
        Audience::Programs,
        Needs::Rule,
        accept_rollback,
    )
}

async fn accept_rollback(
    hub: Arc<Hub>,
    _caller: Admitted,
    _params: NoParams,
) -> Result<AcceptRollbackResult, Error> {
    hub.accept_rollback()?;
    Ok(AcceptRollbackResult::Ok {})
}
