//! A call at the gate: the policies and rules that decide about it, and the order in which the decision is stored and sent.

use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::Decider;
use plexus_protocol::claudecode::PolicyName;
use plexus_store::{Change, NewRule, RuleAuthority, RuleRow, RulesInForce};
use serde_json::{Value, json};

use super::fixtures::{ask, bash, deny, gate, tool_result, turn_result};
use super::harness::Setup;

fn rule(number: u64, rule: &str, effect: RuleEffect) -> RuleRow {
    let entry = RuleEntry::parse(rule, effect).expect("a valid rule");
    RuleRow {
        number,
        rule: NewRule {
            session: None,
            entry: serde_json::to_value(entry).expect("a rule is JSON"),
            expires_at: None,
            authority: RuleAuthority::Root,
            created_by: Decider::Operator,
        },
        created_at: 0,
    }
}

#[test]
fn a_decision_is_stored_before_it_is_sent() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.line(bash("t", "ls"));
    harness.expect(&["store call t: allow", "send g-t: allow"]);
}

#[test]
fn each_policy_decides_about_each_kind_of_tool() {
    use PolicyName::{AllowAll, Approvals, AskAll, OwnCourse, Plan};
    for (policy, tool, expected) in [
        (OwnCourse, "Bash", "no opinion"),
        (OwnCourse, "Read", "no opinion"),
        (AskAll, "Bash", "ask"),
        (AskAll, "Read", "ask"),
        (AskAll, "mcp__other__tool", "ask"),
        (Approvals, "Bash", "ask"),
        (Approvals, "Read", "allow"),
        (Approvals, "AskUserQuestion", "ask"),
        (Plan, "Read", "allow"),
        (Plan, "Bash", "no opinion"),
        (AllowAll, "Bash", "allow"),
        (AllowAll, "AskUserQuestion", "no opinion"),
        (AllowAll, "ExitPlanMode", "no opinion"),
        (AskAll, "mcp__plexus__loopback_wait", "allow"),
    ] {
        let mut harness = Setup::policy(policy).working();
        harness.line(gate("t", tool, json!({})));
        harness.expect_sent(&[&format!("g-t: {expected}")]);
    }
}

#[test]
fn a_rule_precedes_the_policy_and_a_deny_precedes_everything() {
    use RuleEffect::{Allow, Ask, Deny};
    for (rules, command, expected) in [
        (vec![rule(1, "Bash(ls:*)", Allow)], "ls -l", "allow"),
        (vec![rule(1, "Bash(ls:*)", Allow)], "rm x", "ask"),
        (vec![rule(1, "Bash(ls:*)", Allow)], "ls; rm x", "ask"),
        (vec![rule(1, "Bash", Allow), rule(2, "Bash(rm:*)", Deny)], "rm x", "deny"),
        (vec![rule(1, "Bash", Allow), rule(2, "Bash(rm:*)", Deny)], "ls && rm x", "deny"),
        (vec![rule(1, "Bash", Allow), rule(2, "Bash(rm:*)", Ask)], "rm x", "ask"),
        (vec![rule(1, "Bash", Allow)], "any $(thing)", "allow"),
    ] {
        let mut harness = Setup::policy(PolicyName::AskAll).working();
        harness.shared.policies.load(RulesInForce { rules: rules.clone(), ..RulesInForce::default() });
        harness.line(bash("t", command));
        harness.expect_sent(&[&format!("g-t: {expected}")]);
    }
}

#[test]
fn a_call_that_was_allowed_by_outdated_rules_needs_an_approval() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    let rules = vec![rule(1, "Bash", RuleEffect::Allow)];
    harness.shared.policies.load(RulesInForce { version: 3, rules });
    harness.rules_are_outdated = true;
    harness.line(bash("t", "ls"));
    harness.expect_sent(&["g-t: ask"]);
}

#[test]
fn a_rule_that_cannot_be_read_denies_every_call() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    let mut broken = rule(1, "Bash", RuleEffect::Allow);
    broken.rule.entry = json!({"rule": 7});
    harness.shared.policies.load(RulesInForce { rules: vec![broken], ..RulesInForce::default() });
    harness.line(bash("t", "ls"));
    harness.expect_sent(&["g-t: deny"]);
}

#[test]
fn the_strictest_policy_of_the_lineage_decides() {
    use PolicyName::{AllowAll, AskAll, OwnCourse};
    for (above, own, expected) in
        [(AskAll, AllowAll, "ask"), (AllowAll, AskAll, "ask"), (OwnCourse, AllowAll, "no opinion")]
    {
        let mut setup = Setup::policy(own);
        let mut parent = crate::test_support::session_row("parent");
        parent.config.policy = above;
        setup.row.answers_to = plexus_protocol::AskedOf::Session { id: parent.id };
        setup.ancestors = vec![parent];
        let mut harness = setup.working();
        harness.line(bash("t", "ls"));
        harness.expect_sent(&[&format!("g-t: {expected}")]);
    }
}

