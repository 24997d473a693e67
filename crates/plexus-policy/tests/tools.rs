//! Rules for Bash apply to every tool that runs a command line, according to its class or its input. They restrict those tools and never
//! allow them.
#![cfg(test)]

use std::path::Path;

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use serde_json::{Value, json};

use RuleEffect::{Allow, Ask, Deny};

fn verdict(rules: &[(&str, RuleEffect)], tool_name: &str, input: &Value) -> VerdictEffect {
    let cwd = Path::new("/work");
    let rules = rules.iter().map(|(rule, effect)| {
        RuleEntry::parse(rule, *effect).expect("a rule").anchored(cwd, Some(Path::new("/home/u")))
    });
    let level = Level { name: "root".to_owned(), authority: Authority::Root, rules: rules.collect() };
    let policy = Policy::new(vec![level]).expect("a policy");
    let call = Call { tool_name, input, cwd, home: Some(Path::new("/home/u")), now: 0 };
    policy.evaluate(&call).effect
}

const DENY_RM: &[(&str, RuleEffect)] = &[("*", Allow), ("Bash(rm:*)", Deny)];

#[test]
fn a_denied_command_is_denied_for_every_tool_that_runs_it() {
    for (tool, input) in [
        ("Bash", json!({"command": "rm -rf x"})),
        ("Monitor", json!({"command": "tail -f log | xargs rm", "description": "d", "timeout_ms": 1})),
        ("PowerShell", json!({"command": "rm -rf x"})),
        ("mcp__x__run", json!({"command": "rm -rf x"})),
        ("mcp__x__run", json!({"cmd": "sudo rm -rf x"})),
        ("mcp__x__run", json!({"command": ["rm", "-rf", "x"]})),
        ("mcp__x__run", json!({"command": "sudo", "args": ["rm", "x"]})),
        ("mcp__x__batch", json!({"steps": [{"shellScript": "ls; rm x"}]})),
        ("mcp__workspace__bash", json!({"input": "rm x"})),
        ("ToolOfTomorrow", json!({"command": "rm x"})),
    ] {
        assert_eq!(verdict(DENY_RM, tool, &input), VerdictEffect::Deny, "{tool} {input}");
    }
    for (tool, input) in [
        ("Monitor", json!({"command": "tail -f log"})),
        ("mcp__x__run", json!({"command": "ls"})),
        ("mcp__x__say", json!({"message": "rm -rf x (please)"})),
        ("TodoWrite", json!({"todos": [{"content": "rm x"}]})),
        ("mcp__plexus__loopback_respond", json!({"updated_input": {"command": "rm x"}})),
    ] {
        assert_eq!(verdict(DENY_RM, tool, &input), VerdictEffect::Allow, "{tool} {input}");
    }
}

#[test]
fn a_command_with_an_ask_rule_needs_approval_for_every_tool_that_runs_it() {
    let rules = [("*", Allow), ("Bash(git push:*)", Ask)];
    for (tool, input) in [
        ("Monitor", json!({"command": "git push"})),
        ("mcp__x__run", json!({"command": "git", "args": ["push"]})),
        ("PowerShell", json!({"command": "git push"})),
    ] {
        assert_eq!(verdict(&rules, tool, &input), VerdictEffect::Ask, "{tool} {input}");
    }
}

#[test]
fn an_unreadable_command_line_needs_approval() {
    for (tool, input) in [
        ("Monitor", json!({"ws": {"url": "wss://example.com"}})),
        ("mcp__x__run", json!({"code": "import os; os.system('rm x')"})),
        ("mcp__x__run", json!({"command": "'"})),
        ("PowerShell", json!({"command": "Remove-Item x"})),
        ("REPL", json!({"code": "await Bash({command: 'rm x'})"})),
        ("REPL", json!({"code": "x"})),
        ("Workflow", json!({"script": "x"})),
        ("Workflow", json!({"name": "stored"})),
    ] {
        assert_eq!(verdict(DENY_RM, tool, &input), VerdictEffect::Ask, "{tool} {input}");
    }
}

#[test]
fn an_input_that_is_too_large_to_search_needs_approval() {
    let input = json!({"texts": vec!["x"; 2_000], "command": "ls"});
    for rule in ["Bash(rm:*)", "Read(.env)", "WebFetch(domain:a.example)", "Read"] {
        assert_eq!(
            verdict(&[("*", Allow), (rule, Deny)], "mcp__x__run", &input),
            VerdictEffect::Ask,
            "{rule}"
        );
    }
    let rules = [("*", Allow), ("TodoWrite", Deny)];
    assert_eq!(verdict(&rules, "mcp__x__run", &input), VerdictEffect::Allow);
}

