//! The Bash parser compared with real shells: every allowed line runs in a real bash and a real zsh that can find no program. The rules must
//! allow every command name that the shell looks up and every file that it writes.
#![cfg(test)]

mod tokens;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

/// A shell, and how a line is passed to it.
#[derive(Clone, Copy)]
struct Shell {
    name: &'static str,
    /// Arguments that keep it from reading the user's files.
    args: &'static [&'static str],
    /// Runs before the line. It makes every command lookup write the name, except for `ok`.
    prelude: &'static str,
}

const BASH: Shell = Shell {
    name: "bash",
    args: &["--norc", "--noprofile"],
    prelude: r#"
        ok() { :; }
        command_not_found_handle() { printf 'RAN %s\n' "$1" >&9; }
    "#,
};

/// With its default options.
const ZSH: Shell = Shell {
    name: "zsh",
    args: &["-f"],
    prelude: r#"
        ok() { :; }
        command_not_found_handler() { print -r -u9 -- "RAN $1"; }
    "#,
};

/// As Claude Code runs it: with options that a user may have set in `.zshrc`, and then Claude Code's own.
const ZSH_OF_CLAUDE_CODE: Shell = Shell {
    name: "zsh",
    args: &["-f"],
    prelude: r#"
        ok() { :; }
        command_not_found_handler() { print -r -u9 -- "RAN $1"; }
        setopt RC_QUOTES KSH_GLOB SH_WORD_SPLIT GLOB_SUBST GLOB_ASSIGN PROMPT_SUBST CDABLE_VARS EXTENDED_GLOB
        setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_BRACE_CCL NO_MAGIC_EQUAL_SUBST
    "#,
};

impl Shell {
    fn program(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(self.name)).find(|program| program.exists())
    }
}

/// The names that the shell looked up while it ran a line, and the files that it created outside `w`.
fn effects(shell: Shell, program: &Path, line: &str, cwd: &Path) -> Vec<String> {
    let log = cwd.join("log");
    let script = format!("ulimit -t 1; ulimit -u 400; exec 9>>log\n{}\neval \"$LINE\"", shell.prelude);
    let status = Command::new(program)
        .args(shell.args)
        .args(["-c", &script])
        .env_clear()
        .env("HOME", cwd)
        .env("PATH", "/nonexistent")
        .env("LINE", line)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{} can be started", shell.name);
    let found = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let mut effects: Vec<String> = found.lines().map(str::to_owned).collect();
    for file in std::fs::read_dir(cwd).expect("the folder").flatten() {
        if file.file_name() != "w" {
            effects.push(format!("MADE {}", file.file_name().to_string_lossy()));
            let _ = std::fs::remove_file(file.path());
        }
    }
    effects
}

/// The number of lines.
fn cases() -> u32 {
    std::env::var("PLEXUS_POLICY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

fn policy(rules: &[(RuleEffect, &str)], cwd: &Path) -> Policy {
    let entry = |(effect, rule): &(RuleEffect, &str)| RuleEntry::parse(rule, *effect).expect("a rule");
    let rules = rules.iter().map(|rule| entry(rule).anchored(cwd, None)).collect();
    Policy::new(vec![Level { name: "root".to_owned(), authority: Authority::Root, rules }]).expect("a policy")
}

/// Runs every line that the rules allow, and checks that it has no forbidden effect.
fn check_allowed_lines(
    test: &str,
    shell: Shell,
    rules: &[(RuleEffect, &str)],
    start: &'static str,
    is_wrong: impl Fn(&str) -> bool,
) {
    let Some(program) = shell.program() else { return plexus_testkit::skip(test, shell.name) };
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path();
    std::fs::create_dir(cwd.join("w")).expect("a folder that may be written to");
    let policy = policy(rules, cwd);
    assert_eq!(effects(shell, &program, "ok $(bad) >f", cwd), ["RAN bad", "MADE f"], "effects are seen");
    let tokens = [tokens::COMMON.as_slice(), tokens::ZSH.as_slice()].concat();
    let line = prop::collection::vec(prop::sample::select(tokens), 1..14).prop_map(|tokens| tokens.concat());
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let allowed = Cell::new(0);
    let run = TestRunner::new(config).run(&(start, line), |(start, line)| {
        let line = format!("{start}{line}");
        let input = json!({ "command": line });
        let verdict = policy.evaluate(&Call { tool_name: "Bash", input: &input, cwd, home: None, now: 0 });
        if verdict.effect == VerdictEffect::Allow {
            allowed.set(allowed.get() + 1);
            let effects = effects(shell, &program, &line, cwd);
            prop_assert!(
                !effects.iter().any(|effect| is_wrong(effect)),
                "{line:?} is allowed and {effects:?}"
            );
        }
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    println!("{test}: {} of {} lines were allowed and run", allowed.get(), cases());
    assert!(allowed.get() > 20, "only {} lines were allowed: this shows nothing", allowed.get());
}

/// Names that are allowed with any operands. Some are builtins of zsh that evaluate their operands.
const ALLOWED: [(RuleEffect, &str); 10] = [
    (RuleEffect::Allow, "Bash(ok:*)"),
    (RuleEffect::Allow, "Edit(w/**)"),
    (RuleEffect::Allow, "Bash(printf:*)"),
    (RuleEffect::Allow, "Bash(print:*)"),
    (RuleEffect::Allow, "Bash(test:*)"),
    (RuleEffect::Allow, "Bash([:*)"),
    (RuleEffect::Allow, "Bash(exit:*)"),
    (RuleEffect::Allow, "Bash(shift:*)"),
    (RuleEffect::Allow, "Bash(noglob:*)"),
    (RuleEffect::Allow, "Bash(cd:*)"),
];

const DENIED: [(RuleEffect, &str); 2] = [(RuleEffect::Allow, "Bash"), (RuleEffect::Deny, "Bash(bad:*)")];

const STARTS: &str = "ok( [a-z]{1,2}){0,1}|printf %d |printf |test |\\[ |exit |shift |x=";

#[test]
fn bash_runs_and_writes_only_what_rules_name_in_an_allowed_line() {
    check_allowed_lines("bash, allowed", BASH, &ALLOWED[..2], "ok( [a-z]{1,2}){0,1}", |_| true);
}

#[test]
fn bash_runs_no_denied_command_in_an_allowed_line() {
    check_allowed_lines("bash, denied", BASH, &DENIED, "(ok )?", |ran| ran == "RAN bad");
}

#[test]
fn zsh_runs_and_writes_only_what_rules_name_in_an_allowed_line() {
    let test = "zsh_runs_and_writes_only_what_rules_name_in_an_allowed_line";
    check_allowed_lines(test, ZSH, &ALLOWED, STARTS, |_| true);
    check_allowed_lines(test, ZSH_OF_CLAUDE_CODE, &ALLOWED, STARTS, |_| true);
}

#[test]
fn zsh_runs_no_denied_command_in_an_allowed_line() {
    let test = "zsh_runs_no_denied_command_in_an_allowed_line";
    check_allowed_lines(test, ZSH, &DENIED, "(ok )?", |ran| ran == "RAN bad");
    check_allowed_lines(test, ZSH_OF_CLAUDE_CODE, &DENIED, "(ok )?", |ran| ran == "RAN bad");
}
