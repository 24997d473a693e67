//! Recovery: what the next hub sends, given what the earlier one had stored and sent.

use std::collections::{HashMap, HashSet};

use plexus_claude::SentId;
use plexus_protocol::claudecode::{Channel, PermissionMode, PolicyName};
use plexus_protocol::{ApprovalId, ApprovalStatus, Decision, Event};
use plexus_store::{
    ApprovalRow, CallRow, EventsOfTurn, RunKey, RunRow, RunState, TurnRow, TurnStatus, Verdict,
};
use serde_json::{Value, json};

use super::fixtures::{allow, ask, bash, deny, object, tool_result};
use super::harness::{Harness, Setup};
use crate::session::machine::{RecoveredRun, Snapshot};

/// The state that an earlier hub left.
struct Left {
    state: RunState,
    progress: Value,
    bound: Option<u32>,
    sent: Vec<SentId>,
    calls: Vec<CallRow>,
    approvals: Vec<ApprovalRow>,
    events: Vec<Event>,
}

impl Default for Left {
    fn default() -> Self {
        Self {
            state: RunState::Running,
            progress: json!({"ready": 1, "initialized": 1, "acknowledged": true}),
            bound: Some(1),
            sent: vec![SentId::Prompt("p".to_owned())],
            calls: Vec::new(),
            approvals: Vec::new(),
            events: Vec::new(),
        }
    }
}

fn recovered(left: impl FnOnce(&mut Harness) -> Left) -> Harness {
    let mut setup = Setup::policy(PolicyName::AskAll);
    (setup.row.latest_turn, setup.row.latest_run) = (1, 1);
    let mut harness = setup.build();
    let Left { state, progress, bound, sent, calls, approvals, events } = left(&mut harness);
    let session = harness.machine.row.id;
    let turn = TurnRow {
        session,
        turn: 1,
        status: TurnStatus::Running,
        run: bound,
        prompt: "go".to_owned(),
        prompt_uuid: "p".to_owned(),
        progress,
        started_at: 0,
        ended_at: None,
        events: EventsOfTurn::Kept,
        head: None,
        cost_usd: 0.0,
    };
    let row = RunRow { key: key(&harness), state, process: None, journal_offset: 0, created_at: 0 };
    let run = RecoveredRun { row, calls, approvals, sent: sent.into_iter().collect::<HashSet<_>>() };
    harness.recover(Snapshot { turn: Some(turn), events, runs: vec![run], unread_files: HashMap::new() });
    harness
}

fn key(harness: &Harness) -> RunKey {
    RunKey { session: harness.machine.row.id, run: 1 }
}

fn call(harness: &Harness, verdict: Verdict) -> CallRow {
    CallRow {
        key: key(harness),
        turn: 1,
        tool_use_id: "t".to_owned(),
        tool_name: "Bash".to_owned(),
        digest: String::new(),
        request_id: "g-t".to_owned(),
        summary: String::new(),
        verdict,
    }
}

/// An approval of the call `t`, requested on the control channel.
fn approval(status: ApprovalStatus) -> ApprovalRow {
    let mut asking = Setup::policy(PolicyName::AskAll).working();
    asking.line(bash("t", "ls"));
    asking.line(ask("t", "ls"));
    let decision = match status {
        ApprovalStatus::Pending => None,
        ApprovalStatus::Allowed => Some(allow()),
        _ => Some(deny("no")),
    };
    asking.approval_row("t", status, decision)
}

#[test]
fn a_decision_of_the_gate_that_was_not_sent_is_sent() {
    for (verdict, expected) in [
        (Verdict::Allow { reason: "r".to_owned() }, "g-t: allow"),
        (Verdict::Ask { reason: "r".to_owned() }, "g-t: ask"),
        (Verdict::Deny { reason: "r".to_owned() }, "g-t: deny"),
        (Verdict::NoOpinion, "g-t: no opinion"),
    ] {
        let mut harness =
            recovered(|harness| Left { calls: vec![call(harness, verdict.clone())], ..Left::default() });
        harness.expect_sent(&[expected]);
    }
}

#[test]
fn the_mode_of_an_answer_is_set_once_and_does_not_replace_a_later_mode() {
    for channel in [Channel::Control, Channel::Mcp] {
        let mut row = approval(ApprovalStatus::Allowed);
        (row.channel, row.approval.delivered_at) = (channel, Some(1));
        row.approval.decision = row
            .approval
            .decision
            .map(|decision| Decision { mode: Some(PermissionMode::AcceptEdits), ..decision });
        let mode_after = |progress: Value| {
            let approvals = vec![row.clone()];
            recovered(|_| Left { progress, approvals, ..Left::default() }).machine.row.config.permission_mode
        };
        let not_stored = Left::default().progress;
        assert_eq!(mode_after(not_stored.clone()), PermissionMode::AcceptEdits, "{channel:?}");
        let mut stored = not_stored;
        stored["modes_applied"] = json!([row.approval.id]);
        assert_eq!(mode_after(stored), PermissionMode::Default, "{channel:?}: changed since");
    }
}

#[test]
fn a_decision_that_was_sent_is_not_sent_again() {
    let mut harness = recovered(|harness| {
        let calls = vec![call(harness, Verdict::Allow { reason: "r".to_owned() })];
        let sent = vec![SentId::Prompt("p".to_owned()), SentId::Reply("g-t".to_owned())];
        Left { calls, sent, ..Left::default() }
    });
    harness.expect(&[]);
}

