//! Changes of mode, model and trusted project.

use plexus_protocol::ErrorKind;
use plexus_protocol::claudecode::PermissionMode;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::harness::{Harness, Setup};
use crate::session::Command;
use crate::session::machine::Input;

type Changed = oneshot::Receiver<Result<(), plexus_protocol::Error>>;

fn set_mode(harness: &mut Harness, mode: PermissionMode) -> Changed {
    let (reply, answer) = oneshot::channel();
    harness.command(Command::SetMode { mode, reply });
    answer
}

/// The child's answer to the only open control request.
fn answer(harness: &mut Harness, body: Value) {
    let id = harness.machine.requests.keys().next().expect("an open request").clone();
    let mut response = body;
    response["request_id"] = json!(id);
    harness.line(json!({"type": "control_response", "response": response}));
}

#[test]
fn a_looser_mode_is_durable_before_the_child_learns_of_it() {
    let mut harness = Setup::default().working();
    let mut changed = set_mode(&mut harness, PermissionMode::AcceptEdits);
    harness.expect(&["store mode acceptEdits", "send set_permission_mode"]);
    changed.try_recv().expect_err("the child has not answered");
    answer(&mut harness, json!({"subtype": "success", "response": {}}));
    assert!(changed.try_recv().unwrap().is_ok());
}

#[test]
fn a_stricter_mode_is_durable_when_the_child_has_accepted_it() {
    let mut setup = Setup::default();
    setup.row.config.permission_mode = PermissionMode::AcceptEdits;
    let mut harness = setup.working();
    let mut changed = set_mode(&mut harness, PermissionMode::Default);
    harness.expect(&["send set_permission_mode"]);
    answer(&mut harness, json!({"subtype": "success", "response": {}}));
    harness.expect(&["store mode default", "reply"]);
    assert!(changed.try_recv().unwrap().is_ok());
}

#[test]
fn a_refused_mode_is_restored() {
    let mut harness = Setup::default().working();
    let mut changed = set_mode(&mut harness, PermissionMode::AcceptEdits);
    harness.take_log();
    answer(&mut harness, json!({"subtype": "error", "error": "not now"}));
    harness.expect(&["store mode default", "reply"]);
    assert_eq!(changed.try_recv().unwrap().unwrap_err().kind, ErrorKind::AgentRefused);
}

#[test]
fn a_mode_that_cannot_be_stored_is_not_sent() {
    let mut harness = Setup::default().working();
    harness.store_fails = true;
    let mut changed = set_mode(&mut harness, PermissionMode::AcceptEdits);
    harness.expect(&["reply"]);
    assert_eq!(changed.try_recv().unwrap().unwrap_err().kind, ErrorKind::StoreUnavailable);
    assert_eq!(harness.machine.row.config.permission_mode, PermissionMode::Default);
}

#[test]
fn settings_that_change_while_a_process_starts_are_sent_before_the_prompt() {
    let mut harness = Setup::default().build();
    harness.prompt("go").unwrap();
    let mut changed = set_mode(&mut harness, PermissionMode::AcceptEdits);
    assert!(changed.try_recv().unwrap().is_ok());
    let (reply, _answer) = oneshot::channel();
    harness.command(Command::SetModel { model: Some("other".to_owned()), reply });
    harness.take_log();
    harness.initialized();
    harness.expect_sent(&["set_permission_mode", "set_model", "prompt \"go\""]);
}

#[test]
fn a_setting_without_a_process_is_stored_at_once() {
    let mut harness = Setup::default().build();
    let mut changed = set_mode(&mut harness, PermissionMode::Plan);
    harness.expect(&["store mode plan", "reply"]);
    assert!(changed.try_recv().unwrap().is_ok());
}

#[test]
fn the_end_of_the_process_applies_requested_settings_to_the_next() {
    let mut setup = Setup::default();
    setup.row.config.permission_mode = PermissionMode::AcceptEdits;
    let mut harness = setup.working();
    let mut changed = set_mode(&mut harness, PermissionMode::Default);
    harness.take_log();
    harness.step(Input::ProcessEnded);
    assert!(changed.try_recv().unwrap().is_ok());
    assert_eq!(harness.machine.row.config.permission_mode, PermissionMode::Default);
}

#[test]
fn a_mode_that_the_child_was_asked_for_may_be_reported_before_its_answer() {
    let mut setup = Setup::default();
    setup.row.config.permission_mode = PermissionMode::AcceptEdits;
    let mut harness = setup.working();
    drop(set_mode(&mut harness, PermissionMode::Default));
    harness.take_log();
    harness.line(json!({"type": "system", "subtype": "init", "permissionMode": "default"}));
    assert!(!harness.take_log().contains(&"kill".to_owned()));
}

#[test]
fn the_trusted_project_is_stored_with_its_rules_or_not_at_all() {
    let mut harness = Setup::default().working();
    harness.store_fails = true;
    let (reply, mut answer) = oneshot::channel();
    harness.command(Command::Trust { project: None, changes: Vec::new(), reply });
    assert!(answer.try_recv().unwrap().is_err());
    harness.store_fails = false;
    let (reply, mut answer) = oneshot::channel();
    harness.command(Command::Trust { project: None, changes: Vec::new(), reply });
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(harness.take_log(), ["reply", "store mode default", "reply"]);
}
