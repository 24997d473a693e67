//! The confirmation after an answer: the answer, or, if the approval was already resolved, who resolved it.

use plexus_protocol::loopback::Answered;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Decider, Decision, Object};
use serde_json::Value;

use crate::cli_words;
use crate::terminal::{one_line, tool_line};

/// The maximum width of a repeated input.
const WIDTH: usize = 80;

/// The outcome of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The answer was accepted.
    Done(String),
    /// The approval was already resolved.
    TooLate(String),
    /// The hub rejected the answer. The approval stays open.
    Refused(String),
}

/// The outcome of the answer `given` to an approval.
pub(crate) fn of(approval: &Approval, given: &Value, answered: &Answered) -> Outcome {
    match answered {
        Answered::Ok { settled: resolved, .. } => {
            let also = match resolved.len() {
                0 => String::new(),
                count => format!("; the rule resolved {count} more"),
            };
            Outcome::Done(format!("{}{also}", confirmed(approval, given)))
        }
        Answered::AlreadyResolved { status, decision, .. } => {
            let first = ended(approval, *status, decision.as_ref().map(Resolution::of).unwrap_or_default());
            Outcome::TooLate(format!("{first}. Your answer came too late and did not count."))
        }
        Answered::Error { message, .. } => {
            Outcome::Refused(one_line(&cli_words::message(message, &Value::Null), 400))
        }
    }
}

/// "Allowed: Bash npm test (edited, worker)".
pub(crate) fn confirmed(approval: &Approval, given: &Value) -> String {
    let name = approval.session_label();
    if given["approve"] != true {
        return format!("Denied: {} ({name})", what(approval, &approval.input));
    }
    let rule =
        given["remember"]["rule"].as_str().map(|rule| format!("; added the rule {}", one_line(rule, 200)));
    let mode = given["mode"].as_str().map(|mode| format!("; set the permission mode {}", one_line(mode, 40)));
    let rule = rule.unwrap_or_default() + &mode.unwrap_or_default();
    match (given["answers"].as_object(), given["updated_input"].as_object()) {
        (Some(answers), _) => {
            let answers: Vec<&str> = answers.values().filter_map(Value::as_str).collect();
            format!("Answered: {} ({name})", one_line(&answers.join("; "), WIDTH))
        }
        (None, Some(input)) if approval.kind == ApprovalKind::Budget => {
            let more = input.get("more").map(Value::to_string).unwrap_or_default();
            format!("Allowed: {} more ({name})", one_line(&more, WIDTH))
        }
        (None, Some(input)) => format!("Allowed: {} (edited, {name}){rule}", what(approval, input)),
        (None, None) => format!("Allowed: {} ({name}){rule}", what(approval, &approval.input)),
    }
}

/// How an approval was resolved.
pub(crate) fn ending(approval: &Approval) -> String {
    let decision = approval.decision.as_ref().map(Resolution::of).unwrap_or_default();
    ended(approval, approval.status, decision)
}

/// A decision: who made it, and the edited input, if any.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Resolution<'a> {
    pub(crate) by: Option<&'a Decider>,
    pub(crate) updated_input: Option<&'a Object>,
}

impl<'a> Resolution<'a> {
    fn of(decision: &'a Decision) -> Self {
        Self { by: Some(&decision.by), updated_input: decision.updated_input.as_ref() }
    }
}

/// How an approval was resolved, by whom and with which input: "Denied by parent:boss: Bash npm test (worker)".
pub(crate) fn ended(approval: &Approval, status: ApprovalStatus, decision: Resolution<'_>) -> String {
    let Resolution { by, updated_input } = decision;
    let edited = updated_input.filter(|_| {
        status == ApprovalStatus::Allowed && matches!(approval.kind, ApprovalKind::Tool | ApprovalKind::Plan)
    });
    let how = match status {
        ApprovalStatus::Pending => "Open",
        ApprovalStatus::Allowed if approval.kind == ApprovalKind::Question => "Answered",
        ApprovalStatus::Allowed => "Allowed",
        ApprovalStatus::Denied => "Denied",
        ApprovalStatus::Expired => "Expired",
        ApprovalStatus::Withdrawn => "Withdrawn",
    };
    let by = match by {
        None | Some(Decider::Hub) => String::new(),
        Some(Decider::Operator) => " by you".to_owned(),
        Some(by) => format!(" by {}", one_line(&by.key(), WIDTH)),
    };
    let mark = if edited.is_some() { "edited, " } else { "" };
    let input = edited.unwrap_or(&approval.input);
    format!("{how}{by}: {} ({mark}{})", what(approval, input), approval.session_label())
}

fn what(approval: &Approval, input: &Object) -> String {
    let tool = one_line(&approval.tool_name, 40);
    match approval.kind {
        ApprovalKind::Budget => "the budget request".to_owned(),
        ApprovalKind::Question => "the question".to_owned(),
        ApprovalKind::Plan => "the plan".to_owned(),
        ApprovalKind::Tool => format!("{tool} {}", tool_line(&approval.tool_name, input, WIDTH)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn approval(kind: &str) -> Approval {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        serde_json::from_value(json!({
            "id": id, "session_id": id, "session_name": "a", "kind": kind, "tool_name": "Bash", "tool_use_id": "t",
            "input": {"command": "npm test"}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
        }))
        .unwrap()
    }

    #[test]
    fn the_confirmation_of_an_answer_names_the_call() {
        let tool = approval("tool");
        let text_for = |given: Value| confirmed(&tool, &given);
        assert_eq!(text_for(json!({"approve": true})), "Allowed: Bash npm test (a)");
        assert_eq!(text_for(json!({"approve": false})), "Denied: Bash npm test (a)");
        let edited = json!({"approve": true, "updated_input": {"command": "npm ci"}});
        assert_eq!(text_for(edited), "Allowed: Bash npm ci (edited, a)");
        let always = json!({"approve": true, "remember": {"rule": "Bash(npm test)"}});
        assert_eq!(text_for(always), "Allowed: Bash npm test (a); added the rule Bash(npm test)");
        let more = json!({"approve": true, "updated_input": {"more": 2}});
        assert_eq!(confirmed(&approval("budget"), &more), "Allowed: 2 more (a)");
    }

    #[test]
    fn the_first_decider_is_named() {
        let by = Decider::Parent { id: "boss".to_owned() };
        let decision = Resolution { by: Some(&by), updated_input: None };
        assert_eq!(
            ended(&approval("tool"), ApprovalStatus::Denied, decision),
            "Denied by parent:boss: Bash npm test (a)"
        );
    }

    #[test]
    fn the_input_that_ran_is_named() {
        let edited = json!({"command": "npm ci"});
        let decision = Resolution { by: Some(&Decider::Operator), updated_input: edited.as_object() };
        let text_for = |kind, status| ended(&approval(kind), status, decision);
        assert_eq!(text_for("tool", ApprovalStatus::Allowed), "Allowed by you: Bash npm ci (edited, a)");
        assert_eq!(text_for("tool", ApprovalStatus::Denied), "Denied by you: Bash npm test (a)");
        assert_eq!(text_for("plan", ApprovalStatus::Allowed), "Allowed by you: the plan (edited, a)");
        assert_eq!(text_for("question", ApprovalStatus::Allowed), "Answered by you: the question (a)");
    }
}
