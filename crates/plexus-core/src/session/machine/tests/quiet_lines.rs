//! Lines that cause no commit of their own.

use std::time::Duration;

use plexus_protocol::claudecode::PolicyName;
use plexus_store::Change;
use serde_json::{Value, json};

use super::fixtures::{bash, tool_result};
use super::harness::{Harness, Setup};

fn working() -> Harness {
    Setup::policy(PolicyName::AllowAll).working()
}

/// Claude Code repeats the hub's answer to a callback.
fn echo(text: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": "g-t1", "response": {"reason": text}}})
}

fn cost(total: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": "plexus-cost-t1",
        "response": {"text": format!("Total cost: ${total}")}}})
}

/// The number of commits since the last call, and the last stored offset.
fn commits(harness: &mut Harness) -> (usize, Option<u64>) {
    let offsets: Vec<u64> = harness
        .stored
        .drain(..)
        .filter_map(|change| if let Change::JournalOffset(_, offset) = change { Some(offset) } else { None })
        .collect();
    (offsets.len(), offsets.last().copied())
}

#[test]
fn an_echo_is_covered_by_the_next_commit() {
    let mut harness = working();
    harness.line(bash("t1", "ls"));
    let (_, before) = commits(&mut harness);
    harness.line(echo("allowed"));
    assert_eq!(commits(&mut harness), (0, None));
    harness.line(tool_result("t1"));
    let (number, after) = commits(&mut harness);
    assert_eq!(number, 1);
    assert!(after > before, "{after:?} includes the echo after {before:?}");
}

#[test]
fn the_cost_is_stored_with_the_next_commit() {
    let mut harness = working();
    harness.line(bash("t1", "ls"));
    harness.line(tool_result("t1"));
    commits(&mut harness);
    harness.line(cost("0.25"));
    assert_eq!(commits(&mut harness), (0, None));
    harness.line(echo("between"));
    harness.line(bash("t2", "ls"));
    let progress = |change: &Change| {
        if let Change::Progress(_, _, progress) = change { progress["running_cost"].as_f64() } else { None }
    };
    assert_eq!(harness.stored.iter().find_map(progress), Some(0.25));
    commits(&mut harness);
    harness.line(tool_result("t2"));
    assert_eq!(harness.stored.iter().find_map(progress), None, "it is stored once");
}

#[test]
fn the_cost_is_stored_soon_without_another_commit() {
    let mut harness = working();
    harness.line(bash("t1", "ls"));
    harness.line(tool_result("t1"));
    harness.line(cost("0.25"));
    harness.stored.clear();
    harness.wait(Duration::from_secs(1));
    let progress = |change: &Change| {
        if let Change::Progress(_, _, progress) = change { progress["running_cost"].as_f64() } else { None }
    };
    assert_eq!(harness.stored.iter().filter_map(progress).collect::<Vec<_>>(), [0.25]);
}

#[test]
fn an_echo_is_stored_after_a_while_without_another_commit() {
    let mut harness = working();
    harness.line(bash("t1", "ls"));
    let (_, before) = commits(&mut harness);
    harness.line(echo("allowed"));
    harness.wait(Duration::from_secs(3));
    let (number, after) = commits(&mut harness);
    assert_eq!(number, 1);
    assert!(after > before, "{after:?} includes the echo after {before:?}");
    harness.wait(Duration::from_secs(3));
    assert_eq!(commits(&mut harness), (0, None), "nothing is left");
}

#[test]
fn a_long_series_of_quiet_lines_is_stored_now_and_then() {
    let mut harness = working();
    commits(&mut harness);
    for _ in 0..100 {
        harness.line(echo(&"x".repeat(4 * 1024)));
    }
    let (number, _) = commits(&mut harness);
    assert!((4..10).contains(&number), "{number} commits for 400 KiB");
}