#[test]
fn a_rule_for_all_of_bash_restricts_all_tools_that_run_commands() {
    for (effect, expected) in [(Deny, VerdictEffect::Deny), (Ask, VerdictEffect::Ask)] {
        for (tool, input) in [
            ("Monitor", json!({"command": "ls"})),
            ("Monitor", json!({"ws": {"url": "wss://example.com"}})),
            ("PowerShell", json!({"command": "ls"})),
            ("REPL", json!({"code": "1"})),
            ("mcp__x__run", json!({"command": "ls"})),
        ] {
            let rules = [("*", Allow), ("Bash", effect)];
            assert_eq!(verdict(&rules, tool, &input), expected, "{tool} {input}");
        }
        let plain = json!({"issue": 7});
        let rules = [("*", Allow), ("Bash", effect)];
        assert_eq!(verdict(&rules, "mcp__github__get", &plain), VerdictEffect::Allow);
    }
}

#[test]
fn an_allow_rule_for_bash_allows_only_bash() {
    let input = json!({"command": "ls", "code": "ls", "script": "ls"});
    for rule in ["Bash", "Bash(ls:*)", "Bash(ls)"] {
        assert_eq!(verdict(&[(rule, Allow)], "Bash", &input), VerdictEffect::Allow, "{rule}");
        for tool in ["Monitor", "PowerShell", "REPL", "Workflow", "mcp__x__run", "mcp__x__bash"] {
            assert_eq!(verdict(&[(rule, Allow)], tool, &input), VerdictEffect::Unmentioned, "{rule} {tool}");
        }
    }
    for rule in ["Monitor", "Monitor(ls:*)"] {
        assert_eq!(verdict(&[(rule, Allow)], "Monitor", &input), VerdictEffect::Allow, "{rule}");
        assert_eq!(verdict(&[(rule, Allow)], "Bash", &input), VerdictEffect::Unmentioned, "{rule}");
    }
    // PowerShell is not parsed, so no pattern allows a command in it.
    assert_eq!(verdict(&[("PowerShell(ls:*)", Allow)], "PowerShell", &input), VerdictEffect::Unmentioned);
    assert_eq!(verdict(&[("PowerShell", Allow)], "PowerShell", &input), VerdictEffect::Allow);
}

#[test]
fn a_rule_for_another_shell_tool_restricts_only_that_tool() {
    let rules = [("*", Allow), ("Monitor(rm:*)", Deny)];
    let input = json!({"command": "rm x"});
    assert_eq!(verdict(&rules, "Monitor", &input), VerdictEffect::Deny);
    assert_eq!(verdict(&rules, "Bash", &input), VerdictEffect::Allow);
    assert_eq!(verdict(&rules, "mcp__x__run", &input), VerdictEffect::Allow);
}

#[test]
fn a_protected_file_or_host_in_the_input_of_an_unknown_tool_needs_approval() {
    for rule in ["Read(.env)", "Edit(.env)", "Edit(//work/.env)"] {
        for input in [
            json!({"path": "/work/.env"}),
            json!({"file": ".env"}),
            json!({"uri": "file:///work/.env"}),
            json!({"deep": [{"er": "sub/../.env"}]}),
            json!({"command": "cat .env"}),
        ] {
            let rules = [("*", Allow), (rule, Deny)];
            assert_eq!(verdict(&rules, "mcp__fs__read", &input), VerdictEffect::Ask, "{rule} {input}");
        }
        let other = json!({"path": "/work/src/main.rs", "text": "the .env file"});
        assert_eq!(verdict(&[("*", Allow), (rule, Deny)], "mcp__fs__read", &other), VerdictEffect::Allow);
    }
    let home = json!({"path": "~/.ssh/id"});
    assert_eq!(
        verdict(&[("*", Allow), ("Read(~/.ssh/**)", Deny)], "mcp__fs__read", &home),
        VerdictEffect::Ask
    );
    // A command line in such an input is denied like one of Bash.
    let writes = json!({"command": "echo x > .env"});
    assert_eq!(verdict(&[("*", Allow), ("Edit(.env)", Deny)], "mcp__x__run", &writes), VerdictEffect::Deny);
    let hosts = [("*", Allow), ("WebFetch(domain:evil.example)", Deny)];
    let url = json!({"link": "https://evil.example/x"});
    assert_eq!(verdict(&hosts, "mcp__web__get", &url), VerdictEffect::Ask);
    let url = json!({"link": "https://good.example/x"});
    assert_eq!(verdict(&hosts, "mcp__web__get", &url), VerdictEffect::Allow);
}
