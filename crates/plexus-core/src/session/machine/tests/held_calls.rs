//! Calls and turns whose budget is exhausted.

use std::time::Duration;

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{ApprovalId, ApprovalKind, ApprovalStatus};
use plexus_store::{ApprovalRow, RunKey};
use serde_json::{Value, json};

use super::fixtures::{allow, ask, bash, budget, object, tool_result, turn_result};
use super::harness::{Harness, Setup};
use crate::session::Command;

/// A harness whose store holds every call.
fn holding() -> (Harness, ApprovalId) {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    let approval = ApprovalId::random();
    harness.holds = Some(approval);
    (harness, approval)
}

/// A budget approval in this state.
fn budget_approval(id: ApprovalId, status: ApprovalStatus) -> ApprovalRow {
    let mut asking = Setup::policy(PolicyName::AskAll).working();
    asking.line(bash("t", "ls"));
    asking.line(ask("t", "ls"));
    let mut row = asking.approval_row("t", status, None);
    row.approval.id = id;
    row.approval.kind = ApprovalKind::Budget;
    row.approval.input = object(json!({"limit": "tool_calls", "used": 5, "granted": 5}));
    row
}

#[test]
fn a_held_call_is_not_answered_and_counts_as_denied() {
    let (mut harness, _) = holding();
    harness.line(bash("t", "ls"));
    harness.expect(&["store call t: allow"]);
    harness.line(tool_result("t"));
    assert_eq!(harness.take_log().first().map(String::as_str), Some("kill"), "it must not run");
}

#[test]
fn a_request_for_a_held_call_is_denied() {
    let (mut harness, _) = holding();
    harness.line(bash("t", "ls"));
    harness.take_log();
    harness.line(ask("t", "ls"));
    harness.expect_sent(&["a-t: deny"]);
}

#[test]
fn more_budget_brings_held_calls_to_the_gate_again() {
    for status in [ApprovalStatus::Allowed, ApprovalStatus::Withdrawn] {
        let (mut harness, id) = holding();
        let row = budget_approval(id, status);
        harness.line(bash("t", "ls"));
        harness.take_log();
        harness.holds = None;
        harness.command(Command::Budget(Box::new(row)));
        harness.expect(&["store release t: allow", "send g-t: allow"]);
        harness.line(tool_result("t"));
        assert!(!harness.take_log().contains(&"kill".to_owned()), "it may run now");
    }
}

#[test]
fn held_calls_are_released_when_budgets_have_changed_and_the_answer_was_missed() {
    let (mut harness, id) = holding();
    harness.budget_approval = Some(budget_approval(id, ApprovalStatus::Pending));
    harness.line(bash("t", "ls"));
    harness.take_log();
    harness.holds = None;
    harness.command(Command::LimitsChanged);
    harness.expect(&[]);
    harness.budget_approval = Some(budget_approval(id, ApprovalStatus::Withdrawn));
    harness.command(Command::LimitsChanged);
    harness.expect(&["store release t: allow", "send g-t: allow"]);
}

#[test]
fn a_call_stays_held_while_the_budget_is_too_small() {
    let (mut harness, id) = holding();
    let row = budget_approval(id, ApprovalStatus::Allowed);
    harness.line(bash("t", "ls"));
    harness.take_log();
    harness.command(Command::Budget(Box::new(row)));
    harness.expect(&["store release t: allow"]);
    assert_eq!(harness.machine.held.len(), 1);
}

#[test]
fn no_more_budget_denies_held_calls_and_interrupts_the_turn() {
    for status in [ApprovalStatus::Denied, ApprovalStatus::Expired] {
        let (mut harness, id) = holding();
        let row = budget_approval(id, status);
        harness.line(bash("t", "ls"));
        harness.take_log();
        harness.command(Command::Budget(Box::new(row)));
        harness.expect(&["store release t: deny", "send g-t: deny", "send interrupt"]);
        let mut aborted = turn_result("");
        aborted["subtype"] = json!("error_during_execution");
        aborted["is_error"] = json!(true);
        harness.line(aborted);
        let log = harness.take_log();
        assert!(log.iter().any(|step| step.contains("end turn 1: Interrupted")), "{log:?}");
    }
}

#[test]
fn the_budget_approval_of_another_session_changes_nothing() {
    let (mut harness, id) = holding();
    let row = budget_approval(ApprovalId::random(), ApprovalStatus::Denied);
    assert_ne!(row.approval.id, id);
    harness.line(bash("t", "ls"));
    harness.take_log();
    harness.command(Command::Budget(Box::new(row)));
    harness.expect(&[]);
}

