//! Converts stored rows into the views that callers see: derives statuses, truncates long texts and escapes misleading
//! characters.

use std::collections::BTreeSet;

use plexus_protocol::arbor::Position;
use plexus_protocol::claudecode::{SessionView, Status};
use plexus_protocol::worktree::WorktreeView;
use plexus_protocol::{
    Approval, ApprovalKind, Attention, MAX_TEXT_BYTES, NumberedEvent, Object, shorten, visible,
};
use plexus_store::{ApprovalRow, EventRow, SessionWithState, StoreError, TurnStatus};
use serde_json::Value;

use crate::budget_requests;
use crate::callers::access::Reader;
use crate::callers::names::Paths;
use crate::current_action::current_action;
use crate::processes::keepers::Keepers;
use crate::project_ref::project_of;
use crate::session::{cost_so_far, trouble_of, waits_for_budget};
use crate::tree::VisibleSession;

/// An approval as a caller sees it, with the path of its session.
pub(crate) async fn approval(
    row: ApprovalRow,
    paths: &mut Paths<'_>,
    max_bytes: usize,
) -> Result<Approval, StoreError> {
    let session_path = Some(paths.of_approval(&row).await?);
    Ok(Approval { session_path, ..truncated(row, max_bytes) })
}

/// An approval in a list. For an agent it is shorter, because agents pay for every byte: without the risk marks, the text before the call
/// and the digest, which `loopback.get` returns. An answer needs the digest only if the input was shown truncated.
pub(crate) async fn listed_approval(
    row: ApprovalRow,
    paths: &mut Paths<'_>,
    max_bytes: usize,
    reader: Reader,
) -> Result<Approval, StoreError> {
    let approval = approval(row, paths, max_bytes).await?;
    Ok(match reader {
        Reader::Person => approval,
        Reader::Agent => Approval { said: None, risks: None, digest: None, ..approval },
    })
}

/// A list of approvals as a caller sees it.
pub(crate) async fn approvals(
    rows: impl IntoIterator<Item = ApprovalRow>,
    mut paths: Paths<'_>,
    max_bytes: usize,
    reader: Reader,
) -> Result<Vec<Approval>, StoreError> {
    let mut shown = Vec::new();
    for row in rows {
        shown.push(listed_approval(row, &mut paths, max_bytes, reader).await?);
    }
    Ok(shown)
}

/// An approval with each field truncated at `max_bytes`. A truncated approval has no digest.
fn truncated(row: ApprovalRow, max_bytes: usize) -> Approval {
    let mut approval = row.approval;
    let mut input = Value::Object(std::mem::take(&mut approval.input));
    approval.truncated = shorten(&mut input, max_bytes);
    if let Value::Object(input) = input {
        approval.input = input;
    }
    if approval.truncated {
        approval.digest = None;
    }
    let texts = [
        Some(&mut approval.tool_name),
        approval.reason.as_mut(),
        approval.blocked_path.as_mut(),
        approval.said.as_mut(),
    ];
    for text in texts.into_iter().flatten() {
        if let Some(clean) = visible(text) {
            *text = clean;
        }
    }
    if let Some(suggestions) = approval.suggestions.as_mut() {
        shorten(suggestions, max_bytes);
    }
    approval
}

/// An event as callers see it.
pub(crate) fn event(row: &EventRow, max_bytes: usize) -> NumberedEvent {
    shortened_event(stored_event(row), max_bytes)
}

/// An event as it is stored.
pub(crate) fn stored_event(row: &EventRow) -> NumberedEvent {
    NumberedEvent { seq: row.seq, event: row.event.value(), at: row.at, truncated: false }
}

/// An event with texts of at most `max_bytes`, and without misleading characters.
pub(crate) fn shortened_event(mut event: NumberedEvent, max_bytes: usize) -> NumberedEvent {
    event.truncated = shorten(&mut event.event, max_bytes);
    event
}

