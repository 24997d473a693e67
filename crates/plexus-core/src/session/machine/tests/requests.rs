//! Approval requests on the control channel, and the limits on them.

use plexus_protocol::ApprovalStatus;
use plexus_protocol::claudecode::PolicyName;
use serde_json::json;

use super::fixtures::{allow, ask, bash, tool_result};
use super::harness::{Harness, Setup};
use crate::limits::Limits;
use crate::lineage::Lineage;

fn asking(command: &str) -> Harness {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    harness.line(bash("t", command));
    harness.take_log();
    harness
}

#[test]
fn a_new_request_is_stored_and_not_answered() {
    let mut harness = asking("ls");
    harness.line(ask("t", "ls"));
    harness.expect(&["store ask about t"]);
    let approval = &harness.asked("t").approval;
    assert_eq!((approval.status, approval.cwd.as_str()), (ApprovalStatus::Pending, "/w"));
    assert_eq!((approval.created_at, approval.expires_at), (1_000_000, None));
}

#[test]
fn an_approval_expires_at_the_timeout_of_its_session() {
    let mut setup = Setup::policy(PolicyName::AskAll);
    setup.row.config.approval_timeout_secs = Some(30);
    let mut harness = setup.working();
    harness.line(bash("t", "ls"));
    harness.line(ask("t", "ls"));
    assert_eq!(harness.asked("t").approval.expires_at, Some(1_000_030));
}

#[test]
fn a_second_request_for_the_same_call_is_denied() {
    let mut harness = asking("ls");
    harness.line(ask("t", "ls"));
    harness.take_log();
    let mut again = ask("t", "ls");
    again["request_id"] = json!("again");
    harness.line(again);
    harness.expect_sent(&["again: deny"]);
    assert_eq!(harness.machine.approvals.len(), 1);
}

#[test]
fn a_request_with_another_input_than_before_is_denied_and_recorded() {
    let mut harness = asking("ls");
    harness.line(ask("t", "ls"));
    harness.take_log();
    let mut other = ask("t", "rm x");
    other["request_id"] = json!("other");
    harness.line(other);
    harness.expect(&["send other: deny", "store system ask_mismatch"]);
}

#[test]
fn an_answer_of_the_gate_is_repeated_for_the_same_input_only() {
    for (policy, at_gate, asked, expected) in [
        (PolicyName::AllowAll, "ls", "ls", &["send a-t: allow"][..]),
        (PolicyName::AllowAll, "ls", "rm x", &["store ask about t"]),
        (PolicyName::OwnCourse, "ls", "ls", &["store ask about t"]),
    ] {
        let mut harness = Setup::policy(policy).working();
        harness.line(bash("t", at_gate));
        harness.take_log();
        harness.line(ask("t", asked));
        harness.expect(expected);
    }
}

#[test]
fn a_call_that_the_gate_denied_stays_denied() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    // A session whose ancestors are unknown may run nothing.
    harness.machine.lineage = Lineage::default();
    harness.line(bash("t", "ls"));
    harness.take_log();
    harness.line(ask("t", "ls"));
    harness.expect(&["send a-t: deny"]);
}

#[test]
fn a_request_that_requires_a_person_needs_approval_even_if_the_gate_allowed_it() {
    for (field, value) in
        [("matched_ask_rule", json!("Bash(ls:*)")), ("decision_reason_type", json!("safetyCheck"))]
    {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        harness.line(bash("t", "ls"));
        harness.take_log();
        let mut request = ask("t", "ls");
        request["request"][field] = value;
        harness.line(request);
        harness.expect(&["store ask about t"]);
        assert!(harness.asked("t").approval.beyond_rules);
    }
}

#[test]
fn a_request_beyond_a_limit_is_denied_and_the_call_must_not_run() {
    let roomy = Limits::default();
    for (name, limits) in [
        ("open_approvals_per_session", Limits { open_approvals_per_session: 1, ..roomy }),
        ("asks_per_minute", Limits { asks_per_minute: 1, ..roomy }),
        ("open_approvals", Limits { open_approvals: 1, ..roomy }),
        ("open_approvals_mb", Limits { open_approvals_bytes: 1, ..roomy }),
    ] {
        let mut setup = Setup::policy(PolicyName::AskAll);
        setup.limits = limits;
        let mut harness = setup.working();
        for id in ["first", "second"] {
            harness.line(bash(id, "ls"));
            harness.line(ask(id, "ls"));
        }
        let log = harness.take_log();
        assert!(log.contains(&"store ask about first".to_owned()), "{name}: {log:?}");
        let denied = ["send a-second: deny".to_owned(), "store system ask_denied".to_owned()];
        assert_eq!(log[log.len() - 2..], denied, "{name}");
        harness.line(tool_result("second"));
        assert_eq!(harness.take_log().first().map(String::as_str), Some("kill"), "{name}");
    }
}

#[test]
fn a_resolved_approval_no_longer_counts_against_the_limit() {
    let mut setup = Setup::policy(PolicyName::AskAll);
    setup.limits.open_approvals_per_session = 1;
    let mut harness = setup.working();
    harness.line(bash("first", "ls"));
    harness.line(ask("first", "ls"));
    harness.resolve("first", ApprovalStatus::Allowed, allow());
    harness.line(bash("second", "ls"));
    harness.take_log();
    harness.line(ask("second", "ls"));
    harness.expect(&["store ask about second"]);
}

#[test]
fn a_withdrawn_request_withdraws_its_approval() {
    let mut harness = asking("ls");
    harness.line(ask("t", "ls"));
    harness.take_log();
    harness.line(json!({"type": "control_cancel_request", "request_id": "a-t"}));
    harness.expect(&["store Withdrawn if pending, free t"]);
    assert!(harness.machine.approvals.is_empty());
}

#[test]
fn a_request_has_its_risks_and_what_the_agent_said_before_it() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    let content = json!([
        {"type": "text", "text": "It is in the way."},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "rm -rf build"}},
    ]);
    harness
        .line(json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": content}}));
    harness.line(bash("t", "rm -rf build"));
    harness.line(ask("t", "rm -rf build"));
    let approval = harness.asked("t").approval.clone();
    assert_eq!(approval.said.as_deref(), Some("It is in the way."));
    let reason = "`rm -rf build` deletes directories with their contents";
    assert_eq!(json!(approval.risks), json!([{"kind": "recursive_delete", "reason": reason}]));
    // An empty list means that no rule matched; a missing list means that the call was not analysed.
    harness.line(bash("u", "ls"));
    harness.line(ask("u", "ls"));
    assert_eq!(harness.asked("u").approval.risks, Some(Vec::new()));
}
