//! Converts stored rows into the views that callers see: derives statuses, truncates long texts and escapes misleading
//! characters.

use std::collections::BTreeSet;

use plexus_protocol::arbor::Position;
use plexus_protocol::claudecode::{SessionView, Status};
use plexus_protocol::worktree::WorktreeView;
use plexus_protocol::{
    Approval, ApprovalKind, Attention, MAX_TEXT_BYTES, NumberedEvent, Object, shorten, visible,
};
use plexus_store::{ApprovalRow, EventRow, SessionWithState, TurnStatus};
use serde_json::Value;

use crate::budget_requests;
use crate::processes::keepers::Keepers;
use crate::session::{trouble_of, waits_for_budget};
use crate::tree::VisibleSession;

/// The maximum bytes of a text in a one-line summary.
const LINE_BYTES: usize = 200;

/// An approval as callers see it, each field truncated at `max_bytes`. A truncated approval has no digest.
pub(crate) fn approval(row: ApprovalRow, max_bytes: usize) -> Approval {
    let mut approval = row.approval;
    let mut input = Value::Object(std::mem::take(&mut approval.input));
    approval.truncated = shorten(&mut input, max_bytes);
    if let Value::Object(input) = input {
        approval.input = input;
    }
    if approval.truncated {
        approval.digest = None;
    }
    for text in [Some(&mut approval.tool_name), approval.reason.as_mut(), approval.blocked_path.as_mut()]
        .into_iter()
        .flatten()
    {
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
pub(crate) fn event(row: EventRow, max_bytes: usize) -> NumberedEvent {
    let mut event = row.event;
    let truncated = shorten(&mut event, max_bytes);
    NumberedEvent { seq: row.seq, event, at: row.at, truncated }
}

/// The field of an input that best describes the call.
pub(crate) fn about(input: &Object) -> Option<&str> {
    let telling = ["command", "file_path", "notebook_path", "plan", "url", "limit"];
    telling.iter().find_map(|field| input.get(*field).and_then(Value::as_str))
}

/// A one-line summary of a call.
pub(crate) fn summary(input: &Object) -> String {
    about(input).map_or_else(|| line(&Value::Object(input.clone()).to_string()), line)
}

/// The first line of a text, truncated and escaped. A trailing `…` means that more text follows.
pub(crate) fn line(text: &str) -> String {
    let text = text.trim_end();
    let mut first = Value::from(text.lines().next().unwrap_or_default());
    let more_lines = text.lines().nth(1).is_some();
    let cut = shorten(&mut first, LINE_BYTES) || more_lines;
    let first = first.as_str().unwrap_or_default();
    if cut { format!("{first}…") } else { first.to_owned() }
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
    let VisibleSession { session: SessionWithState { row: session, turn, open, budget }, depth, path, tree } =
        seen;
    let (is, progress) = (turn.as_ref().map(|turn| turn.status), turn.as_ref().map(|turn| &turn.progress));
    let mut metadata = session.config.metadata.map(Value::Object);
    if let Some(metadata) = metadata.as_mut() {
        shorten(metadata, MAX_TEXT_BYTES);
    }
    SessionView {
        id: session.id,
        name: session.name,
        path,
        status: status(is, &open),
        attention: attention(is.zip(progress), open.iter().copied()),
        turn: session.latest_turn,
        working_dir: session.config.working_dir,
        worktree: session.config.worktree.map(|worktree| WorktreeView {
            path: worktree.path,
            branch: worktree.branch,
            base: None,
            changes: None,
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
        created_at: session.created_at,
        metadata: metadata.and_then(|metadata| match metadata {
            Value::Object(object) => Some(object),
            _ => None::<Object>,
        }),
    }
}
