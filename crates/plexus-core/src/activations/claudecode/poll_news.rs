//! Selects from a page of events what is new to an agent, which pays for every byte of a result. A poll with `from_seq` returns the rest.

use plexus_protocol::claudecode::PollNews;
use plexus_protocol::{Approval, Decider, NewEvent, NumberedEvent, Object};
use serde_json::{Value, json};

use super::poll::EventPage;
use crate::view;

/// Messages of Claude Code about its own operation: its configuration, and which prompt it has started.
const INTERNAL: [&str; 2] = ["init", "command_lifecycle"];

/// What a page means for an agent that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The agent knows everything in it.
    Nothing,
    /// Calls have started. Each is followed by its approval or its result, so the agent can wait for that.
    Progress,
    /// Something else is new.
    News,
}

/// What these events mean for this agent.
pub(super) fn weight(events: &[NumberedEvent], agent: &Decider) -> Weight {
    let weights = events.iter().map(|event| match &event.event {
        event if is_known(event, agent) => Weight::Nothing,
        event if event["type"] == "tool_use" => Weight::Progress,
        _ => Weight::News,
    });
    weights.max().unwrap_or(Weight::Nothing)
}

/// The part of a page that this agent does not know yet.
pub(super) fn news(page: EventPage, agent: &Decider) -> PollNews {
    let EventPage { status, turn, events, max_bytes, attention, pending_approvals, .. } = page;
    let is_shown = |event: &NumberedEvent| {
        // An open approval is shown itself, and a resolved one has a later event.
        !is_known(&event.event, agent) && event.event["type"] != "approval_requested"
    };
    let events = events.into_iter().filter(is_shown);
    PollNews::Ok {
        status,
        turn,
        events: events.map(|event| new_event(event, &pending_approvals, max_bytes)).collect(),
        attention,
        pending_approvals,
        has_more: page.read_position < page.total_events,
    }
}

/// Whether an event reports an answer of this agent, or an internal message of Claude Code.
fn is_known(event: &Value, agent: &Decider) -> bool {
    // A person can use the operator's token and other tokens, too.
    let is_one_agent = matches!(agent, Decider::Session { .. } | Decider::Parent { .. });
    match event["type"].as_str() {
        Some("approval_resolved") => is_one_agent && event["by"] == json!(agent),
        Some("system") => event["subtype"].as_str().is_some_and(|subtype| INTERNAL.contains(&subtype)),
        _ => false,
    }
}

/// An event without the parts that repeat another part of the result or an earlier event.
fn new_event(mut numbered: NumberedEvent, open: &[Approval], max_bytes: usize) -> NewEvent {
    if let Some(event) = numbered.event.as_object_mut() {
        match event.get("type").and_then(Value::as_str) {
            Some("tool_use") if open.iter().any(|approval| is_about(approval, event)) => {
                event.remove("input");
            }
            Some("tool_result") => {
                // The change of a file, which the input of the call describes.
                event.remove("patch");
                if event.get("is_error") == Some(&Value::Bool(false)) {
                    event.remove("is_error");
                }
            }
            _ => {}
        }
    }
    let shown = view::shortened_event(numbered, max_bytes);
    NewEvent { seq: shown.seq, event: shown.event, truncated: shown.truncated }
}

/// Whether an approval has been requested for this call.
fn is_about(approval: &Approval, call: &Object) -> bool {
    call.get("tool_use_id").and_then(Value::as_str) == Some(approval.tool_use_id.as_str())
}

#[cfg(test)]
mod tests {
    use plexus_protocol::SessionId;
    use plexus_protocol::claudecode::Status;

    use super::*;

    fn agent() -> Decider {
        Decider::Parent { id: "planner".to_owned() }
    }

    fn row(event: Value) -> NumberedEvent {
        NumberedEvent { seq: 0, event, at: 7, truncated: false }
    }

