//! The grammar of rules: which texts are rules, which are refused, and the position of the error. Also rules for tools without paths and
//! commands.
#![cfg(test)]

use std::path::Path;

use plexus_policy::{
    Authority, Call, Level, Policy, Rule, RuleEffect, RuleEntry, Scope, ScopeChain, VerdictEffect, covers,
};
use serde_json::{Value, json};

fn policy(rules: &[(RuleEffect, &str)]) -> Policy {
    let rules = rules.iter().map(|(effect, rule)| RuleEntry::parse(rule, *effect).expect("a rule")).collect();
    Policy::new(vec![Level { name: "root".to_owned(), authority: Authority::Root, rules }]).expect("a policy")
}

fn call<'a>(tool_name: &'a str, input: &'a Value) -> Call<'a> {
    Call { tool_name, input, cwd: Path::new("/w"), home: None, now: 0 }
}

fn verdict(rules: &[(RuleEffect, &str)], tool: &str, input: &Value) -> VerdictEffect {
    policy(rules).evaluate(&call(tool, input)).effect
}

use RuleEffect::{Allow as ALLOW, Ask as ASK, Deny as DENY};

#[test]
fn a_rule_has_one_canonical_text() {
    for (text, canonical) in [
        ("Bash", "Bash"),
        ("Bash()", "Bash"),
        ("Bash(*)", "Bash"),
        ("Bash(ls *)", "Bash(ls:*)"),
        ("Bash(ls:*)", "Bash(ls:*)"),
        ("Bash(ls*)", "Bash(ls*)"),
        ("Bash( git   status )", "Bash(git status)"),
        ("Bash(git commit -m \"a b\")", "Bash(git commit -m a\\ b)"),
        ("Bash(find . -name '*.rs')", "Bash(find . -name *.rs)"),
        ("Bash(echo \\*)", "Bash(echo \\*)"),
        ("Bash(echo (a))", "Bash(echo (a))"),
        ("Edit(src/**)", "Edit(src/**)"),
        ("Edit(/src)", "Edit(./src)"),
        ("Edit(./src/)", "Edit(./src)"),
        ("Read(~)", "Read(~/)"),
        ("Read(//abs/**)", "Read(//abs/**)"),
        ("WebFetch(domain:Example.COM.)", "WebFetch(domain:example.com)"),
        ("WebFetch(domain:*.example.com)", "WebFetch(domain:*.example.com)"),
        ("mcp__github__*", "mcp__github__*"),
        ("mcp__github", "mcp__github"),
        ("Agent(explore)", "Agent(explore)"),
        ("*", "*"),
        ("Skill(pdf:*)", "Skill(pdf:*)"),
    ] {
        assert_eq!(text.parse::<Rule>().map(|rule| rule.to_string()).as_deref(), Ok(canonical), "{text}");
    }
}

#[test]
fn an_invalid_rule_is_refused_with_the_position_of_the_error() {
    for (text, at, expected) in [
        ("", 0, "the name of a tool"),
        (" Bash", 0, "the name of a tool"),
        ("(ls)", 0, "the name of a tool"),
        ("Bash ls", 4, "`(` or the end"),
        ("Bash(ls", 7, "`)`"),
        ("Bash(ls) x", 10, "`)`"),
        ("Bash(echo 'a)", 10, "the closing ' of the quote that starts here"),
        ("Bash(echo \\)", 11, "a character after the backslash"),
        ("Bash(:*)", 5, "a command"),
        ("Bash(ls\n)", 7, "a visible character"),
        ("Bash(a '' b)", 5, "a command without empty words"),
        ("Edit(../x)", 5, "a path without `.` and `..`"),
        ("Edit(a/../b)", 7, "a path without `.` and `..`"),
        ("Edit(a//b)", 7, "a path without `//`"),
        ("Edit(!x)", 5, "a path (a rule cannot exclude paths)"),
        ("Read(~bob/x)", 6, "`/` (a rule can only name your own home directory)"),
        ("WebFetch(example.com)", 9, "`domain:`"),
        ("WebFetch(domain:a/b)", 17, "a letter, a digit, `-` or `.`"),
        ("WebFetch(domain:)", 16, "a host name"),
        ("mcp__a(x)", 6, "the end (`mcp__a` takes no specifier)"),
        ("Agent(a|b)", 7, "a letter, a digit or one of `_ - : . * /`"),
    ] {
        let error = text.parse::<Rule>().expect_err(text);
        assert_eq!((error.at, error.expected.as_str()), (at, expected), "{text}");
        assert_eq!(
            error.to_string(),
            format!("`{text}` is not a valid rule: at byte {at}: expected {expected}")
        );
    }
    assert!("Edit(a[b)".parse::<Rule>().is_err_and(|error| error.at == 5), "a class that is not closed");
}

