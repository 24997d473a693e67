use plexus_claude::{HookAnswer, HookDecision, HookEvent};
use serde_json::json;

use super::*;

const PRE: HookEvent = HookEvent::PreToolUse;

fn exited(code: i32, stdout: &str, stderr: &str) -> EndedCommand {
    let last_lines = stderr.lines().map(str::to_owned).collect();
    EndedCommand { how: CommandEnd::Exited(code), stdout: stdout.as_bytes().to_vec(), last_lines }
}

fn said(event: HookEvent, stdout: &str) -> Result<HookAnswer, String> {
    read(event, &exited(0, stdout, "noise"))
}

fn block(reason: &str) -> HookAnswer {
    HookAnswer { decision: Some(HookDecision::Block { reason: reason.to_owned() }), context: None }
}

fn context(text: &str) -> HookAnswer {
    HookAnswer { decision: None, context: Some(text.to_owned()) }
}

#[test]
fn no_way_of_saying_yes_is_a_decision() {
    for output in [
        json!({}),
        json!({"decision": "approve", "reason": "fine"}),
        json!({"decision": "allow"}),
        json!({"continue": true}),
        json!({"hookSpecificOutput": {"permissionDecision": "allow"}}),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "y"}}),
        json!({"hookSpecificOutput": {"updatedPermissions": [{"type": "setMode", "mode": "bypassPermissions"}]}}),
        json!({"updatedPermissions": [], "behavior": "allow", "permissionDecision": "allow"}),
        json!({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}),
    ] {
        for event in HookEvent::ALL {
            let event_is_other = output["hookSpecificOutput"]["hookEventName"].is_string() && event != PRE;
            match said(event, &output.to_string()) {
                Ok(answer) => assert_eq!(answer, HookAnswer::default(), "{output}"),
                Err(why) => assert!(event_is_other, "{output}: {why}"),
            }
        }
    }
}

#[test]
fn a_denial_keeps_its_reason() {
    let deny =
        json!({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no rm"}});
    assert_eq!(said(PRE, &deny.to_string()), Ok(block("no rm")));
    for event in HookEvent::ALL {
        let blocked = said(event, r#"{"decision": "block", "reason": "not yet"}"#);
        assert_eq!(blocked, Ok(block("not yet")));
        assert_eq!(read(event, &exited(2, "ignored", "line 1\nline 2")), Ok(block("line 1\nline 2")));
    }
}

#[test]
fn the_stricter_of_two_decisions_in_one_output_counts() {
    let both =
        json!({"decision": "block", "reason": "r", "hookSpecificOutput": {"permissionDecision": "ask"}});
    assert_eq!(said(PRE, &both.to_string()), Ok(block("r")));
    let both = json!({"decision": "approve", "hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "r"}});
    let ask = HookDecision::Ask { reason: "r".to_owned() };
    assert_eq!(said(PRE, &both.to_string()), Ok(HookAnswer { decision: Some(ask), context: None }));
}

#[test]
fn a_changed_input_denies_the_call() {
    let changed =
        json!({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "ls"}}});
    let answer = said(PRE, &changed.to_string()).expect("readable");
    assert!(
        matches!(answer.decision, Some(HookDecision::Block { reason }) if reason.contains("as it was shown"))
    );
}

#[test]
fn a_hook_can_stop_the_turn() {
    for event in HookEvent::ALL {
        let stop = HookDecision::Stop { reason: "halt".to_owned() };
        let answer = said(event, r#"{"continue": false, "stopReason": "halt", "decision": "approve"}"#);
        assert_eq!(answer, Ok(HookAnswer { decision: Some(stop), context: None }));
    }
}

#[test]
fn plain_text_is_context_for_a_prompt_and_nothing_for_a_call() {
    assert_eq!(said(HookEvent::UserPromptSubmit, "today is {Sunday}\n"), Ok(context("today is {Sunday}")));
    assert_eq!(said(PRE, "checked\n"), Ok(HookAnswer::default()));
    let more = json!({"hookSpecificOutput": {"additionalContext": "c"}});
    for event in HookEvent::ALL {
        assert_eq!(said(event, &more.to_string()), Ok(context("c")));
    }
}

#[test]
fn output_that_cannot_be_read_is_a_failure() {
    for output in [
        "{",
        r#"{"decision": 5}"#,
        r#"{"decision": "maybe"}"#,
        r#"{"continue": "no"}"#,
        r#"{"async": true}"#,
        r#"{"hookSpecificOutput": {"permissionDecision": "defer"}}"#,
        r#"{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}"#,
        r#"{"hookSpecificOutput": []}"#,
        "warning\n{\"decision\": \"block\"}",
    ] {
        assert!(said(PRE, output).is_err(), "{output}");
    }
    let invalid = EndedCommand { stdout: vec![0xff], ..exited(0, "", "") };
    assert!(read(PRE, &invalid).is_err());
}

#[test]
fn every_end_but_exit_codes_0_and_2_is_a_failure() {
    let ended = |how| EndedCommand { how, ..exited(0, r#"{"decision": "approve"}"#, "") };
    for how in [
        CommandEnd::Exited(1),
        CommandEnd::Exited(126),
        CommandEnd::Exited(127),
        CommandEnd::Signalled(9),
        CommandEnd::NotStarted("no".to_owned()),
        CommandEnd::Unknown,
        CommandEnd::TimedOut,
        CommandEnd::Cancelled,
        CommandEnd::Closing,
    ] {
        assert!(read(PRE, &ended(how.clone())).is_err(), "{how:?}");
    }
}

#[test]
fn a_failure_denies_a_call_and_is_only_reported_for_an_event_that_has_happened() {
    let denied = HookOutcome::of_failure(PRE, "x", "why".to_owned());
    assert!(
        matches!(&denied.answer.decision, Some(HookDecision::Block { reason }) if reason.contains("why"))
    );
    let reported = HookOutcome::of_failure(HookEvent::PostToolUse, "x", "why".to_owned());
    assert_eq!(reported.answer, HookAnswer::default());
    assert_eq!(reported.failures.len(), 1);
}

#[test]
fn the_strictest_of_several_commands_decides() {
    let ask = HookAnswer {
        decision: Some(HookDecision::Ask { reason: "q".to_owned() }),
        context: Some("a".to_owned()),
    };
    let mut outcome = HookOutcome::default();
    outcome.add(PRE, "first", Ok(ask));
    outcome.add(PRE, "second", Ok(context("b")));
    outcome.add(PRE, "third", Ok(block("no")));
    outcome.add(PRE, "fourth", Ok(block("never")));
    assert_eq!(outcome.answer.decision, block("no").decision);
    assert_eq!(outcome.answer.context.as_deref(), Some("a\nb"));
    assert_eq!(outcome.decided_by.as_deref(), Some("third"));
}

#[test]
fn a_long_reason_is_truncated() {
    let answer = read(PRE, &exited(2, "", &"é".repeat(10_000))).expect("readable");
    assert!(matches!(answer.decision, Some(HookDecision::Block { reason }) if reason.len() < 5000));
}
