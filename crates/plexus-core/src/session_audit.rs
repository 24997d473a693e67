//! Acts of authority over a session, as the record has them: who did what to which session, and by what right. What
//! the store records by itself (decisions, the gate, tokens, sessions made) is not here.

use plexus_protocol::Error;
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_store::{Change, SessionRow};
use serde_json::Value;

use crate::access::Admitted;
use crate::errors::store_error;
use plexus_book::Commits;
use plexus_book::now;

/// An act, to be committed with what it does.
pub(crate) fn change(caller: &Admitted, act: &str, session: &SessionRow, detail: Value) -> Change {
    Change::Audit(Box::new(AuditEntry {
        session_id: Some(session.id),
        session_name: Some(session.name.clone()),
        detail: detail.as_object().filter(|detail| !detail.is_empty()).cloned(),
        ..AuditEntry::of_caller(now(), AuditKind::Session, act, &caller.principal)
    }))
}

/// Records an act that is no commit of its own, before it is done.
pub(crate) async fn record(
    commits: &Commits,
    caller: &Admitted,
    act: &str,
    session: &SessionRow,
    detail: Value,
) -> Result<(), Error> {
    commits.commit(vec![change(caller, act, session, detail)]).await.map(drop).map_err(store_error)
}
