//! Audit log entries for acts of authority over a session: the caller, the act, the session and the right. The store
//! itself adds the entries for decisions, the gate, tokens and created sessions.

use plexus_protocol::Error;
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_store::{Change, SessionRow};
use serde_json::Value;

use crate::callers::access::Admitted;
use crate::errors::store_error;
use plexus_book::Commits;
use plexus_book::now;

/// The entry for an act, to be committed together with the act.
pub(crate) fn change(caller: &Admitted, act: &str, session: &SessionRow, detail: Value) -> Change {
    Change::Audit(Box::new(AuditEntry {
        session_id: Some(session.id),
        session_name: Some(session.name.clone()),
        detail: detail.as_object().filter(|detail| !detail.is_empty()).cloned(),
        ..AuditEntry::of_caller(now(), AuditKind::Session, act, &caller.principal)
    }))
}

/// Commits the entry for an act that has no commit of its own. Call it before the act.
pub(crate) async fn record(
    commits: &Commits,
    caller: &Admitted,
    act: &str,
    session: &SessionRow,
    detail: Value,
) -> Result<(), Error> {
    commits.commit(vec![change(caller, act, session, detail)]).await.map(drop).map_err(store_error)
}
