//! Turns: how they start, which process gets their prompt, how they end, and how a session is woken.

use std::time::Duration;

use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{ApprovalStatus, ErrorKind};
use plexus_store::Change;
use serde_json::json;
use tokio::sync::oneshot;

use super::fixtures::{ask, bash, turn_result};
use super::harness::{Harness, Setup};
use crate::attachments::Attachments;
use crate::session::machine::Input;
use crate::session::{Command, Prompt, PromptFormat};

#[test]
fn a_prompt_is_durable_then_a_process_starts_then_the_prompt_is_sent() {
    let mut harness = Setup::default().build();
    assert_eq!(harness.prompt("go").unwrap(), 1);
    harness.expect(&[
        "store check budget, check slot, begin turn 1, start",
        "reply",
        "store begin run 1 (Starting)",
        "start run 1",
        "store process",
        "release",
        "send initialize",
    ]);
    harness.initialized();
    harness.expect(&["store bind to run 1", "send prompt \"go\""]);
}

#[test]
fn a_second_prompt_is_refused_while_a_turn_runs() {
    let mut harness = Setup::default().working();
    assert_eq!(harness.prompt("more").unwrap_err().kind, ErrorKind::TurnInProgress);
    assert_eq!(harness.machine.row.latest_turn, 1);
}

#[test]
fn a_prompt_that_cannot_be_stored_changes_nothing() {
    let mut harness = Setup::default().build();
    let head = harness.machine.row.head;
    harness.store_fails = true;
    assert_eq!(harness.prompt("go").unwrap_err().kind, ErrorKind::StoreUnavailable);
    assert!(harness.machine.turn.is_none());
    assert_eq!((harness.machine.row.latest_turn, harness.machine.row.head), (0, head));
    harness.store_fails = false;
    assert_eq!(harness.prompt("go").unwrap(), 1);
}

#[test]
fn a_process_that_cannot_be_started_fails_the_turn() {
    let mut harness = Setup::default().build();
    let message = "files of the project have changed".to_owned();
    harness.start_failure = Some(super::super::StartFailure { reason: "project_changed", message });
    assert_eq!(harness.prompt("go").unwrap(), 1);
    harness.expect(&[
        "store check budget, check slot, begin turn 1, start",
        "reply",
        "store end turn 1: Failed",
    ]);
}

#[test]
fn the_next_turn_uses_the_same_process() {
    let mut harness = Setup::default().working();
    harness.line(turn_result("done"));
    harness.expect(&["store end turn 1: Complete"]);
    harness.prompt("again").unwrap();
    harness.expect(&[
        "store check budget, check slot, begin turn 2, start",
        "reply",
        "store bind to run 1",
        "send prompt \"again\"",
    ]);
}

#[test]
fn a_turn_of_a_child_that_reports_idle_ends_when_it_is_idle() {
    let mut harness = Setup::default().working();
    let state = |state: &str| json!({"type": "system", "subtype": "session_state_changed", "state": state});
    harness.line(state("running"));
    harness.line(turn_result("first"));
    harness.expect(&[]);
    harness.line(turn_result("second"));
    harness.expect(&["store system result"]);
    harness.line(state("idle"));
    harness.expect(&["store end turn 1: Complete"]);
}

#[test]
fn a_turn_waits_for_its_background_tasks() {
    let mut harness = Setup::default().working();
    let task = |subtype: &str| json!({"type": "system", "subtype": subtype, "task_id": "b", "task_type": "local_agent"});
    harness.line(json!({"type": "system", "subtype": "session_state_changed", "state": "running"}));
    harness.line(task("task_started"));
    harness.line(turn_result("first"));
    let idle = json!({"type": "system", "subtype": "session_state_changed", "state": "idle"});
    harness.line(idle.clone());
    assert!(harness.machine.turn.is_some());
    harness.line(task("task_notification"));
    harness.line(idle);
    assert!(harness.machine.turn.is_none());
}

/// The child confirms that it read the prompt of the running turn.
fn acknowledge(harness: &mut Harness) {
    let uuid = harness.stored.iter().rev().find_map(|change| match change {
        Change::BindTurn { prompt_uuid, .. } => Some(prompt_uuid.clone()),
        _ => None,
    });
    harness.line(
        json!({"type": "user", "uuid": uuid, "isReplay": true, "message": {"role": "user", "content": "go"}}),
    );
}

#[test]
fn an_unread_prompt_goes_to_the_next_process_once() {
    let mut harness = Setup::default().working();
    harness.step(Input::ProcessEnded);
    let log = harness.take_log();
    assert!(log.contains(&"start run 2".to_owned()), "{log:?}");
    harness.initialized();
    harness.expect(&["store bind to run 2", "send prompt \"go\""]);
    harness.step(Input::ProcessEnded);
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("end turn 1: Failed")), "only once: {log:?}");
}

#[test]
fn a_prompt_that_was_read_goes_to_no_other_process() {
    let mut harness = Setup::default().working();
    acknowledge(&mut harness);
    harness.take_log();
    harness.exit = Some(plexus_agent::Exit { code: Some(3), signal: None, error: None, at: 0 });
    harness.step(Input::ProcessEnded);
    harness.expect(&["collect exit: ended", "store end run 1, end turn 1: Failed", "clean up"]);
}

