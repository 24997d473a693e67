//! Property tests: in random trees with random scopes and rules, every call that a session allows lies within its own
//! scope and the scopes of all its ancestors.

use std::path::{Path, PathBuf};

use plexus_policy::{Call, Rule, RuleEffect, RuleEntry, Scope};
use plexus_protocol::{AskedOf, Decider, SessionId};
use plexus_store::{NewRule, RuleAuthority, RuleRow, RulesInForce, SessionRow};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::gate::GateDecision;
use super::in_force::Policies;
use crate::lineage::{CheckedCall, Lineage};
use crate::test_support::session_row;

const RULES: &[&str] = &[
    "*",
    "Bash",
    "Bash(find:*)",
    "Bash(find . -exec:*)",
    "Bash(find . -exec touch x +)",
    "Bash(find src:*)",
    "Bash(find src)",
    "Bash(cd:*)",
    "Bash(cd /etc)",
    "Bash(ls:*)",
    "Bash(ls)",
    "Bash(git:*)",
    "Bash(git push:*)",
    "Edit",
    "Edit(//w/**)",
    "Edit(//w/sub/**)",
    "Edit(//w/src/**)",
    "Read(//w/**)",
    "Monitor(ls:*)",
    "mcp__a",
    "mcp__a__run",
    "WebFetch(domain:a.example)",
];

const COMMANDS: &[&str] = &[
    "find src",
    "find . -exec touch x +",
    "cd /etc",
    "cd /etc && ls",
    "cd sub && ls",
    "ls",
    "ls && find src",
    "ls > src/out",
    "ls > /w/sub/out",
    "git push",
    "git -c a=b push",
    "$X",
    "ls '",
];

/// One session of a random lineage.
#[derive(Debug, Clone)]
struct Drawn {
    scope: Vec<&'static str>,
    hub_tools: bool,
    deleted: bool,
}

/// A random rule, its creator (the operator if `maker` is not a session) and the session it applies to.
#[derive(Debug, Clone)]
struct Given {
    rule: &'static str,
    maker: usize,
    target: usize,
    effect: RuleEffect,
}

fn row(drawn: &Drawn, above: Option<SessionId>) -> SessionRow {
    let mut row = session_row("any");
    row.answers_to = above.map_or(AskedOf::Operator, |id| AskedOf::Session { id });
    row.config.hub_tools = drawn.hub_tools;
    row.config.approve_scope = drawn.scope.iter().map(|rule| (*rule).to_owned()).collect();
    row.deleted_at = drawn.deleted.then_some(1);
    row
}

fn rows(drawn: &[Drawn]) -> Vec<SessionRow> {
    let mut rows: Vec<SessionRow> = Vec::new();
    for one in drawn {
        rows.push(row(one, rows.last().map(|above| above.id)));
    }
    rows
}

fn rule_row(number: u64, given: &Given, rows: &[SessionRow]) -> RuleRow {
    let maker = rows.get(given.maker);
    let entry = RuleEntry::parse(given.rule, given.effect).expect("a rule");
    let authority = match (maker, given.effect) {
        (None, _) => RuleAuthority::Root,
        (Some(_), RuleEffect::Allow) => RuleAuthority::Within,
        (Some(_), RuleEffect::Deny | RuleEffect::Ask) => RuleAuthority::Narrows,
    };
    let rule = NewRule {
        session: rows.get(given.target).map(|row| row.id),
        entry: serde_json::to_value(&entry).expect("JSON"),
        expires_at: None,
        authority,
        created_by: maker.map_or(Decider::Operator, |maker| Decider::Session { id: maker.id }),
    };
    RuleRow { number, rule, created_at: 0 }
}