#[test]
fn each_answer_that_was_not_sent_is_sent() {
    for (status, expected) in [
        (ApprovalStatus::Pending, &[][..]),
        (ApprovalStatus::Allowed, &["send a-t: allow", "store delivered"]),
        (ApprovalStatus::Denied, &["send a-t: deny", "store delivered"]),
        (ApprovalStatus::Expired, &["send a-t: deny", "store delivered"]),
        (ApprovalStatus::Withdrawn, &[]),
    ] {
        let mut harness = recovered(|_| Left { approvals: vec![approval(status)], ..Left::default() });
        harness.expect(expected);
    }
}

#[test]
fn a_prompt_that_was_not_sent_is_sent_once() {
    let progress = json!({"ready": 1, "initialized": 1});
    let mut harness = recovered(|_| Left { sent: Vec::new(), progress: progress.clone(), ..Left::default() });
    harness.expect_sent(&["prompt \"go\""]);
    let mut harness = recovered(|_| Left { progress, ..Left::default() });
    harness.expect_sent(&[]);
}

#[test]
fn a_prompt_that_was_moving_to_this_run_is_bound_to_it() {
    let mut harness = recovered(|_| Left {
        bound: Some(9),
        sent: Vec::new(),
        progress: json!({"ready": 1, "initialized": 1, "moved": true}),
        ..Left::default()
    });
    harness.expect(&["store bind to run 1", "send prompt \"go\""]);
}

#[test]
fn each_phase_continues_where_it_was() {
    for (state, progress, sent, expected) in [
        (RunState::Running, json!({}), vec![], &["release", "send initialize"][..]),
        (RunState::Running, json!({}), vec![SentId::Request("plexus-initialize-1".to_owned())], &[]),
        (RunState::Ending, json!({"ready": 1}), vec![], &["close stdin"]),
    ] {
        let mut harness = recovered(|_| Left { state, progress, sent, bound: None, ..Left::default() });
        harness.expect(expected);
    }
}

#[test]
fn a_run_that_was_never_released_is_abandoned_and_another_is_started() {
    let mut harness = recovered(|_| Left {
        state: RunState::Starting,
        progress: json!({}),
        bound: None,
        ..Left::default()
    });
    let log = harness.take_log();
    assert_eq!(log[0], "store end run 1");
    assert!(log.contains(&"start run 2".to_owned()), "{log:?}");
}

#[test]
fn a_turn_whose_process_is_gone_fails_once_its_prompt_was_read() {
    let mut harness = recovered(|_| Left { state: RunState::Starting, ..Left::default() });
    let log = harness.take_log();
    assert!(log.iter().any(|step| step.contains("end turn 1: Failed")), "{log:?}");
}

#[test]
fn a_call_that_was_held_stays_held_until_its_approval_is_resolved() {
    for (status, expected) in [
        (Some(ApprovalStatus::Pending), &[][..]),
        (Some(ApprovalStatus::Allowed), &["store release t: ask", "send g-t: ask"]),
        (Some(ApprovalStatus::Denied), &["store release t: deny", "send g-t: deny", "send interrupt"]),
        (None, &["store release t: ask", "send g-t: ask"]),
    ] {
        let id = ApprovalId::random();
        let mut harness = recovered(|harness| {
            harness.budget_approval = status.map(approval).map(|mut row| {
                row.approval.id = id;
                row
            });
            let input = object(json!({"command": "ls"}));
            let verdict = Verdict::Held { approval: id, input, cwd: Some("/w".to_owned()), mode: None };
            Left { calls: vec![call(harness, verdict)], ..Left::default() }
        });
        harness.expect(expected);
    }
}

#[test]
fn a_recovered_call_that_was_denied_must_not_run() {
    let mut harness = recovered(|harness| Left {
        calls: vec![call(harness, Verdict::Deny { reason: "r".to_owned() })],
        ..Left::default()
    });
    harness.take_log();
    harness.line(tool_result("t"));
    assert_eq!(harness.take_log().first().map(String::as_str), Some("kill"));
}

#[test]
fn an_interrupt_that_was_not_sent_is_sent() {
    let mut harness = recovered(|_| Left {
        progress: json!({"ready": 1, "initialized": 1, "acknowledged": true, "interrupted": true, "interrupt_asked": true}),
        ..Left::default()
    });
    harness.expect_sent(&["interrupt"]);
}

#[test]
fn the_reason_that_the_agent_gave_before_the_restart_is_kept() {
    let events = [
        json!({"type": "content", "text": "I list the files."}),
        json!({"type": "tool_use", "tool_name": "Bash", "tool_use_id": "t", "input": {}}),
    ];
    let events = events.map(|event| serde_json::from_value(event).expect("an event")).to_vec();
    let verdict = Verdict::Ask { reason: String::new() };
    let mut harness =
        recovered(|harness| Left { calls: vec![call(harness, verdict)], events, ..Left::default() });
    harness.line(ask("t", "ls"));
    assert_eq!(harness.asked("t").approval.said.as_deref(), Some("I list the files."));
}

#[test]
fn a_prompt_is_not_sent_without_its_files() {
    let node = plexus_protocol::NodeId::random();
    let mut harness = recovered(|_| Left {
        progress: json!({"ready": 1, "initialized": 1, "prompt_node": node}),
        sent: Vec::new(),
        ..Left::default()
    });
    let log = harness.take_log();
    assert!(!log.iter().any(|step| step.contains("send prompt")), "{log:?}");
    assert!(log.iter().any(|step| step.contains("end turn 1: Failed")), "{log:?}");
}