#[test]
fn a_message_is_durable_before_it_is_sent_and_is_withdrawn_by_an_interrupt() {
    let mut harness = Setup::default().working();
    let (reply, mut sent) = oneshot::channel();
    harness.command(Command::Send { text: "also".to_owned(), attachments: Attachments::default(), reply });
    assert_eq!(sent.try_recv().unwrap().unwrap(), 1);
    harness.expect(&["store system sent", "send prompt \"also\"", "reply"]);
    let (reply, mut interrupted) = oneshot::channel();
    harness.command(Command::Interrupt { reply });
    harness.expect(&["send cancel_async_message", "send interrupt"]);
    interrupted.try_recv().expect_err("the turn is not over");
    harness.line(turn_result("early"));
    assert!(interrupted.try_recv().is_ok());
}

#[test]
fn a_conversation_is_compacted_in_a_process_of_its_own_that_denies_every_call() {
    let mut harness = Setup::default().working();
    harness.line(turn_result("done"));
    harness.take_log();
    let (reply, mut started) = oneshot::channel();
    let prompt = Prompt {
        text: "/compact keep it".to_owned(),
        format: PromptFormat::Compact,
        attachments: Attachments::default(),
    };
    harness.command(Command::Prompt { prompt, reply });
    assert_eq!(started.try_recv().unwrap().unwrap(), 2);
    let log = harness.take_log();
    let at = |what: &str| log.iter().position(|step| step.contains(what));
    assert!(at("stop process").is_some() && at("stop process") < at("start"), "{log:?}");
    assert_eq!(harness.machine.slash_commands(), plexus_agent::SlashCommands::BuiltIn);
    harness.initialized();
    assert!(harness.take_log().iter().any(|step| step.contains("send prompt \"/compact keep it\"")));
    harness.line(bash("t", "true"));
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("deny")), "{log:?}");
    harness.line(turn_result("Not enough messages to compact."));
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("end turn 2: Failed")), "nothing was compacted: {log:?}");
    harness.wait(Duration::ZERO);
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("close stdin")), "the process ends with its turn: {log:?}");
}

#[test]
fn a_message_outside_a_turn_is_refused() {
    let mut harness = Setup::default().build();
    let (reply, mut sent) = oneshot::channel();
    harness.command(Command::Send { text: "also".to_owned(), attachments: Attachments::default(), reply });
    assert_eq!(sent.try_recv().unwrap().unwrap_err().kind, ErrorKind::NoTurn);
}

#[test]
fn a_child_that_ignores_an_interrupt_is_ended() {
    let mut harness = Setup::default().working();
    let (reply, mut interrupted) = oneshot::channel();
    harness.command(Command::Interrupt { reply });
    harness.take_log();
    harness.wait(Duration::from_secs(10));
    harness.expect(&[
        "stop process",
        "collect exit: stopped, the turn was interrupted",
        "store end run 1, end turn 1: Interrupted",
        "clean up",
        "reply",
    ]);
    assert!(interrupted.try_recv().is_ok());
}

/// A session that is woken, with one approval that waits for it.
fn woken(number: u64) -> Harness {
    let mut asking = Setup::policy(PolicyName::AskAll).working();
    asking.line(bash("t", "ls"));
    asking.line(ask("t", "ls"));
    let mut row = asking.approval_row("t", ApprovalStatus::Pending, None);
    row.number = number;
    let mut setup = Setup::default();
    setup.row.config.wake = true;
    let mut harness = setup.build();
    harness.open_approvals = vec![row];
    harness
}

#[test]
fn a_session_is_woken_once_for_each_new_approval() {
    let mut harness = woken(5);
    harness.command(Command::Wake);
    let log = harness.take_log();
    assert!(log[0].starts_with("store check budget, check slot, begin turn 1"), "{log:?}");
    harness.initialized();
    harness.line(turn_result("looked"));
    harness.take_log();
    harness.command(Command::Wake);
    harness.expect(&[]);
    harness.open_approvals[0].number = 6;
    harness.command(Command::Wake);
    let log = harness.take_log();
    assert!(log[0].starts_with("store check budget, check slot, begin turn 2"), "{log:?}");
}

#[test]
fn a_session_is_woken_when_its_turn_is_over_and_not_after_an_interrupt() {
    for (interrupted, expected) in [(false, 2), (true, 1)] {
        let mut harness = woken(5);
        let open = std::mem::take(&mut harness.open_approvals);
        harness.prompt("first").unwrap();
        harness.initialized();
        harness.open_approvals = open;
        harness.command(Command::Wake);
        assert_eq!(harness.machine.row.latest_turn, 1, "one turn at a time");
        if interrupted {
            harness.command(Command::Interrupt { reply: oneshot::channel().0 });
            harness.wait(Duration::from_secs(10));
        } else {
            harness.line(turn_result("done"));
        }
        assert_eq!(harness.machine.row.latest_turn, expected);
    }
}

#[test]
fn a_wake_that_cannot_be_stored_is_retried_and_commands_are_handled_meanwhile() {
    let mut harness = woken(5);
    harness.store_fails = true;
    harness.command(Command::Wake);
    assert_eq!(harness.machine.row.latest_turn, 0);
    let (reply, mut stopped) = oneshot::channel();
    harness.command(Command::Stop { why: "enough".to_owned(), reply });
    assert!(stopped.try_recv().is_ok());
    harness.store_fails = false;
    harness.wait(Duration::from_secs(1));
    assert_eq!(harness.machine.row.latest_turn, 1);
}