    fn resolved_by(decider: &Decider) -> Value {
        json!({"type": "approval_resolved", "status": "denied", "by": decider})
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "tool_name": "Bash", "tool_use_id": id, "input": {"command": "make"}})
    }

    fn approval_for(tool_use_id: &str) -> Approval {
        let approval = json!({
            "id": "8a2f6a43-5a63-4cf5-9a4c-3f0d0a1f7a11", "session_id": SessionId::random(), "session_name": "child",
            "kind": "tool", "tool_name": "Bash", "tool_use_id": tool_use_id, "input": {"command": "make"},
            "status": "pending", "created_at": 7, "asked_of": {"kind": "operator"}, "cwd": "/work",
        });
        serde_json::from_value(approval).unwrap()
    }

    fn news_of(events: Vec<Value>, pending_approvals: Vec<Approval>) -> Value {
        let page = EventPage {
            status: Status::Running,
            turn: 1,
            total_events: events.len() as u64,
            read_position: events.len() as u64,
            events: events.into_iter().map(row).collect(),
            max_bytes: 100,
            attention: Vec::new(),
            pending_approvals,
        };
        json!(news(page, &agent()))
    }

    #[test]
    fn the_answers_of_other_deciders_are_news_and_the_agents_own_are_not() {
        assert_eq!(weight(&[row(resolved_by(&agent()))], &agent()), Weight::Nothing);
        assert_eq!(weight(&[row(resolved_by(&Decider::Hub))], &agent()), Weight::News);
        let news = news_of(vec![resolved_by(&agent()), resolved_by(&Decider::Hub)], Vec::new());
        assert_eq!(news["events"], json!([{"seq": 0, "event": resolved_by(&Decider::Hub)}]));
    }

    #[test]
    fn an_agent_with_the_operators_token_learns_what_the_operator_decided() {
        let decided = row(resolved_by(&Decider::Operator));
        assert_eq!(weight(&[decided], &Decider::Operator), Weight::News);
    }

    #[test]
    fn internal_messages_of_claude_code_are_no_news_and_other_messages_are() {
        let expected =
            [("init", Weight::Nothing), ("command_lifecycle", Weight::Nothing), ("held", Weight::News)];
        for (subtype, expected) in expected {
            let event = row(json!({"type": "system", "subtype": subtype, "data": {}}));
            assert_eq!(weight(&[event], &agent()), expected, "{subtype}");
        }
    }

    #[test]
    fn a_requested_approval_is_news_and_is_shown_once_with_the_whole_input() {
        let requested = json!({"type": "approval_requested", "tool_use_id": "a"});
        assert_eq!(
            weight(&[row(call("a"))], &agent()),
            Weight::Progress,
            "its approval or its result follows"
        );
        assert_eq!(weight(&[row(call("a")), row(requested.clone())], &agent()), Weight::News);
        let news = news_of(vec![call("a"), requested, call("b")], vec![approval_for("a")]);
        let waiting = json!({"type": "tool_use", "tool_name": "Bash", "tool_use_id": "a"});
        assert_eq!(
            news["events"],
            json!([{"seq": 0, "event": waiting}, {"seq": 0, "event": call("b")}]),
            "only a call with its approval beside it has no input"
        );
        assert_eq!(news["pending_approvals"][0]["input"], json!({"command": "make"}));
    }

    #[test]
    fn defaults_and_the_patch_of_a_result_are_left_out_and_a_failure_is_not() {
        let result = |more: Value| {
            let mut result = json!({"type": "tool_result", "tool_use_id": "a", "output": "ok"});
            result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            result
        };
        let good =
            result(json!({"is_error": false, "patch": [{"old_start": 1, "new_start": 1, "lines": []}]}));
        let failed = result(json!({"is_error": true}));
        let news = news_of(vec![good, failed.clone()], Vec::new());
        let shown = json!([{"seq": 0, "event": result(json!({}))}, {"seq": 0, "event": failed}]);
        assert_eq!(news, json!({"type": "ok", "status": "running", "turn": 1, "events": shown}));
    }
}