#[test]
fn the_end_of_the_turn_forgets_held_calls() {
    let (mut harness, _) = holding();
    harness.line(bash("t", "ls"));
    harness.line(turn_result("done"));
    assert!(harness.machine.held.is_empty());
}

#[test]
fn the_time_of_a_turn_is_counted_halfway_and_then_at_its_end() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    let key = RunKey { session: harness.machine.row.id, run: 1 };
    harness.budgets = vec![budget(key, 8_000)];
    harness.command(Command::LimitsChanged);
    harness.take_log();
    harness.wait(Duration::from_secs(4));
    harness.expect(&["store spend 4000 of wall_secs, ask for budget"]);
    harness.wait(Duration::from_secs(1));
    harness.line(turn_result("done"));
    let log = harness.take_log();
    assert!(log[0].contains("spend 1000 of wall_secs"), "{log:?}");
}

#[test]
fn the_clock_is_paused_while_the_turn_waits_for_an_answer() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    let key = RunKey { session: harness.machine.row.id, run: 1 };
    harness.budgets = vec![budget(key, 60_000)];
    harness.command(Command::LimitsChanged);
    harness.wait(Duration::from_secs(2));
    harness.line(bash("t", "ls"));
    harness.line(ask("t", "ls"));
    harness.wait(Duration::from_secs(1000));
    harness.resolve("t", ApprovalStatus::Allowed, allow());
    harness.line(tool_result("t"));
    harness.take_log();
    harness.wait(Duration::from_secs(3));
    harness.line(turn_result("done"));
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("spend 5000 of wall_secs")), "{log:?}");
}

#[test]
fn a_turn_without_time_waits_for_its_budget_approval() {
    let (mut harness, id) = holding();
    let row = budget_approval(id, ApprovalStatus::Denied);
    let key = RunKey { session: harness.machine.row.id, run: 1 };
    harness.budgets = vec![budget(key, 1_000)];
    harness.command(Command::LimitsChanged);
    harness.take_log();
    harness.wait(Duration::from_secs(1));
    harness.expect(&["store spend 1000 of wall_secs, ask for budget"]);
    harness.wait(Duration::from_secs(60));
    harness.expect(&[]);
    harness.command(Command::Budget(Box::new(row)));
    harness.expect(&["send interrupt"]);
}

#[test]
fn a_process_is_replaced_when_its_cost_budget_has_changed() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.line(turn_result("done"));
    harness.take_log();
    harness.prompt("same budget").unwrap();
    assert!(!harness.take_log().contains(&"stop process".to_owned()));
    harness.line(turn_result("done"));
    let session = harness.machine.row.id;
    let mut cost = budget(RunKey { session, run: 1 }, 5_000_000);
    cost.limit = BudgetLimit::CostUsd;
    harness.budgets = vec![cost];
    harness.take_log();
    harness.prompt("new budget").unwrap();
    let log = harness.take_log();
    let at = |step: &str| log.iter().position(|logged| logged.contains(step)).expect(step);
    assert!(at("stop process") < at("begin turn 3") && at("begin turn 3") < at("start run 2"), "{log:?}");
}

/// The result of a turn that reached the cost limit of its process.
fn limit_reached() -> Value {
    json!({"type": "result", "subtype": "error_max_budget_usd", "is_error": true, "errors": ["Reached maximum budget"],
           "usage": {}, "total_cost_usd": 0.02, "num_turns": 1})
}

#[test]
fn at_the_cost_limit_the_process_is_killed_and_its_later_requests_are_denied() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    let turn = harness.machine.row.latest_turn;
    harness.unread.extend([bash("u", "ls"), ask("u", "ls")]);
    harness.lines([limit_reached(), bash("t", "ls"), ask("t", "ls")]);
    let log = harness.take_log();
    let sent: Vec<&str> = log.iter().map(String::as_str).filter(|line| line.starts_with("send")).collect();
    assert_eq!(log.first().map(String::as_str), Some("kill"), "{log:#?}");
    assert_eq!(sent, ["send g-t: deny", "send a-t: deny", "send g-u: deny", "send a-u: deny"], "{log:#?}");
    assert_eq!(harness.machine.row.latest_turn, turn, "no turn starts");
    assert!(harness.machine.turn.is_none());
}