#[test]
fn an_invalid_entry_names_its_error() {
    let entry = |json: Value| serde_json::from_value::<RuleEntry>(json).map_err(|error| error.to_string());
    let read = entry(json!({ "rule": "Bash(ls *)", "effect": "allow", "expires_at": 5 })).expect("an entry");
    assert_eq!(
        serde_json::to_value(&read).expect("JSON"),
        json!({ "rule": "Bash(ls:*)", "effect": "allow", "expires_at": 5 })
    );
    assert!(
        entry(json!({ "rule": "Bash(ls", "effect": "allow" }))
            .is_err_and(|error| error.contains("at byte 7: expected `)`"))
    );
    assert!(entry(json!({ "rule": "Bash", "effect": "permit" })).is_err());
    assert!(
        entry(json!({ "rule": "Bash", "effect": "allow", "until": 5 }))
            .is_err_and(|error| error.contains("until"))
    );
    for rule in ["mcp__*", "m*", "*__x", "mcp____*"] {
        assert!(
            entry(json!({ "rule": rule, "effect": "allow" }))
                .is_err_and(|error| error.contains("no wildcard before")),
            "{rule}"
        );
        assert!(entry(json!({ "rule": rule, "effect": "deny" })).is_ok(), "{rule}");
    }
    let schema = serde_json::to_value(schemars::schema_for!(RuleEntry)).expect("JSON");
    assert!(!schema.to_string().contains(":true"), "no boolean subschema: {schema}");
}

#[test]
fn tools_without_paths_are_matched_by_name() {
    let none = json!({});
    for (rule, tool, expected) in [
        ("mcp__a", "mcp__a__b", true),
        ("mcp__a__*", "mcp__a__b", true),
        ("mcp__a__b", "mcp__a__b", true),
        ("mcp__a__g*", "mcp__a__get", true),
        ("mcp__a", "mcp__ab__c", false),
        ("mcp__a__b", "mcp__a__bc", false),
        ("mcp__a__*", "mcp__b__a", false),
        ("TodoWrite", "TodoWrite", true),
        ("TodoWrite", "TodoWrite2", false),
        ("*", "Anything", true),
        ("Task", "Agent", true),
        ("Agent", "Task", true),
    ] {
        let effect = if expected { VerdictEffect::Allow } else { VerdictEffect::Unmentioned };
        assert_eq!(verdict(&[(ALLOW, rule)], tool, &none), effect, "{rule} and {tool}");
    }
    assert_eq!(verdict(&[(ALLOW, "*"), (DENY, "mcp__*")], "mcp__a__b", &none), VerdictEffect::Deny);
    let agent = json!({ "subagent_type": "explore" });
    assert_eq!(verdict(&[(ALLOW, "Agent(explore)")], "Task", &agent), VerdictEffect::Allow);
    assert_eq!(verdict(&[(ALLOW, "Agent(other)")], "Task", &agent), VerdictEffect::Unmentioned);
    assert_eq!(verdict(&[(DENY, "Task(exp*)")], "Agent", &agent), VerdictEffect::Deny);
    assert_eq!(verdict(&[(DENY, "Task(exp*)")], "Agent", &none), VerdictEffect::Ask);
    assert_eq!(verdict(&[(ALLOW, "Skill(pdf)")], "Skill", &json!({ "skill": "pdf" })), VerdictEffect::Allow);
}

#[test]
fn a_domain_rule_matches_the_host_that_gets_the_request() {
    let fetch =
        |rule: &str, effect, url: &str| verdict(&[(effect, rule)], "WebFetch", &json!({ "url": url }));
    for url in [
        "https://example.com",
        "https://example.com/a?b#c",
        "http://EXAMPLE.com:80/",
        "https://example.com./x",
        "https://example.com?@b.c",
    ] {
        assert_eq!(fetch("WebFetch(domain:example.com)", ALLOW, url), VerdictEffect::Allow, "{url}");
    }
    for url in [
        "https://example.com@evil.org/",
        "https://example.com:x@evil.org/",
        "https://evil.org/example.com",
        "https://evil.org#example.com",
        "https://example.com.evil.org",
        "https://notexample.com",
        "https://a.example.com",
        "https://evil.org\\@example.com",
        "https://example.com\\@evil.org",
        "https:/example.com",
        "//example.com",
        "example.com",
        "https://example.com\u{2044}x",
        "ftp://example.com",
        "file://example.com/x",
        "https://ex%61mple.com",
        "https:// example.com",
        "",
    ] {
        assert_eq!(fetch("WebFetch(domain:example.com)", ALLOW, url), VerdictEffect::Unmentioned, "{url}");
    }
    assert_eq!(
        fetch("WebFetch(domain:*.example.com)", ALLOW, "https://a.b.example.com"),
        VerdictEffect::Allow
    );
    assert_eq!(
        fetch("WebFetch(domain:*.example.com)", ALLOW, "https://example.com"),
        VerdictEffect::Unmentioned
    );
    assert_eq!(
        fetch("WebFetch(domain:*.example.com)", ALLOW, "https://xexample.com"),
        VerdictEffect::Unmentioned
    );
    assert_eq!(fetch("WebFetch(domain:evil.org)", DENY, "https://evil.org/x"), VerdictEffect::Deny);
    assert_eq!(fetch("WebFetch(domain:evil.org)", DENY, "https://a@evil.org/x"), VerdictEffect::Ask);
}

