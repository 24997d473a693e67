//! The user's hooks: what is durable before a command starts and before its answer is sent, and what the next hub does.

use std::collections::{HashMap, HashSet};

use plexus_claude::{HookAnswer, HookDecision, SentId};
use plexus_protocol::claudecode::PolicyName;
use plexus_store::{CallRow, Change, EventsOfTurn, RunKey, RunRow, RunState, TurnRow, TurnStatus};
use serde_json::{Value, json};

use super::fixtures::{ask, bash, tool_result};
use super::harness::{Harness, Setup};
use crate::hooks::HookOutcome;
use crate::session::machine::{Input, RecoveredRun, Snapshot};

/// A callback of the hooks before a call, requested as `h-ID`.
fn hook(tool_use_id: &str, tool_name: &str) -> Value {
    json!({"type": "control_request", "request_id": format!("h-{tool_use_id}"), "request": {
        "subtype": "hook_callback", "callback_id": "plexus_hook_PreToolUse", "tool_use_id": tool_use_id,
        "input": {"hook_event_name": "PreToolUse", "tool_name": tool_name, "tool_use_id": tool_use_id, "tool_input": {}}}})
}

fn setup() -> Setup {
    let mut setup = Setup::policy(PolicyName::AllowAll);
    let command = |command: &str| json!([{"type": "command", "command": command}]);
    let hooks = json!({
        "PreToolUse": [{"matcher": "Bash", "hooks": command("check")}, {"hooks": command("log")}],
        "UserPromptSubmit": [],
    });
    setup.row.config.hooks = Some(serde_json::from_value(hooks).expect("hooks"));
    setup
}

fn outcome(decision: Option<HookDecision>) -> HookOutcome {
    HookOutcome {
        answer: HookAnswer { decision, context: None },
        decided_by: Some("check".to_owned()),
        failures: Vec::new(),
    }
}

fn block() -> HookDecision {
    HookDecision::Block { reason: "no rm".to_owned() }
}

fn ended(harness: &mut Harness, request_id: &str, decision: Option<HookDecision>) {
    harness.step(Input::HooksEnded(request_id.to_owned(), Box::new(outcome(decision))));
}

/// The stored progress.
fn progress(harness: &Harness) -> Value {
    let stored = harness.stored.iter().rev().find_map(|change| match change {
        Change::Progress(_, _, progress) => Some(progress.clone()),
        _ => None,
    });
    stored.expect("progress was stored")
}

#[test]
fn a_callback_is_durable_before_its_commands_run() {
    let mut harness = setup().working();
    harness.line(hook("t", "Bash"));
    harness.expect(&["run h-t: check, log"]);
    assert_eq!(progress(&harness)["hooks"]["h-t"]["answer"], Value::Null);
    ended(&mut harness, "h-t", None);
    harness.expect(&["send h-t: no opinion"]);
}

#[test]
fn only_commands_whose_matcher_matches_run() {
    let mut harness = setup().working();
    harness.line(hook("t", "Read"));
    harness.expect(&["run h-t: log"]);
    let mut without = Setup::policy(PolicyName::AllowAll).working();
    without.line(hook("t", "Read"));
    without.expect_sent(&["h-t: no opinion"]);
}

#[test]
fn a_denial_is_durable_and_in_the_audit_log_before_it_is_sent() {
    let mut harness = setup().working();
    harness.lines([bash("t", "rm x"), hook("t", "Bash")]);
    harness.expect(&["store call t: allow", "send g-t: allow", "run h-t: check, log"]);
    ended(&mut harness, "h-t", Some(block()));
    harness.expect(&["store system hook, audit denied by hook: no rm", "send h-t: deny"]);
}

#[test]
fn a_call_that_a_hook_denied_is_not_allowed_by_a_later_request_and_its_result_is_an_alarm() {
    let mut harness = setup().working();
    harness.lines([bash("t", "rm x"), hook("t", "Bash")]);
    ended(&mut harness, "h-t", Some(block()));
    harness.take_log();
    harness.line(ask("t", "rm x"));
    harness.expect_sent(&["a-t: deny"]);
    harness.line(tool_result("t"));
    assert!(harness.take_log().iter().any(|step| step == "collect exit: failed, gate_bypassed"));
}

#[test]
fn a_hook_that_stops_the_turn_denies_the_call_and_interrupts_the_turn() {
    let mut harness = setup().working();
    harness.lines([bash("t", "rm x"), hook("t", "Bash")]);
    harness.take_log();
    ended(&mut harness, "h-t", Some(HookDecision::Stop { reason: "enough".to_owned() }));
    harness.expect_sent(&["h-t: deny", "interrupt"]);
}