/// The status of a session, from its latest turn and its open approvals.
pub(crate) fn status(turn: Option<TurnStatus>, open: &[ApprovalKind]) -> Status {
    match turn {
        _ if !open.is_empty() => Status::AwaitingPermission,
        None => Status::Idle,
        Some(TurnStatus::Running) => Status::Running,
        Some(TurnStatus::Complete) => Status::Complete,
        Some(TurnStatus::Failed) => Status::Failed,
        Some(TurnStatus::Interrupted) => Status::Interrupted,
    }
}

/// The reasons why an agent cannot continue, from the status and progress of its turn and from its open approvals.
pub(crate) fn attention(
    turn: Option<(TurnStatus, &Value)>,
    open: impl Iterator<Item = ApprovalKind>,
) -> Vec<Attention> {
    let asked = open.map(Attention::from);
    let running = turn.filter(|(status, _)| *status == TurnStatus::Running);
    let trouble = running.and_then(|(_, progress)| trouble_of(progress));
    let waits = running.filter(|(_, progress)| waits_for_budget(progress)).map(|_| Attention::Budget);
    asked.chain(waits).chain(trouble).collect::<BTreeSet<_>>().into_iter().collect()
}

/// A session as `get` and `list` show it.
pub(crate) fn session_view(seen: VisibleSession, keepers: &Keepers) -> SessionView {
    let current_action = current_action(&seen.session);
    let VisibleSession { session, depth, path, tree } = seen;
    let SessionWithState { row: session, turn, open, budget, last_event_at, calls: _ } = session;
    let project = project_of(&session.config);
    let last_activity_at = last_event_at
        .or_else(|| turn.as_ref().map(|turn| turn.started_at))
        .map_or(session.created_at, |at| at.max(session.created_at));
    let kinds: Vec<ApprovalKind> = open.iter().map(|open| open.kind).collect();
    let running = turn.as_ref().filter(|turn| turn.status == TurnStatus::Running);
    let turn_cost_usd = running.and_then(|turn| cost_so_far(&turn.progress));
    let (is, progress) = (turn.as_ref().map(|turn| turn.status), turn.as_ref().map(|turn| &turn.progress));
    let mut metadata = session.config.metadata.map(Value::Object);
    if let Some(metadata) = metadata.as_mut() {
        shorten(metadata, MAX_TEXT_BYTES);
    }
    SessionView {
        id: session.id,
        name: session.name,
        path,
        host: session.host,
        title: session.title,
        status: status(is, &kinds),
        attention: attention(is.zip(progress), kinds.into_iter()),
        current_action,
        last_activity_at,
        turn: session.latest_turn,
        working_dir: session.config.working_dir,
        project,
        worktree: session.config.worktree.map(|worktree| WorktreeView {
            path: worktree.path,
            branch: worktree.branch,
            base: None,
            changes: None,
            base_branch: None,
            state: None,
            error: None,
        }),
        model: session.config.model,
        channel: session.config.channel,
        loopback_enabled: session.config.loopback_enabled,
        policy: session.config.policy,
        // A child that reports another mode has either changed it or been stopped.
        permission_mode: session.config.permission_mode.as_str().to_owned(),
        hub_tools: session.config.hub_tools,
        answers_to: session.answers_to,
        depth,
        pending_approvals: open.len() as u64,
        cost_usd: session.cost_usd,
        turn_cost_usd,
        tree,
        budget: budget_requests::view(&budget),
        head: Position { tree_id: session.tree, node_id: session.head },
        approval_timeout_secs: session.config.approval_timeout_secs,
        escalate_after_secs: session.config.escalate_after_secs,
        wake: session.config.wake,
        pid: keepers.of(session.id),
        wall: None,
        wall_missing: None,
        sandbox: None,
        loads: None,
        resumed_from: session.config.resumed_from,
        created_at: session.created_at,
        archived_at: session.archived_at,
        metadata: metadata.and_then(|metadata| match metadata {
            Value::Object(object) => Some(object),
            _ => None::<Object>,
        }),
    }
}
