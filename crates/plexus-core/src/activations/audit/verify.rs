//! `audit.verify`: verifies the hash chain of the audit log.

use std::sync::Arc;

use plexus_protocol::audit::{AuditHead, VerifyResult};
use plexus_protocol::claudecode::NoParams;
use plexus_protocol::{Error, ErrorKind};
use plexus_store::{AuditCheck, Role};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;

/// The number of entries that one step verifies. Other readers use the store between steps.
const PAGE: u64 = 1000;

pub(super) fn method() -> Method {
    Method::new(
        "audit.verify",
        "Verifies the hash chain of the audit log.",
        Audience::Programs,
        Needs::Rule,
        verify,
    )
    .repeatable()
}

async fn verify(hub: Arc<Hub>, _caller: Admitted, _params: NoParams) -> Result<VerifyResult, Error> {
    if hub.store().fleet().is_some_and(|fleet| fleet.roles().role() == Role::Runner) {
        let message = "the role of this hub reads only the entries of its own host: verify the log on a hub whose role owns the tables";
        return Err(Error::new(ErrorKind::Forbidden, message));
    }
    let mut head = AuditHead::start();
    loop {
        let upto = head.number + PAGE;
        match hub.store().check_audit(head, upto).await.map_err(store_error)? {
            AuditCheck::Fits(next) if next.number == upto => head = next,
            AuditCheck::Fits(head) => return Ok(VerifyResult::Ok { rows: head.number, head }),
            AuditCheck::Broken { number, why } => return Ok(VerifyResult::Broken { number, why }),
        }
    }
}