#[test]
fn a_verdict_names_the_rule_and_its_level() {
    let rules = |texts: &[(RuleEffect, &str)]| {
        texts.iter().map(|(effect, rule)| RuleEntry::parse(rule, *effect).expect("a rule")).collect()
    };
    let policy = Policy::new(vec![
        Level {
            name: "the operator".to_owned(),
            authority: Authority::Root,
            rules: rules(&[(ALLOW, "Bash(ls:*)"), (ALLOW, "Bash(grep:*)"), (ASK, "Bash(git push:*)")]),
        },
        Level {
            name: "session a".to_owned(),
            authority: Authority::Narrows,
            rules: rules(&[(ALLOW, "Bash(rm:*)"), (DENY, "Bash(ls /etc:*)")]),
        },
    ])
    .expect("a policy");
    for (command, effect, by, why) in [
        (
            "ls | grep a",
            VerdictEffect::Allow,
            vec![(0, 0), (0, 1)],
            "it is allowed by `Bash(ls:*)` of the operator, `Bash(grep:*)` of the operator",
        ),
        (
            "ls /etc",
            VerdictEffect::Deny,
            vec![(1, 1)],
            "it matches the deny rule `Bash(ls /etc:*)` of session a",
        ),
        (
            "git push",
            VerdictEffect::Ask,
            vec![(0, 2)],
            "it matches the ask rule `Bash(git push:*)` of the operator",
        ),
        (
            "$X",
            VerdictEffect::Ask,
            vec![(1, 1)],
            "a command's name is not known before it runs, so it may match the deny rule `Bash(ls /etc:*)` of session a",
        ),
        (
            "rm a",
            VerdictEffect::Unmentioned,
            vec![],
            "no rule allows `rm a`; Claude Code's permission rules decide",
        ),
        (
            "ls '",
            VerdictEffect::Ask,
            vec![(1, 1)],
            "the command cannot be read, so it may match the deny rule `Bash(ls /etc:*)` of session a",
        ),
    ] {
        let input = json!({ "command": command });
        let verdict = policy.evaluate(&call("Bash", &input));
        let places: Vec<_> = verdict.by.iter().map(|by| (by.level, by.index)).collect();
        assert_eq!((verdict.effect, places, verdict.why.as_str()), (effect, by, why), "{command}");
    }
}

#[test]
fn a_rule_decides_the_calls_that_it_matches() {
    let input = json!({ "command": "npm test && rm a" });
    let entry = |effect, rule| RuleEntry::parse(rule, effect).expect("a rule");
    assert!(
        !covers(&entry(ALLOW, "Bash(npm test:*)"), &call("Bash", &input)).expect("a policy"),
        "the other half is not allowed"
    );
    assert!(covers(&entry(DENY, "Bash(rm:*)"), &call("Bash", &input)).expect("a policy"));
    assert!(covers(&entry(ALLOW, "Bash"), &call("Bash", &input)).expect("a policy"));
}

