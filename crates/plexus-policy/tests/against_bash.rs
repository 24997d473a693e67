//! The reader against the shell itself: whatever is allowed is run in a real bash where no program can be found, and every
//! name that bash looks for has to be the one that the rules allow.
#![cfg(test)]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

/// What lines are made of: everything that has a meaning to a shell, one name that is allowed and one that is not.
const TOKENS: [&str; 74] = [
    "ok",
    "ok ",
    "ok",
    " ",
    " ",
    "bad",
    "bad ",
    "bad",
    "a",
    "\n",
    "\n",
    ";",
    "; ",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "(",
    ")",
    "((",
    "))",
    "{ ",
    "; }",
    "{",
    "}",
    "$(",
    "$(",
    "`",
    "`",
    "\"",
    "\"",
    "'",
    "'",
    "\\",
    "\\\n",
    "$",
    "${x",
    "${x:-",
    "}",
    "$((",
    "$[",
    "]",
    "#",
    " #",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n\t",
    "E\n",
    "<<<",
    "<(",
    ">(",
    ">",
    "<",
    "2>&1",
    "if ",
    "then ",
    "fi",
    "while ",
    "do ",
    "done",
    "case a in ",
    "a) ",
    ";;",
    "esac",
    "for x in ",
    "[[ ",
    " ]]",
    "! ",
    "$'",
    "x=",
    "f()",
    "*",
];

/// Makes every lookup of a command leave its name; the shell's own `ok` and the harmless builtins leave none.
const PRELUDE: &str = r#"
ulimit -t 1 -u 400
ok() { :; }
command_not_found_handle() { printf 'RAN %s\n' "$1" >&9; }
"#;

fn bash() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("bash")).find(|bash| bash.exists());
    found.expect("this test needs bash")
}

/// The names that bash looked for while it ran a line.
fn looked_for(bash: &Path, line: &str, cwd: &Path) -> Vec<String> {
    let log = cwd.join("log");
    let script = format!("exec 9>>log\n{PRELUDE}\neval \"$LINE\"");
    let status = Command::new(bash)
        .args(["--norc", "--noprofile", "-c", &script])
        .env_clear()
        .env("HOME", cwd)
        .env("PATH", "/nonexistent")
        .env("LINE", line)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "bash can be started");
    let found = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    found.lines().map(str::to_owned).collect()
}

/// Runs every line that the rules allow, and sees that bash looks for nothing it must not.
fn hold(rules: &[(RuleEffect, &str)], start: &'static str, is_wrong: impl Fn(&str) -> bool) {
    let bash = &bash();
    let cases =
        std::env::var("PLEXUS_POLICY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000);
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path();
    let rules = rules.iter().map(|(effect, rule)| RuleEntry::parse(rule, *effect).expect("a rule")).collect();
    let level = Level { name: "root".to_owned(), authority: Authority::Root, rules };
    let policy = Policy::new(vec![level]).expect("a policy");
    assert_eq!(looked_for(bash, "ok $(bad)", cwd), ["RAN bad"], "what runs is seen");
    let line = prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 1..14)
        .prop_map(|tokens| tokens.concat());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let allowed = Cell::new(0);
    let run = TestRunner::new(config).run(&(start, line), |(start, line)| {
        let line = format!("{start}{line}");
        let input = json!({ "command": line });
        let verdict = policy.evaluate(&Call { tool_name: "Bash", input: &input, cwd, home: None, now: 0 });
        if verdict.effect == VerdictEffect::Allow {
            allowed.set(allowed.get() + 1);
            let ran = looked_for(bash, &line, cwd);
            prop_assert!(!ran.iter().any(|name| is_wrong(name)), "{line:?} is allowed and {ran:?}");
        }
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    assert!(allowed.get() > 20, "only {} lines were allowed: this shows nothing", allowed.get());
}

#[test]
fn bash_runs_nothing_in_an_allowed_line_that_no_rule_names() {
    hold(&[(RuleEffect::Allow, "Bash(ok:*)")], "ok( [a-z]{1,2}){0,1}", |_| true);
}

#[test]
fn bash_runs_nothing_that_is_denied_in_a_line_that_is_allowed() {
    let rules = [(RuleEffect::Allow, "Bash"), (RuleEffect::Deny, "Bash(bad:*)")];
    hold(&rules, "(ok )?", |ran| ran == "RAN bad");
}
