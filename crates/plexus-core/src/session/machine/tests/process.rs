//! The lifecycle of a process: how it becomes ready, the modes it reports, stalls, the idle timeout and its end.

use std::time::Duration;

use plexus_protocol::claudecode::{Channel, PermissionMode, PolicyName};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::fixtures::{ask, bash, turn_result};
use super::harness::{Harness, Setup};
use crate::session::Command;
use crate::session::machine::Input;

fn response(id: &str, body: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": body}})
}

fn mcp_status(id: &str, status: &str) -> Value {
    response(id, json!({"mcpServers": [{"name": "plexus", "status": status}]}))
}

fn starting(channel: Channel) -> Harness {
    let mut setup = Setup::policy(PolicyName::AskAll);
    setup.row.config.channel = channel;
    let mut harness = setup.build();
    harness.prompt("go").unwrap();
    harness.take_log();
    harness
}

#[test]
fn a_child_over_mcp_is_ready_when_its_permission_tool_is_connected() {
    let mut harness = starting(Channel::Mcp);
    harness.line(response("plexus-initialize-1", json!({})));
    harness.expect_sent(&["mcp_status"]);
    harness.line(mcp_status("plexus-mcp-status-1", "pending"));
    harness.expect_sent(&[]);
    harness.wait(Duration::from_millis(100));
    harness.expect_sent(&["mcp_status"]);
    harness.line(mcp_status("plexus-mcp-status-x", "connected"));
    harness.expect_sent(&["prompt \"go\""]);
}

#[test]
fn each_failed_start_ends_the_process() {
    let refused = json!({"type": "control_response", "response":
        {"subtype": "error", "request_id": "plexus-initialize-1", "error": "no"}});
    for (channel, lines, reason) in [
        (Channel::Control, vec![refused], "not_initialized"),
        (
            Channel::Mcp,
            vec![response("plexus-initialize-1", json!({})), mcp_status("plexus-mcp-status-1", "failed")],
            "no_permit_tool",
        ),
        (
            Channel::Mcp,
            vec![response("plexus-initialize-1", json!({})), mcp_status("plexus-mcp-status-1", "needs-auth")],
            "no_permit_tool",
        ),
    ] {
        let mut harness = starting(channel);
        lines.into_iter().for_each(|line| harness.line(line));
        let log = harness.take_log();
        assert!(log.contains(&"kill".to_owned()), "{log:?}");
        assert!(log.contains(&format!("collect exit: failed, {reason}")), "{log:?}");
        assert!(log.last().is_some_and(|step| step == "clean up"), "no second process: {log:?}");
    }
}

#[test]
fn a_child_that_is_not_ready_in_time_is_ended() {
    for channel in [Channel::Control, Channel::Mcp] {
        let mut harness = starting(channel);
        if channel == Channel::Mcp {
            harness.line(response("plexus-initialize-1", json!({})));
        }
        harness.wait(Duration::from_secs(60));
        let log = harness.take_log();
        assert!(log.contains(&"collect exit: failed, no_answer".to_owned()), "{channel:?}: {log:?}");
    }
}

#[test]
fn a_prompt_is_sent_to_a_ready_child_only() {
    let mut harness = starting(Channel::Control);
    harness.line(json!({"type": "system", "subtype": "other"}));
    harness.line(response("something-else", json!({})));
    harness.expect_sent(&[]);
}

#[test]
fn a_process_that_is_too_old_is_stopped_before_its_first_call() {
    let init = |version: &str| json!({"type": "system", "subtype": "init", "permissionMode": "default", "claude_code_version": version});
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    // The call is read together with the version, and it would be allowed.
    harness.lines([init("2.0.75"), bash("t", "ls")]);
    let log = harness.take_log();
    assert_eq!(log.first().map(String::as_str), Some("kill"), "{log:?}");
    assert!(log.contains(&"collect exit: failed, claude_too_old".to_owned()), "{log:?}");
    for supported in ["2.1.197", "2.1.325", "unknown"] {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        harness.line(init(supported));
        assert!(!harness.take_log().contains(&"kill".to_owned()), "{supported}");
    }
}

#[test]
fn the_reported_mode_must_not_be_looser_than_the_stored_one() {
    let init = |mode: &str| json!({"type": "system", "subtype": "init", "permissionMode": mode});
    for (stored, lines, killed) in [
        (PermissionMode::Default, vec![init("default")], false),
        (PermissionMode::Default, vec![init("acceptEdits")], true),
        (PermissionMode::Default, vec![init("bypassPermissions")], true),
        (PermissionMode::Default, vec![init("invented")], true),
        (PermissionMode::AcceptEdits, vec![init("default")], true),
        (PermissionMode::AcceptEdits, vec![init("acceptEdits"), init("plan")], false),
    ] {
        let mut setup = Setup::policy(PolicyName::AskAll);
        setup.row.config.permission_mode = stored;
        let mut harness = setup.working();
        lines.iter().for_each(|line| harness.line(line.clone()));
        assert_eq!(harness.take_log().contains(&"kill".to_owned()), killed, "{stored:?} {lines:?}");
    }
}

