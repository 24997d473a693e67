//! Properties of every policy and every call: a restriction never allows more, a child never has more than its parent, rules are parsed as
//! they were printed, and no input makes the evaluation fail.
#![cfg(test)]

use std::path::Path;

use plexus_policy::{
    Authority, Call, Level, Policy, Rule, RuleEffect, RuleEntry, Scope, ScopeChain, VerdictEffect,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Rules that often match the calls below.
fn rule() -> impl Strategy<Value = Rule> {
    let known = prop::sample::select(vec![
        "Bash",
        "Bash(ls:*)",
        "Bash(rm *)",
        "Bash(git status)",
        "Bash(git * main)",
        "Bash(echo a*)",
        "Edit(//w/src/**)",
        "Edit",
        "Read(//w/.env)",
        "Read",
        "Write(//w/**)",
        "WebFetch(domain:example.com)",
        "WebFetch(domain:*.example.com)",
        "mcp__a",
        "mcp__a__*",
        "mcp__a__b",
        "Agent(x)",
        "Agent",
        "Skill(x)",
        "*",
        "Grep",
        "TodoWrite",
    ]);
    known.prop_map(|text| text.parse().expect("a rule"))
}

fn effect() -> impl Strategy<Value = RuleEffect> {
    prop::sample::select(vec![RuleEffect::Allow, RuleEffect::Deny, RuleEffect::Ask])
}

fn entry() -> impl Strategy<Value = RuleEntry> {
    (rule(), effect(), prop::option::of(0_u64..20))
        .prop_map(|(rule, effect, expires_at)| RuleEntry::new(rule, effect, expires_at).expect("an entry"))
}

fn entries() -> impl Strategy<Value = Vec<RuleEntry>> {
    prop::collection::vec(entry(), 0..8)
}

fn command() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "ls",
        "rm",
        "git status",
        "git push origin main",
        "echo a",
        "$X",
        "&&",
        ";",
        "|",
        "$(rm a)",
        "`ls`",
        "> src/x",
        "< .env",
        "\n",
        "env",
        "\"a b\"",
        "(",
        ")",
        "cat .env",
        "sudo",
        "x=1",
        "{",
        "}",
        "bash -c 'ls; rm a'",
    ]);
    prop::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

/// A call of some tool, valid or not.
fn call() -> impl Strategy<Value = (String, Value)> {
    let path = prop::sample::select(vec![
        "/w/src/a",
        "src/a",
        "../x",
        "/w/.env",
        ".env",
        "/etc/x",
        "~/x",
        "",
        "src/../../x",
    ]);
    let url = prop::sample::select(vec![
        "https://example.com/a",
        "https://a.example.com",
        "https://b.c",
        "x",
        "https://example.com@b.c/",
    ]);
    prop_oneof![
        4 => command().prop_map(|command| ("Bash".to_owned(), json!({ "command": command }))),
        2 => (prop::sample::select(vec!["Read", "Edit", "Write", "MultiEdit"]), path.clone())
            .prop_map(|(tool, path)| (tool.to_owned(), json!({ "file_path": path }))),
        1 => (prop::sample::select(vec!["Glob", "Grep", "LS"]), path)
            .prop_map(|(tool, path)| (tool.to_owned(), json!({ "path": path, "pattern": "*" }))),
        1 => url.prop_map(|url| ("WebFetch".to_owned(), json!({ "url": url }))),
        1 => prop::sample::select(vec!["mcp__a__b", "mcp__a__c", "mcp__b__b", "TodoWrite", "Agent", "Task", "Skill", "Bash", "Read"])
            .prop_map(|tool| (tool.to_owned(), json!({ "subagent_type": "x", "skill": "x" }))),
    ]
}

fn level(name: &str, authority: Authority, rules: Vec<RuleEntry>) -> Level {
    Level { name: name.to_owned(), authority, rules }
}