#[test]
fn a_callback_that_cannot_be_read_is_denied_without_a_command() {
    for input in [
        json!({}),
        json!({"hook_event_name": "PreToolUse"}),
        json!({"hook_event_name": "Stop", "tool_name": "Bash"}),
    ] {
        let mut harness = setup().working();
        let mut line = hook("t", "Bash");
        line["request"]["input"] = input;
        harness.line(line);
        harness.expect(&["send h-t: deny", "store system hook"]);
    }
}

#[test]
fn commands_end_when_the_child_withdraws_its_callback_or_exits() {
    let mut harness = setup().working();
    harness.lines([hook("t", "Bash"), hook("u", "Bash")]);
    harness.take_log();
    harness.line(json!({"type": "control_cancel_request", "request_id": "h-t"}));
    harness.expect(&["cancel h-t"]);
    ended(&mut harness, "h-t", Some(block()));
    harness.expect(&[]);
    harness.step(Input::ProcessEnded);
    assert!(harness.take_log().contains(&"cancel h-u".to_owned()));
}

#[test]
fn a_child_cannot_start_commands_without_end() {
    let mut harness = setup().working();
    harness.lines((0..65).map(|i| hook(&format!("t{i}"), "Bash")));
    let log = harness.take_log();
    assert_eq!(log.iter().filter(|step| step.starts_with("run ")).count(), 64);
    assert!(log.contains(&"send h-t64: deny".to_owned()));
}

#[test]
fn a_call_that_a_hook_asks_about_needs_approval_although_the_gate_allows_it() {
    let ask_first = |harness: &mut Harness| {
        harness.take_log();
        harness.line(ask("t", "rm x"));
        harness.expect(&["store ask about t"]);
        let approval = &harness.asked("t").approval;
        assert!(approval.beyond_rules, "no rule resolves it");
        assert_eq!(approval.reason.as_deref(), Some("A hook requires approval: q"));
    };
    let mut harness = setup().working();
    harness.lines([bash("t", "rm x"), hook("t", "Bash")]);
    ended(&mut harness, "h-t", Some(HookDecision::Ask { reason: "q".to_owned() }));
    // The next hub knows it too.
    ask_first(&mut recovered(&harness, &["h-t"]));
    ask_first(&mut harness);
}

#[test]
fn a_denial_of_a_hook_outlasts_the_answer_of_the_gate() {
    // The hook's callback may be read before the gate's.
    let mut harness = setup().working();
    harness.line(hook("t", "Bash"));
    ended(&mut harness, "h-t", Some(block()));
    harness.line(bash("t", "rm x"));
    harness.take_log();
    harness.line(ask("t", "rm x"));
    harness.expect_sent(&["a-t: deny"]);
}

/// A machine that finds what `earlier` stored, and the ids of the lines that it had sent.
fn recovered(earlier: &Harness, sent: &[&str]) -> Harness {
    let mut setup = setup();
    (setup.row.latest_turn, setup.row.latest_run) = (1, 1);
    let mut harness = setup.build();
    let session = harness.machine.row.id;
    let key = RunKey { session, run: 1 };
    let turn = TurnRow {
        session,
        turn: 1,
        status: TurnStatus::Running,
        run: Some(1),
        prompt: "go".to_owned(),
        prompt_uuid: "p".to_owned(),
        progress: progress(earlier),
        started_at: 0,
        ended_at: None,
        events: EventsOfTurn::Kept,
        head: None,
        cost_usd: 0.0,
    };
    let row = RunRow { key, state: RunState::Running, process: None, journal_offset: 0, created_at: 0 };
    let replies = sent.iter().map(|id| SentId::Reply((*id).to_owned()));
    let sent: HashSet<SentId> = replies.chain([SentId::Prompt("p".to_owned())]).collect();
    let calls = earlier.stored.iter().filter_map(|change| match change {
        Change::Call(row, _) => Some(CallRow { key, ..(**row).clone() }),
        _ => None,
    });
    let run = RecoveredRun { row, calls: calls.collect(), approvals: Vec::new(), sent };
    harness.recover(Snapshot {
        turn: Some(turn),
        events: Vec::new(),
        runs: vec![run],
        unread_files: HashMap::new(),
    });
    harness
}

#[test]
fn the_next_hub_runs_the_commands_again_if_there_is_no_answer() {
    let mut earlier = setup().working();
    earlier.line(hook("t", "Bash"));
    let mut next = recovered(&earlier, &[]);
    next.expect(&["run h-t: check, log"]);
    ended(&mut next, "h-t", Some(block()));
    next.expect(&["store system hook, audit denied by hook: no rm", "send h-t: deny"]);
}

#[test]
fn the_next_hub_sends_a_stored_answer_and_runs_nothing() {
    let mut earlier = setup().working();
    earlier.line(hook("t", "Bash"));
    ended(&mut earlier, "h-t", Some(block()));
    recovered(&earlier, &[]).expect_sent(&["h-t: deny"]);
    recovered(&earlier, &["h-t"]).expect(&[]);
}
