//! `claudecode.delete`: stops a session and its descendants, frees their names, and keeps the audit log. It removes
//! worktrees whose work is committed and merged.

use std::sync::Arc;

use plexus_protocol::claudecode::{DeleteResult, SessionParams};
use plexus_protocol::worktree::{LeftBelow, LeftWorktree};
use plexus_protocol::{Error, ErrorKind};
use plexus_store::{Change, OnBehalf, SessionRow};
use serde_json::json;

use super::stop::stop_tree;
use crate::Hub;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use plexus_book::kill_point;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.delete",
        "Stops and deletes a session and all below it. Their names become free; the audit log and worktrees \
         with unmerged work stay.",
        Audience::Agents,
        Needs::Act,
        delete,
    )
    .on_host_of(Subject::Session, IfUnreachable::ExecuteHereIfLost)
}

async fn delete(hub: Arc<Hub>, caller: Admitted, params: SessionParams) -> Result<DeleteResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let below = stop_tree(&hub, &caller, &session, "the session was deleted").await?;
    let below = delete_on_other_hosts(&hub, &caller, &session, below).await?;
    // The task completes even if the caller disconnects.
    let task =
        hub.tasks().spawn(OnBehalf::current().perform(delete_all(Arc::clone(&hub), caller, session, below)));
    task.await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Internal,
            "internal error: the session was not deleted; see the log of the hub",
        ))
    })
}

/// Has the sessions below that run on other hosts deleted there, with everything below them. Returns those that are left.
async fn delete_on_other_hosts(
    hub: &Arc<Hub>,
    caller: &Admitted,
    session: &SessionRow,
    below: Vec<SessionRow>,
) -> Result<Vec<SessionRow>, Error> {
    let lost = hub.lost_hosts().await?;
    // The sessions of a lost host are deleted here: only the store has them.
    let elsewhere = |row: &&SessionRow| {
        !hub.is_own(row.host.as_ref()) && !row.host.as_ref().is_some_and(|host| lost.contains(host))
    };
    if !below.iter().any(|row| elsewhere(&row)) {
        return Ok(below);
    }
    for row in below.iter().filter(elsewhere) {
        let Some(host) = &row.host else { continue };
        let deleted = hub.call_on(host, caller, "claudecode.delete", json!({"session_id": row.id})).await;
        // One that is below another of them is already deleted.
        deleted.map(drop).or_else(|error| match error.kind {
            ErrorKind::SessionNotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    access::descendants(hub.store(), session.id).await
}

async fn delete_all(
    hub: Arc<Hub>,
    caller: Admitted,
    session: SessionRow,
    below: Vec<SessionRow>,
) -> Result<DeleteResult, Error> {
    let all: Vec<&SessionRow> = below.iter().chain([&session]).collect();
    let is_own = |row: &&&SessionRow| hub.is_own(row.host.as_ref());
    for row in all.iter().filter(is_own) {
        if let Some(worktree) = &row.config.worktree {
            hub.worktrees().note_deletion(row.id, worktree).await;
        }
    }
    kill_point("delete", "noted");
    let changes = all.iter().flat_map(|row| {
        [Change::DeleteSession(row.id), session_audit::change(&caller, "deleted", row, json!({}))]
    });
    hub.commit(changes.collect()).await.map_err(store_error)?;
    kill_point("delete", "committed");
    for row in all.iter().filter(is_own) {
        hub.session(row.id).retire();
        hub.parts().reservations.release_session(row.id);
    }
    let left = futures::future::join_all(below.iter().map(|row| delete_worktree_below(&hub, row))).await;
    let worktree = delete_worktree(&hub, &session).await;
    Ok(DeleteResult::Ok { session_id: session.id, worktree, below: left.into_iter().flatten().collect() })
}

async fn delete_worktree(hub: &Hub, row: &SessionRow) -> Option<LeftWorktree> {
    // The files of a lost host cannot be reached.
    let worktree = row.config.worktree.clone().filter(|_| hub.is_own(row.host.as_ref()))?;
    Some(hub.worktrees().delete_or_keep(row.id, worktree).await)
}

async fn delete_worktree_below(hub: &Hub, row: &SessionRow) -> Option<LeftBelow> {
    let worktree = delete_worktree(hub, row).await?;
    Some(LeftBelow { session_id: row.id, session_name: row.name.clone(), worktree })
}