fn verdict(levels: Vec<Level>, (tool_name, input): &(String, Value)) -> VerdictEffect {
    let policy = Policy::new(levels).expect("a policy");
    policy
        .evaluate(&Call { tool_name, input, cwd: Path::new("/w"), home: Some(Path::new("/h")), now: 10 })
        .effect
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_further_deny_or_ask_rule_never_allows_more(
        rules in entries(), more in rule(), effect in prop::sample::select(vec![RuleEffect::Deny, RuleEffect::Ask]), at in 0_usize..8, call in call(),
    ) {
        let before = verdict(vec![level("root", Authority::Root, rules.clone())], &call);
        let mut restricted = rules;
        restricted.insert(at.min(restricted.len()), RuleEntry::new(more, effect, None).expect("an entry"));
        prop_assert!(verdict(vec![level("root", Authority::Root, restricted)], &call) <= before);
    }

    #[test]
    fn a_childs_policy_is_never_wider_than_its_parents(
        root in entries(), parent in entries(), child in entries(), call in call(),
    ) {
        let chain = |levels: usize| {
            let all = [
                level("root", Authority::Root, root.clone()),
                level("parent", Authority::Narrows, parent.clone()),
                level("child", Authority::Narrows, child.clone()),
            ];
            all.into_iter().take(levels).collect::<Vec<_>>()
        };
        prop_assert!(verdict(chain(2), &call) <= verdict(chain(1), &call));
        prop_assert!(verdict(chain(3), &call) <= verdict(chain(2), &call));
    }

    #[test]
    fn a_rule_within_scope_allows_nothing_beyond_the_scopes_or_against_a_deny(
        root in entries(), given in entries(), call in call(),
        scopes in prop::collection::vec(prop::collection::vec(rule(), 0..4), 1..4),
    ) {
        let without = verdict(vec![level("root", Authority::Root, root.clone())], &call);
        let mut scopes: Vec<Scope> = scopes.iter().map(|rules| Scope::new(rules).expect("a scope")).collect();
        let (tool_name, input) = &call;
        let judged = Call { tool_name, input, cwd: Path::new("/w"), home: None, now: 10 };
        let may = scopes.iter().all(|scope| scope.may_allow(&judged));
        let within = Authority::Within(ScopeChain::new(scopes.remove(0), scopes));
        let with = verdict(vec![level("root", Authority::Root, root), level("parent", within, given)], &call);
        prop_assert!(with <= without || may && without == VerdictEffect::Unmentioned && with == VerdictEffect::Allow);
    }

    #[test]
    fn an_expired_rule_has_no_effect(rules in entries(), call in call()) {
        let living: Vec<_> = rules.iter().filter(|entry| entry.is_in_force_at(10)).cloned().collect();
        prop_assert_eq!(
            verdict(vec![level("root", Authority::Root, rules)], &call), verdict(vec![level("root", Authority::Root, living)], &call)
        );
    }

    #[test]
    fn a_rule_within_another_allows_nothing_that_the_other_does_not(narrow in rule(), wide in rule(), call in call()) {
        let alone = |rule: Rule| vec![level("root", Authority::Root, vec![RuleEntry::new(rule, RuleEffect::Allow, None).expect("an entry")])];
        if narrow.is_within(&wide) {
            prop_assert!(verdict(alone(narrow), &call) <= verdict(alone(wide), &call));
        }
    }

    #[test]
    fn a_rule_is_parsed_as_it_was_printed(text in "(Bash|Read|Edit|Agent|WebFetch|mcp__a)(\\([-a-z *:'\"\\\\./~!\\[\\]{},#é]{0,12}\\))?") {
        if let Ok(rule) = text.parse::<Rule>() {
            let canonical = rule.to_string();
            prop_assert_eq!(canonical.parse::<Rule>(), Ok(rule.clone()), "{} became {}", text, canonical);
            prop_assert_eq!(serde_json::from_str::<Rule>(&serde_json::to_string(&rule).expect("JSON")).expect("a rule"), rule);
        }
    }

    #[test]
    fn no_input_makes_the_evaluation_fail(
        rules in entries(), tool in "(Bash|Read|Edit|Glob|Grep|WebFetch|Agent|mcp__a__b|\\PC{0,8})", text in "\\PC{0,60}|[ -~\n\t]{0,200}", rule in "\\PC{0,30}",
    ) {
        let input = json!({ "command": text, "file_path": text, "path": text, "url": text, "pattern": text, "subagent_type": text });
        verdict(vec![level("root", Authority::Root, rules)], &(tool, input));
        let _ = rule.parse::<Rule>();
    }
}
