//! The cost of a running turn: when the child is asked for it, and what its answer changes.

use plexus_protocol::claudecode::PolicyName;
use serde_json::{Value, json};

use super::fixtures::tool_result;
use super::harness::Setup;
use crate::session::machine::cost_so_far;

fn answer(tool_use_id: &str, text: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": format!("plexus-cost-{tool_use_id}"), "response": {"text": text}}})
}

#[test]
fn a_child_is_asked_for_its_cost_after_each_tool_one_request_at_a_time() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.take_log();
    harness.line(tool_result("t1"));
    harness.expect_sent(&["get_session_cost"]);
    harness.line(tool_result("t2"));
    harness.expect_sent(&[]);
    harness.line(answer("t1", "Total cost:            $0.0184\nTotal duration (API):  2s"));
    let turn = harness.machine.turn.as_ref().expect("a turn");
    let stored = serde_json::to_value(&turn.progress).expect("its text");
    assert_eq!(cost_so_far(&stored), Some(0.0184));
    harness.line(tool_result("t3"));
    harness.expect_sent(&["get_session_cost"]);
}

#[test]
fn a_child_that_cannot_report_its_cost_is_not_asked_again() {
    let refused = json!({"type": "control_response", "response":
        {"subtype": "error", "request_id": "plexus-cost-t1", "error": "unsupported"}});
    for unreadable in [refused, answer("t1", "a new form"), answer("t1", "")] {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        harness.line(tool_result("t1"));
        harness.take_log();
        harness.line(unreadable);
        harness.line(tool_result("t2"));
        harness.expect_sent(&[]);
    }
}
