//! The cost of a running turn: when the child is asked for it, and what its answer changes.

use plexus_protocol::claudecode::PolicyName;
use serde_json::{Value, json};

use super::fixtures::{bash, tool_result};
use super::harness::Setup;
use crate::session::machine::cost_so_far;

fn answer(tool_use_id: &str, text: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": format!("plexus-cost-{tool_use_id}"), "response": {"text": text}}})
}

#[test]
fn a_child_is_asked_for_its_cost_at_the_gate_one_request_at_a_time() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.line(bash("t1", "ls"));
    harness.line(bash("t2", "ls"));
    assert_eq!(harness.cost_requests, ["send g-t1: allow"]);
    harness.line(answer("t1", "Total cost:            $0.0184\nTotal duration (API):  2s"));
    let turn = harness.machine.turn.as_ref().expect("a turn");
    let stored = serde_json::to_value(&turn.progress).expect("its text");
    assert_eq!(cost_so_far(&stored), Some(0.0184));
    harness.line(bash("t3", "ls"));
    assert_eq!(harness.cost_requests, ["send g-t1: allow", "send g-t3: allow"]);
}

#[test]
fn a_child_that_cannot_report_its_cost_is_not_asked_again() {
    let refused = json!({"type": "control_response", "response":
        {"subtype": "error", "request_id": "plexus-cost-t1", "error": "unsupported"}});
    for unreadable in [refused, answer("t1", "a new form"), answer("t1", "")] {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        harness.line(bash("t1", "ls"));
        harness.line(unreadable);
        harness.line(bash("t2", "ls"));
        assert_eq!(harness.cost_requests.len(), 1);
    }
}

#[test]
fn without_a_gate_a_child_is_asked_for_its_cost_after_each_tool() {
    let mut setup = Setup::default();
    setup.row.config.loopback_enabled = false;
    let mut harness = setup.working();
    harness.line(tool_result("t1"));
    assert_eq!(harness.cost_requests.len(), 1);
}
