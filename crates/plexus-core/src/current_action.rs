//! What a session does now, from the state that `list` reads anyway: its turn, its open approvals and its unfinished calls.

use plexus_protocol::claudecode::{CurrentAction, RunningCall};
use plexus_protocol::visible;
use plexus_store::{OpenCall, SessionWithState, TurnStatus, UnfinishedCall};

use crate::session::has_read_prompt;

/// How many calls are shown.
const SHOWN_CALLS: usize = 3;

/// The current action; `None` if the session neither works nor waits for an answer.
pub(crate) fn current_action(session: &SessionWithState) -> Option<CurrentAction> {
    let SessionWithState { turn, open, calls, .. } = session;
    if let [oldest, others @ ..] = open.as_slice() {
        return Some(CurrentAction::Approval {
            kind: oldest.kind,
            call: asked_call(oldest, calls),
            asked_of: oldest.asked_of.clone(),
            more: others.len() as u64,
        });
    }
    let turn = turn.as_ref().filter(|turn| turn.status == TurnStatus::Running)?;
    if !calls.is_empty() {
        let latest = calls.iter().take(SHOWN_CALLS).rev();
        return Some(CurrentAction::Tools {
            calls: latest.map(|call| shown(&call.tool_name, &call.summary)).collect(),
            more: calls.len().saturating_sub(SHOWN_CALLS) as u64,
        });
    }
    Some(if has_read_prompt(&turn.progress) { CurrentAction::Thinking } else { CurrentAction::Starting })
}

/// The call of an approval. The gate stored its summary, unless the call came from a process outside the hub.
fn asked_call(open: &OpenCall, calls: &[UnfinishedCall]) -> RunningCall {
    let seen = calls.iter().find(|call| call.tool_use_id == open.tool_use_id);
    shown(&open.tool_name, seen.map_or("", |call| &call.summary))
}

fn shown(tool_name: &str, summary: &str) -> RunningCall {
    let mut tool_name = visible(tool_name).unwrap_or_else(|| tool_name.to_owned());
    tool_name.truncate(tool_name.floor_char_boundary(200));
    RunningCall { tool_name, summary: summary.to_owned() }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{ApprovalKind, AskedOf};
    use plexus_store::TurnState;
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::session_row;

    fn session(
        status: Option<TurnStatus>,
        progress: Value,
        open: &[&str],
        calls: &[&str],
    ) -> SessionWithState {
        SessionWithState {
            row: session_row("a"),
            turn: status.map(|status| TurnState { status, progress, started_at: 0 }),
            open: open
                .iter()
                .map(|id| OpenCall {
                    kind: ApprovalKind::Tool,
                    tool_name: "Bash".to_owned(),
                    tool_use_id: (*id).to_owned(),
                    asked_of: AskedOf::Operator,
                })
                .collect(),
            calls: calls
                .iter()
                .map(|id| UnfinishedCall {
                    tool_use_id: (*id).to_owned(),
                    tool_name: format!("Tool-{id}"),
                    summary: format!("run {id}"),
                })
                .collect(),
            budget: Vec::new(),
            last_event_at: None,
        }
    }

    #[test]
    fn the_action_follows_from_the_turn_its_calls_and_its_open_approvals() {
        let running = Some(TurnStatus::Running);
        let read = json!({"acknowledged": true});
        let call = |id: &str| RunningCall { tool_name: format!("Tool-{id}"), summary: format!("run {id}") };
        for (session, action) in [
            (session(None, Value::Null, &[], &[]), None),
            (session(Some(TurnStatus::Complete), read.clone(), &[], &[]), None),
            (session(Some(TurnStatus::Interrupted), read.clone(), &[], &["1"]), None),
            (session(running, Value::Null, &[], &[]), Some(CurrentAction::Starting)),
            (session(running, read.clone(), &[], &[]), Some(CurrentAction::Thinking)),
            (
                session(running, read.clone(), &[], &["2", "1"]),
                Some(CurrentAction::Tools { calls: vec![call("1"), call("2")], more: 0 }),
            ),
            (
                session(running, read.clone(), &[], &["5", "4", "3", "2", "1"]),
                Some(CurrentAction::Tools { calls: vec![call("3"), call("4"), call("5")], more: 2 }),
            ),
            (
                session(running, read.clone(), &["1", "2"], &["3", "2", "1"]),
                Some(CurrentAction::Approval {
                    kind: ApprovalKind::Tool,
                    call: RunningCall { tool_name: "Bash".to_owned(), summary: "run 1".to_owned() },
                    asked_of: AskedOf::Operator,
                    more: 1,
                }),
            ),
            (
                session(None, Value::Null, &["outside"], &[]),
                Some(CurrentAction::Approval {
                    kind: ApprovalKind::Tool,
                    call: RunningCall { tool_name: "Bash".to_owned(), summary: String::new() },
                    asked_of: AskedOf::Operator,
                    more: 0,
                }),
            ),
        ] {
            assert_eq!(current_action(&session), action);
        }
    }
}