#[test]
fn a_request_that_cannot_be_read_is_denied_before_anything_is_stored() {
    let request = |request: Value| json!({"type": "control_request", "request_id": "r", "request": request});
    let hook = |input: Value| {
        request(
            json!({"subtype": "hook_callback", "callback_id": "plexus_gate", "tool_use_id": "t", "input": input}),
        )
    };
    for (line, answer, event) in [
        (hook(json!({"hook_event_name": "PreToolUse", "tool_name": 7})), "deny", "gate_denied"),
        (
            hook(json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": []})),
            "deny",
            "gate_denied",
        ),
        (hook(json!({"hook_event_name": "PostToolUse"})), "deny", "gate_denied"),
        (request(json!({"subtype": "hook_callback", "callback_id": "other"})), "deny", "gate_denied"),
        (request(json!({"subtype": "can_use_tool", "tool_name": "Bash"})), "deny", "ask_denied"),
        (
            request(json!({"subtype": "can_use_tool", "tool_name": "", "tool_use_id": "t", "input": {}})),
            "deny",
            "ask_denied",
        ),
        (request(json!({})), "deny", "gate_denied"),
        (request(json!({"subtype": "new_in_the_next_version"})), "error", "unknown_request"),
    ] {
        let mut harness = Setup::policy(PolicyName::AllowAll).working();
        harness.line(line);
        harness.expect(&[&format!("send r: {answer}"), &format!("store system {event}")]);
    }
}

#[test]
fn the_result_of_a_call_that_should_not_have_run_kills_the_child() {
    type Before = fn(&mut super::harness::Harness);
    let cases: [(&str, Before); 4] = [
        ("never at the gate", |_| {}),
        ("denied at the gate", |harness| {
            harness.shared.policies.load(RulesInForce {
                rules: vec![rule(1, "Bash", RuleEffect::Deny)],
                ..RulesInForce::default()
            });
            harness.line(bash("t", "ls"));
        }),
        ("open", |harness| {
            harness.line(bash("t", "ls"));
            harness.line(ask("t", "ls"));
        }),
        ("denied by a person", |harness| {
            harness.line(bash("t", "ls"));
            harness.line(ask("t", "ls"));
            let denial = deny("no");
            harness.resolve("t", plexus_protocol::ApprovalStatus::Denied, denial);
        }),
    ];
    for (case, before) in cases {
        let mut harness = Setup::policy(PolicyName::AskAll).working();
        before(&mut harness);
        harness.take_log();
        harness.line(tool_result("t"));
        let log = harness.take_log();
        assert_eq!(log.first().map(String::as_str), Some("kill"), "{case}: {log:?}");
        assert!(log.contains(&"collect exit: failed, gate_bypassed".to_owned()), "{case}: {log:?}");
        assert!(log.iter().any(|step| step.contains("end turn 1: Failed")), "{case}: {log:?}");
    }
}

#[test]
fn a_result_is_accepted_after_an_allow_and_for_a_failed_call() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.line(bash("t", "ls"));
    harness.line(tool_result("t"));
    let mut failed = tool_result("u");
    failed["message"]["content"][0]["is_error"] = json!(true);
    harness.line(failed);
    assert!(!harness.take_log().contains(&"kill".to_owned()), "a failed call did nothing");
    assert!(harness.machine.calls.is_empty(), "the id of the call is free");
}

#[test]
fn the_tool_that_only_ends_the_conversation_needs_no_gate() {
    let mut harness = Setup::policy(PolicyName::AskAll).working();
    harness.line(json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content":
        [{"type": "tool_use", "id": "t", "name": "EndConversation", "input": {}}]}}));
    harness.line(tool_result("t"));
    assert!(!harness.take_log().contains(&"kill".to_owned()));
}

#[test]
fn a_call_outside_any_turn_starts_its_own_turn() {
    let mut harness = Setup::policy(PolicyName::AllowAll).working();
    harness.line(turn_result("done"));
    harness.take_log();
    harness.line(bash("t", "ls"));
    harness.expect(&["store begin turn 2, bind to run 1, start, call t: allow", "send g-t: allow"]);
    let bound = harness.stored.iter().rev().find_map(|change| match change {
        Change::BindTurn { prompt_uuid, .. } => Some(prompt_uuid.clone()),
        _ => None,
    });
    assert_eq!(bound.as_deref(), Some(""), "the child started it without a prompt");
}