/// Whether the scope of one session, taken alone, covers a call.
fn scope_covers(drawn: &Drawn, call: &Call<'_>) -> bool {
    let rules: Vec<Rule> = drawn.scope.iter().map(|rule| rule.parse().expect("a rule")).collect();
    drawn.hub_tools && !drawn.deleted && Scope::new(&rules).expect("a scope").may_allow(call)
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let scope = prop::collection::vec(select(RULES), 0..5);
    (scope, prop::bool::weighted(0.95), prop::bool::weighted(0.05))
        .prop_map(|(scope, hub_tools, deleted)| Drawn { scope, hub_tools, deleted })
}

fn given() -> impl Strategy<Value = Given> {
    let effect = select(vec![RuleEffect::Allow, RuleEffect::Allow, RuleEffect::Allow, RuleEffect::Deny]);
    (select(RULES), 0..6_usize, 0..6_usize, effect).prop_map(|(rule, maker, target, effect)| Given {
        rule,
        maker,
        target,
        effect,
    })
}

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let command = || select(COMMANDS);
    prop_oneof![
        6 => command().prop_map(|command| ("Bash", json!({ "command": command }))),
        1 => command().prop_map(|command| ("Monitor", json!({ "command": command }))),
        1 => command().prop_map(|command| ("mcp__a__run", json!({ "command": command }))),
        2 => select(&["/w/src/a", "/w/sub/a", "/etc/a", "sub/a"][..]).prop_map(|file| ("Edit", json!({"file_path": file}))),
        1 => Just(("WebFetch", json!({"url": "https://a.example/"}))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_session_allows_only_calls_within_every_scope_above(
        drawn in prop::collection::vec(drawn(), 1..5), given in prop::collection::vec(given(), 0..6),
        (tool_name, input) in call(), cwd in select(&["/w", "/w/sub"][..]),
    ) {
        let rows = rows(&drawn);
        let lineage = Lineage::of(rows.clone());
        let now = plexus_book::now();
        let call = Call { tool_name, input: &input, cwd: Path::new(cwd), home: None, now };
        let covered_down_to = |at: usize| drawn[..=at].iter().all(|one| scope_covers(one, &call));

        // By an answer.
        let judged = CheckedCall::new(tool_name, input.clone(), PathBuf::from(cwd), None);
        for (at, row) in rows.iter().enumerate() {
            prop_assert_eq!(lineage.may_allow(row.id, &judged), covered_down_to(at));
        }

        // By a rule.
        let all: Vec<RuleRow> =
            given.iter().enumerate().map(|(at, given)| rule_row(at as u64, given, &rows)).collect();
        let policies = Policies::default();
        policies.load(RulesInForce { rules: all.clone(), ..RulesInForce::default() });
        let ruling = policies.judge(&lineage, || None).judge(tool_name, &input, Path::new(cwd), None);
        if ruling.decision == GateDecision::Allow {
            for number in &ruling.rules {
                let by = &given[usize::try_from(*number).expect("small")];
                if by.maker < rows.len() {
                    prop_assert!(covered_down_to(by.maker), "rule {} of session {}", by.rule, by.maker);
                }
            }
        }
    }
}

#[test]
fn a_session_may_allow_every_call_within_all_scopes_above() {
    let one = |rule: &'static str| Drawn { scope: vec![rule], hub_tools: true, deleted: false };
    let drawn = [one("Bash(find:*)"), one("Bash"), one("Bash(find src:*)"), one("Bash(ls:*)")];
    let rows = rows(&drawn);
    let lineage = Lineage::of(rows.clone());
    let given = Given { rule: "Bash(find:*)", maker: 2, target: 3, effect: RuleEffect::Allow };
    let policies = Policies::default();
    policies.load(RulesInForce { rules: vec![rule_row(1, &given, &rows)], ..RulesInForce::default() });
    let judge = policies.judge(&lineage, || None);
    let decision =
        |command: &str| judge.judge("Bash", &json!({ "command": command }), Path::new("/w"), None).decision;
    assert_eq!(decision("find src"), GateDecision::Allow);
    assert_eq!(decision("find lib"), GateDecision::NoOpinion);
    assert_eq!(decision("find src -exec touch x +"), GateDecision::NoOpinion);
}
