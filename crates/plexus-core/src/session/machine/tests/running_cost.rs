//! The cost of a running turn: when the child is asked for it, and what its answer changes.

use plexus_protocol::claudecode::PolicyName;
use serde_json::{Value, json};

use super::fixtures::{bash, tool_result};
use super::harness::{Harness, Setup};
use crate::session::machine::cost_so_far;

fn answer(tool_use_id: &str, text: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": format!("plexus-cost-{tool_use_id}"), "response": {"text": text}}})
}

/// A call that passes the gate and has a result. The log contains what was sent after the result.
fn finish_call(harness: &mut Harness, tool_use_id: &str) {
    harness.line(bash(tool_use_id, "ls"));
    harness.take_log();
    harness.line(tool_result(tool_use_id));
}

#[test]
fn a_child_is_asked_for_its_cost_after_each_tool_one_request_at_a_time() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    finish_call(&mut harness, "t1");
    harness.expect_sent(&["get_session_cost"]);
    finish_call(&mut harness, "t2");
    harness.expect_sent(&[]);
    harness.line(answer("t1", "Total cost:            $0.0184\nTotal duration (API):  2s"));
    let turn = harness.machine.turn.as_ref().expect("a turn");
    let stored = serde_json::to_value(&turn.progress).expect("its text");
    assert_eq!(cost_so_far(&stored), Some(0.0184));
    finish_call(&mut harness, "t3");
    harness.expect_sent(&["get_session_cost"]);
}

#[test]
fn a_child_that_cannot_report_its_cost_is_not_asked_again() {
    let refused = json!({"type": "control_response", "response":
        {"subtype": "error", "request_id": "plexus-cost-t1", "error": "unsupported"}});
    for unreadable in [refused, answer("t1", "a new form"), answer("t1", "")] {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        finish_call(&mut harness, "t1");
        harness.line(unreadable);
        finish_call(&mut harness, "t2");
        harness.expect_sent(&[]);
    }
}
