//! `arbor.delete`: deletes the contents of a conversation tree that no existing session uses. The audit log stays.

use std::sync::Arc;

use plexus_protocol::arbor::{DeleteParams, DeleteResult};
use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::{Error, ErrorKind, Object};
use plexus_store::{Change, Removable};

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::conversations::find_tree;
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::Audience;
use plexus_book::now;

pub(super) fn method() -> Method {
    let doc =
        "Deletes the messages of a conversation tree that no existing session uses. The audit log stays.";
    Method::new("arbor.delete", doc, Audience::Programs, Needs::Rule, delete).repeatable()
}

async fn delete(hub: Arc<Hub>, caller: Admitted, params: DeleteParams) -> Result<DeleteResult, Error> {
    let tree = find_tree(hub.store(), &caller, params.tree_id).await?;
    if let Some(session) = tree.sessions.iter().find(|session| !session.deleted) {
        let message =
            format!("session `{}` uses this conversation tree; delete that session first", session.name);
        return Err(Error::new(ErrorKind::TreeInUse, message).with("session_id", session.id.to_string()));
    }
    let record = AuditEntry {
        session_id: tree.sessions.first().map(|session| session.id),
        session_name: tree.sessions.first().map(|session| session.name.clone()),
        detail: Some(Object::from_iter([("tree_id".to_owned(), tree.id.to_string().into())])),
        ..AuditEntry::of_caller(now(), AuditKind::Session, "conversation_deleted", &caller.principal)
    };
    hub.commit(vec![Change::Audit(Box::new(record))]).await.map_err(store_error)?;
    let mut removed = 0;
    // Deletes in small steps, so that other commits, such as decisions, do not wait for the whole deletion.
    loop {
        let step = hub.commit(vec![Change::Remove(Removable::Tree(tree.id))]).await.map_err(store_error)?;
        if step.removed == 0 {
            return Ok(DeleteResult::Ok { tree_id: tree.id, removed });
        }
        removed += step.removed as u64;
    }
}
