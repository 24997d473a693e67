//! How answers are stored and delivered to the child.

use plexus_protocol::claudecode::PermissionMode;
use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{ApprovalStatus, Decision};
use serde_json::json;

use super::fixtures::{allow, ask, bash, deny, object, tool_result, turn_result};
use super::harness::{Harness, Setup};
use crate::session::Command;

fn asked() -> Harness {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    harness.line(bash("t", "ls"));
    harness.line(ask("t", "ls"));
    harness.take_log();
    harness
}

#[test]
fn each_outcome_reaches_the_child_once() {
    for (status, decision, expected) in [
        (ApprovalStatus::Allowed, allow(), &["send a-t: allow", "store delivered"][..]),
        (ApprovalStatus::Denied, deny("no"), &["send a-t: deny", "store delivered"]),
        (ApprovalStatus::Expired, deny("late"), &["send a-t: deny", "store delivered"]),
        (ApprovalStatus::Withdrawn, Decision::withdrawal("over"), &[]),
    ] {
        let mut harness = asked();
        harness.resolve("t", status, decision.clone());
        harness.expect(expected);
        harness.resolve("t", status, decision);
        assert!(!harness.take_log().iter().any(|step| step.starts_with("send")), "{status:?} twice");
    }
}

#[test]
fn an_edited_input_is_the_one_that_runs() {
    let mut harness = asked();
    let decision = Decision { updated_input: Some(object(json!({"command": "ls -l"}))), ..allow() };
    let row = harness.approval_row("t", ApprovalStatus::Allowed, Some(decision));
    let result = crate::reply_to_child::permission_result(&row).to_value();
    assert_eq!(result["updatedInput"], json!({"command": "ls -l"}));
    harness.command(Command::Resolved(Box::new(row)));
    harness.expect_sent(&["a-t: allow"]);
}

#[test]
fn the_message_of_an_allow_is_sent_as_a_separate_message() {
    let mut harness = asked();
    let decision = Decision { message: Some("only once".to_owned()), ..allow() };
    harness.resolve("t", ApprovalStatus::Allowed, decision);
    harness.expect(&[
        "send a-t: allow",
        "store delivered",
        "store system sent",
        "send prompt \"Note on the allowed Bash call: only once\"",
    ]);
}

#[test]
fn an_approved_plan_changes_the_mode_before_the_child_learns_of_it() {
    let mut harness = asked();
    let decision = Decision { mode: Some(PermissionMode::AcceptEdits), ..allow() };
    harness.resolve("t", ApprovalStatus::Allowed, decision);
    harness.expect(&["store mode acceptEdits", "send a-t: allow", "store delivered"]);
    harness.line(json!({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"}));
    assert!(!harness.take_log().contains(&"kill".to_owned()), "the child may report this mode");
}

#[test]
fn a_denial_that_interrupts_ends_the_turn_as_interrupted() {
    let mut harness = asked();
    let decision = Decision { interrupt: true, ..deny("stop") };
    harness.resolve("t", ApprovalStatus::Denied, decision);
    harness.expect(&["send a-t: deny", "store delivered"]);
    let mut aborted = turn_result("");
    aborted["subtype"] = json!("error_during_execution");
    aborted["is_error"] = json!(true);
    harness.line(aborted);
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("end turn 1: Interrupted")), "{log:?}");
}

#[test]
fn a_queued_answer_is_applied_before_the_next_line() {
    let mut harness = asked();
    let row = harness.approval_row("t", ApprovalStatus::Allowed, Some(allow()));
    harness.machine.answer_arrived(&row);
    harness.line(tool_result("t"));
    assert!(!harness.take_log().contains(&"kill".to_owned()));
}

#[test]
fn an_answer_for_an_ended_process_is_not_sent() {
    let mut harness = asked();
    let row = harness.approval_row("t", ApprovalStatus::Allowed, Some(allow()));
    harness.exit = Some(plexus_agent::Exit { code: Some(1), signal: None, error: None, at: 0 });
    harness.step(super::super::Input::ProcessEnded);
    harness.take_log();
    harness.command(Command::Resolved(Box::new(row)));
    harness.expect(&[]);
}

#[test]
fn the_end_of_the_turn_withdraws_open_approvals() {
    let mut harness = asked();
    harness.line(turn_result("done"));
    let log = harness.take_log();
    assert!(log[0].starts_with("store Withdrawn if pending, free t"), "{log:?}");
    assert!(harness.machine.approvals.is_empty() && harness.machine.calls.is_empty());
}
