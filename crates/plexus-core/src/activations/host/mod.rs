//! `host`: the machines whose hubs share the store.

mod accept_rollback;
mod add;
mod drain;
mod list;
mod lose;
mod remove;
mod undrain;

use plexus_book::now;
use plexus_protocol::HostName;
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_store::Change;
use serde_json::json;

use crate::Hub;
use crate::callers::access::Admitted;
use crate::hub::Method;
use crate::method::Activation;

/// The change that logs what a caller has done with the role of a host.
fn logged(host: &HostName, status: &str, caller: &Admitted) -> Change {
    let entry = AuditEntry::of_caller(now(), AuditKind::Host, status, &caller.principal);
    let detail = json!({"host": host}).as_object().cloned();
    Change::Audit(Box::new(AuditEntry { detail, ..entry }))
}

/// The activation.
pub struct Host;

impl Activation<Hub> for Host {
    fn methods(&self) -> Vec<Method> {
        vec![
            list::method(),
            add::method(),
            drain::method(),
            undrain::method(),
            lose::method(),
            remove::method(),
            accept_rollback::method(),
        ]
    }
}
