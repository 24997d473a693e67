//! `host.add`: gives a machine a role of its own in the database, which is limited to the sessions of its host.

use std::sync::Arc;

use plexus_protocol::host::{AddParams, AddResult};
use plexus_protocol::{Error, ErrorKind};
use plexus_store::{Admission, HostAccess, RoleError};

use super::logged;
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "host.add",
        "Creates a role of the database for a host, and returns its address and password. The role is limited to the sessions of that host.",
        Audience::Programs,
        Needs::Rule,
        add,
    )
}

async fn add(hub: Arc<Hub>, caller: Admitted, params: AddParams) -> Result<AddResult, Error> {
    let AddParams { host, renew } = params;
    let Some(fleet) = hub.store().fleet() else {
        return Err(Error::invalid(
            "host",
            "this hub stores its state in a file, which it shares with no other host",
        ));
    };
    let (admission, status) = if renew { (Admission::Renewed, "renewed") } else { (Admission::New, "added") };
    fleet.roles().check(&host, admission).await.map_err(role_error)?;
    // Before the role exists: a role without an entry would be worse than an entry without a role.
    hub.commit(vec![logged(&host, status, &caller)]).await.map_err(store_error)?;
    let HostAccess { url, password, is_local } =
        fleet.roles().admit(&host, admission).await.map_err(role_error)?;
    Ok(AddResult::Ok { host, url, password, local: is_local })
}

fn role_error(error: RoleError) -> Error {
    match error {
        RoleError::Store(error) => store_error(error),
        RoleError::NotOwner | RoleError::CannotCreateRoles(_) => {
            Error::new(ErrorKind::Forbidden, error.to_string())
        }
        RoleError::Exists(_)
        | RoleError::IsOwner(_)
        | RoleError::WasUsed(_)
        | RoleError::NotAdded(_)
        | RoleError::TooLong(_) => Error::invalid("host", &error),
    }
}