#[test]
fn a_silent_model_is_reported_once_and_only_while_the_child_waits_for_it() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    harness.wait(Duration::from_secs(299));
    harness.expect(&[]);
    harness.wait(Duration::from_secs(1));
    harness.expect(&["store system stalled, notice stalled"]);
    harness.wait(Duration::from_secs(1000));
    harness.expect(&[]);

    let mut harness = Setup::policy(PolicyName::AskAll).working();
    harness.line(bash("t", "ls"));
    harness.line(ask("t", "ls"));
    harness.take_log();
    harness.wait(Duration::from_secs(1000));
    harness.expect(&[]);
}

#[test]
fn a_retry_is_kept_until_the_model_answers() {
    let mut harness = Setup::default().working();
    harness.line(json!({"type": "system", "subtype": "api_retry", "error": "overloaded"}));
    assert!(harness.machine.turn.as_ref().unwrap().progress.trouble.is_some());
    harness.line(json!({"type": "system", "subtype": "any"}));
    assert!(harness.machine.turn.as_ref().unwrap().progress.trouble.is_some());
    harness.line(
        json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "hi"}]}}),
    );
    assert!(harness.machine.turn.as_ref().unwrap().progress.trouble.is_none());
}

#[test]
fn an_idle_process_is_closed_and_the_next_prompt_starts_another() {
    let mut harness = Setup::default().working();
    harness.line(turn_result("done"));
    harness.take_log();
    harness.wait(Duration::from_secs(900));
    harness.expect(&["store run is Ending", "close stdin"]);
    harness.prompt("more").unwrap();
    harness.take_log();
    harness.step(Input::ProcessEnded);
    let log = harness.take_log();
    assert!(log.contains(&"start run 2".to_owned()), "{log:?}");
    harness.initialized();
    harness.expect_sent(&["prompt \"more\""]);
}

#[test]
fn an_idle_process_that_does_not_exit_is_ended() {
    let mut harness = Setup::default().working();
    harness.line(turn_result("done"));
    harness.wait(Duration::from_secs(900));
    harness.take_log();
    harness.wait(Duration::from_secs(10));
    harness.expect(&["stop process", "collect exit: ended", "store end run 1", "clean up"]);
}

#[test]
fn a_stop_interrupts_then_ends_the_process_then_replies() {
    let mut harness = Setup::default().working();
    let (reply, mut stopped) = oneshot::channel();
    harness.command(Command::Stop { why: "enough".to_owned(), reply });
    harness.expect(&[
        "interrupt briefly",
        "stop process",
        "collect exit: stopped, enough",
        "store end run 1, end turn 1: Interrupted",
        "clean up",
        "reply",
    ]);
    assert!(stopped.try_recv().is_ok());
}

#[test]
fn lines_left_by_an_ended_process_still_count() {
    let mut harness = Setup::default().working();
    harness.unread.push_back(turn_result("done"));
    harness.step(Input::ProcessEnded);
    harness.expect(&["store end turn 1: Complete", "collect exit: ended", "store end run 1", "clean up"]);
}

#[test]
fn a_full_journal_fails_the_turn() {
    let mut harness = Setup::default().working();
    harness.step(Input::JournalFull);
    let log = harness.take_log();
    assert!(log.contains(&"collect exit: failed, journal_full".to_owned()), "{log:?}");
}

#[test]
fn each_exit_gives_its_reason() {
    let exit = |code, signal, error: Option<&str>| {
        Some(plexus_agent::Exit { code, signal, error: error.map(str::to_owned), at: 0 })
    };
    for (exit, reason) in [
        (exit(Some(1), None, None), "exited"),
        (exit(None, Some(9), None), "killed"),
        (exit(None, None, Some("no such file")), "cannot_start"),
        (None, "orphaned"),
    ] {
        let mut harness = Setup::default().build();
        harness.prompt("go").unwrap();
        harness.exit = exit;
        harness.step(Input::ProcessEnded);
        let last = harness.stored.iter().rev().find_map(|change| match change {
            plexus_store::Change::EndTurn { last, .. } => Some(serde_json::to_value(last).unwrap()),
            _ => None,
        });
        assert_eq!(last.expect("the turn ended")["reason"], reason);
    }
}
