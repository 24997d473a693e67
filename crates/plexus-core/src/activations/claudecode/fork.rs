//! `claudecode.fork`: creates a session that shares another session's history up to a point. The fork answers to the
//! same principal as the original, so all sessions of one tree belong to one family. It inherits every restriction of
//! the original.

use std::sync::Arc;

use plexus_protocol::arbor::{Node, NodeSummary, Position};
use plexus_protocol::claudecode::{ForkAt, ForkParams, ForkResult};
use plexus_protocol::{Error, ErrorKind, NodeId, SessionId};
use plexus_store::{Change, ConversationStart, NewRule, NewSession, ResumePoint, SessionConfig, SessionRow};
use serde_json::json;

use super::create::admit;
use crate::audit::session_audit;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::{Hub, budget_requests};
use plexus_book::kill_point;

/// How many nodes to read at a time in the search for a compaction.
const COMPACTION_PAGE: u64 = 200;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.fork",
        "Creates a session that continues from a point (`at`) in the history of another; both sessions stay.",
        Audience::Agents,
        Needs::Act,
        fork,
    )
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn fork(hub: Arc<Hub>, caller: Admitted, params: ForkParams) -> Result<ForkResult, Error> {
    let original =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let point = fork_point(&hub, &original, params.at).await?;
    let head = point.id;
    // An original without nodes of its own resumes from the point where it was forked.
    let forked = hub.store().resume_points(head, 1).await.map_err(store_error)?.into_iter().next();
    if let Some(resume) = &forked {
        check_not_compacted(&hub, &original, &point, resume).await?;
    }
    let session = NewSession {
        id: SessionId::random(),
        name: params.new_name,
        answers_to: original.answers_to.clone(),
        // The worktree belongs to the original; both sessions work in it.
        config: SessionConfig { forked, worktree: None, ..original.config.clone() },
        tree: original.tree,
        head,
        start: ConversationStart::Forked,
        host: hub.store().host().cloned(),
    };
    hub.claude_version().check().await?;
    admit(&hub, &session).await?;
    let (id, head) = (session.id, Position { tree_id: session.tree, node_id: session.head });
    let rules = hub.policy().in_force.of_session(original.id).into_iter();
    let rules = rules.map(|rule| Change::CreateRule(Box::new(NewRule { session: Some(id), ..rule })));
    // The fork gets the same budget as the original, as far as its ancestors' budgets allow. A budget of an ancestor applies to both.
    let limits = hub.store().budget(original.id).await.map_err(store_error)?.into_iter();
    let own = limits.filter(|row| row.session == original.id);
    let limits = own.map(|row| (row.limit, row.granted)).collect();
    let limits = budget_requests::changes(&caller.principal, id, &session.name, limits);
    let detail = json!({"into": id, "name": session.name, "at": head.node_id});
    let mut changes = vec![Change::CreateSession(Box::new(session))];
    changes.extend(rules);
    changes.extend(limits);
    changes.push(session_audit::change(&caller, "forked", &original, detail));
    kill_point("fork", "read");
    if let Err(error) = hub.commit(changes).await {
        hub.parts().reservations.release_session(id);
        return Err(store_error(error));
    }
    kill_point("fork", "stored");
    Ok(ForkResult::Forked { id, head })
}

/// The last node that both sessions share.
async fn fork_point(hub: &Hub, session: &SessionRow, at: Option<ForkAt>) -> Result<NodeSummary, Error> {
    let store = hub.store();
    let node = match at {
        Some(ForkAt::Node(node)) => node,
        Some(ForkAt::Turn(turn)) => match end_of_turn(hub, session, turn).await? {
            Some(node) => node,
            None => {
                let message = format!("session `{}` has no finished turn {turn}", session.name);
                return Err(Error::new(ErrorKind::TurnNotFound, message).with("field", "at"));
            }
        },
        None => {
            let latest = store.turn(session.id, session.latest_turn).await.map_err(store_error)?;
            let running = latest.is_some_and(|turn| turn.ended_at.is_none());
            let finished = match running {
                true => end_of_turn(hub, session, session.latest_turn - 1).await?,
                false => Some(session.head),
            };
            finished.unwrap_or(session.beginning)
        }
    };
    // The node must be on the path of this session's conversation.
    let summary = store.node(node).await.map_err(store_error)?.map(|node| node.summary);
    let on_path = match summary {
        Some(summary) => store.path(session.head, summary.depth, 1).await.map_err(store_error)?,
        None => Vec::new(),
    };
    match on_path.into_iter().next() {
        Some(found) if found.summary.id == node => Ok(found.summary),
        _ => {
            let message = format!("the conversation of session `{}` has no node {node}", session.name);
            Err(Error::new(ErrorKind::NodeNotFound, message).with("field", "at"))
        }
    }
}

/// Rejects a point before a compaction: Claude Code no longer finds the messages there.
async fn check_not_compacted(
    hub: &Hub,
    session: &SessionRow,
    point: &NodeSummary,
    resume: &ResumePoint,
) -> Result<(), Error> {
    let mut depth = point.depth + 1;
    loop {
        let nodes = hub.store().path(session.head, depth, COMPACTION_PAGE).await.map_err(store_error)?;
        let Some(last) = nodes.last() else { return Ok(()) };
        depth = last.summary.depth + 1;
        let in_transcript = |node: &&Node| node.summary.session_id == Some(resume.session);
        if let Some(compaction) = nodes.iter().filter(in_transcript).find(|node| is_compaction(node)) {
            let turn = compaction.summary.turn.unwrap_or_default();
            let message = format!(
                "turn {turn} compacted the conversation after this point, and Claude Code can continue only from there; \
                 pass {turn} or a later turn"
            );
            return Err(Error::invalid("at", message));
        }
    }
}

fn is_compaction(node: &Node) -> bool {
    node.content.as_array().into_iter().flatten().any(|block| block["type"] == "compaction")
}

/// The last node of a finished turn. Turn 0 means the start of the conversation.
async fn end_of_turn(hub: &Hub, session: &SessionRow, turn: u64) -> Result<Option<NodeId>, Error> {
    if turn > 0 {
        let turn = hub.store().turn(session.id, turn).await.map_err(store_error)?;
        return Ok(turn.filter(|turn| turn.ended_at.is_some()).and_then(|turn| turn.head));
    }
    Ok(Some(session.beginning))
}