#[test]
fn a_scope_contains_exactly_the_narrower_rules() {
    let scope = |rules: &[&str]| {
        Scope::new(&rules.iter().map(|rule| rule.parse().expect("a rule")).collect::<Vec<Rule>>())
            .expect("a scope")
    };
    let wide =
        scope(&["Bash(npm:*)", "Edit(//w/src/**)", "mcp__a", "WebFetch(domain:*.example.com)", "Read"]);
    let beyond = |rule: &str, wide: &Scope| {
        let chain = ScopeChain::new(wide.clone(), Vec::new());
        chain.first_beyond(&[rule.parse().expect("a rule")]).is_some()
    };
    for rule in [
        "Bash(npm:*)",
        "Bash(npm test:*)",
        "Bash(npm test)",
        "Edit(//w/src/a/**)",
        "Edit(//w/src/a.rs)",
        "mcp__a__b",
        "mcp__a__*",
        "WebFetch(domain:a.example.com)",
        "Read",
        "Grep",
        "Read(//x)",
    ] {
        assert!(!beyond(rule, &wide), "{rule}");
    }
    for rule in [
        "Bash",
        "Bash(npmx:*)",
        "Bash(np*)",
        "Bash(npm*)",
        "Bash(*)",
        "Edit",
        "Edit(//w/**)",
        "Edit(//w/src2/**)",
        "Edit(//w/s*/x)",
        "mcp__ab__c",
        "mcp__*",
        "*",
        "WebFetch",
        "WebFetch(domain:example.com)",
        "WebFetch(domain:xexample.com)",
    ] {
        assert!(beyond(rule, &wide), "{rule}");
    }
    assert!(!beyond("Bash", &scope(&["*"])) && !beyond("mcp__a", &scope(&["*"])));
    let input = json!({ "command": "npm test" });
    assert!(wide.may_allow(&call("Bash", &input)));
    assert!(!scope(&[]).may_allow(&call("Bash", &input)));
}

#[test]
fn a_verdict_names_the_word_that_prevents_a_match() {
    for (rule, command, why) in [
        (
            "Bash(git diff:*)",
            "git diff --output=x",
            "`--output=x` in `git diff --output=x` may do harm, so `Bash(git diff:*)` does not match it: \
             use a rule that contains this argument; Claude Code's permission rules decide",
        ),
        (
            "Bash(mytool:*)",
            "mytool a -v",
            "`-v` in `mytool a -v` may do harm, so `Bash(mytool:*)` does not match it: use a rule that contains \
             this argument; Claude Code's permission rules decide",
        ),
        (
            "Bash(eval:*)",
            "eval ls",
            "`eval ls` can do more than its words show, so `Bash(eval:*)` does not match it: use a rule without a \
             wildcard; Claude Code's permission rules decide",
        ),
        ("Bash(ls:*)", "rm a", "no rule allows `rm a`; Claude Code's permission rules decide"),
    ] {
        let policy = policy(&[(ALLOW, rule)]);
        let input = json!({ "command": command });
        assert_eq!(policy.evaluate(&call("Bash", &input)).why, why, "{command}");
    }
    let policy = policy(&[(ALLOW, "Bash(mytool -v:*)")]);
    let input = json!({ "command": "mytool -v a" });
    assert_eq!(policy.evaluate(&call("Bash", &input)).effect, VerdictEffect::Allow, "spelled out");
}

#[test]
fn a_scope_does_not_contain_a_rule_for_a_call_that_it_does_not_match() {
    let scope = |rule: &str| Scope::new(&[rule.parse().expect("a rule")]).expect("a scope");
    for (wide, narrow) in [
        ("Bash(find:*)", "Bash(find . -exec rm {} +)"),
        ("Bash(find:*)", "Bash(find . -exec:*)"),
        ("Bash(find:*)", "Bash(find . -delete)"),
        ("Bash(git:*)", "Bash(git -c core.pager=x:*)"),
        ("Bash(ls:*)", "Monitor(ls:*)"),
        ("Bash(ls:*)", "Monitor(ls)"),
    ] {
        let chain = ScopeChain::new(scope(wide), Vec::new());
        assert!(chain.first_beyond(&[narrow.parse().expect("a rule")]).is_some(), "{narrow} in {wide}");
    }
    let chain = ScopeChain::new(scope("Bash(find:*)"), Vec::new());
    assert!(chain.first_beyond(&["Bash(find src:*)".parse().expect("a rule")]).is_none());
}

#[test]
fn every_scope_of_a_chain_must_match_the_call() {
    let scope = |rule: &str| Scope::new(&[rule.parse().expect("a rule")]).expect("a scope");
    let chain = ScopeChain::new(scope("Bash(find . -exec:*)"), vec![scope("Bash"), scope("Bash(find:*)")]);
    let may_allow = |command: &str| chain.may_allow(&call("Bash", &json!({ "command": command })));
    assert!(!may_allow("find . -exec touch x +"));
    assert!(!may_allow("find src"));
    let chain = ScopeChain::new(scope("Bash(find src:*)"), vec![scope("Bash"), scope("Bash(find:*)")]);
    assert!(chain.may_allow(&call("Bash", &json!({"command": "find src"}))));
}

#[test]
fn a_quoted_or_padded_star_does_not_become_the_whole_tool() {
    for text in ["Bash(* )", "Bash('*')", "Bash('*'\"\")"] {
        assert!(text.parse::<Rule>().is_err(), "{text}");
    }
    assert_eq!("Bash(*)".parse::<Rule>().map(|rule| rule.to_string()), Ok("Bash".to_owned()));
}
