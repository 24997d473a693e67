//! The corpus: the verdict on each Bash command line under given rules. No attempt to bypass an allow rule succeeds.
#![cfg(test)]

use std::path::Path;

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Corpus {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    title: String,
    #[serde(default)]
    slips: bool,
    rules: Vec<String>,
    is: Verdicts,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Verdicts {
    allow: Vec<String>,
    unmentioned: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

fn policy(rules: &[String], cwd: &Path) -> Policy {
    let entries = rules.iter().map(|line| {
        let (effect, rule) = line.split_once(' ').expect("an effect and a rule");
        let effect = serde_json::from_value::<RuleEffect>(json!(effect)).expect("an effect");
        RuleEntry::parse(rule, effect).expect("a rule").anchored(cwd, Some(Path::new("/home/somebody")))
    });
    let level = Level { name: "the corpus".to_owned(), authority: Authority::Root, rules: entries.collect() };
    Policy::new(vec![level]).expect("a policy")
}

#[test]
fn every_command_line_of_the_corpus_gets_its_verdict() {
    let corpus: Corpus = toml::from_str(include_str!("corpus/bash.toml")).expect("the corpus can be read");
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path().join("project");
    std::fs::create_dir_all(cwd.join("src")).expect("a project");
    std::fs::create_dir(folder.path().join("outside")).expect("a folder outside");
    std::fs::write(cwd.join("package.json"), "{}").expect("a file");
    std::os::unix::fs::symlink("../outside", cwd.join("out")).expect("a link out");
    std::os::unix::fs::symlink("src", cwd.join("in")).expect("a link in");

    let (mut lines, mut slips, mut wrong) = (0, 0, Vec::new());
    for group in &corpus.group {
        let policy = policy(&group.rules, &cwd);
        let Verdicts { allow, unmentioned, ask, deny } = &group.is;
        let expected = [
            (VerdictEffect::Allow, allow),
            (VerdictEffect::Unmentioned, unmentioned),
            (VerdictEffect::Ask, ask),
            (VerdictEffect::Deny, deny),
        ];
        for (effect, commands) in expected {
            for command in commands {
                lines += 1;
                slips += usize::from(group.slips && effect != VerdictEffect::Allow);
                let input = json!({ "command": command });
                let home = Some(Path::new("/home/somebody"));
                let verdict =
                    policy.evaluate(&Call { tool_name: "Bash", input: &input, cwd: &cwd, home, now: 0 });
                if verdict.effect != effect {
                    wrong.push(format!(
                        "{}: {command:?}\n    is {:?}, not {effect:?}: {}",
                        group.title, verdict.effect, verdict.why
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {lines} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines >= 300, "the corpus has only {lines} command lines");
    assert!(slips >= 100, "the corpus has only {slips} attempts to bypass an allow rule");
}

/// A row of `bypass.tsv` or `ordinary.tsv`: the allow rules, joined by ` + `, and a line as in a JSON string.
struct Row {
    rules: Vec<String>,
    command: String,
}

fn rows(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows = lines.map(|line| {
        let mut columns = line.split('\t');
        let rules = columns.next().expect("rules").split(" + ").map(|rule| format!("allow {rule}")).collect();
        let command = columns.next().unwrap_or_else(|| panic!("no command in {line:?}"));
        let command =
            serde_json::from_str(&format!("\"{command}\"")).unwrap_or_else(|e| panic!("{command}: {e}"));
        Row { rules, command }
    });
    rows.collect()
}

/// The verdict on each row, with the reason.
fn verdicts(rows: &[Row]) -> Vec<(VerdictEffect, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    // `src` belongs to the working directory's repository; `sub` and `ev` are separate repositories.
    for path in [".git", "src", "packages/a", "sub/.git", "ev/objects", "ev/HEAD", "src/in/.git"] {
        std::fs::create_dir_all(folder.path().join(path)).expect("a folder in the project");
    }
    let home = Some(Path::new("/home/somebody"));
    let judge = |row: &Row| {
        let policy = policy(&row.rules, folder.path());
        let input = json!({ "command": row.command });
        let call = Call { tool_name: "Bash", input: &input, cwd: folder.path(), home, now: 0 };
        let verdict = policy.evaluate(&call);
        (verdict.effect, format!("{} under {}: {}", row.command, row.rules.join(", "), verdict.why))
    };
    rows.iter().map(judge).collect()
}

/// A wildcard matches operands and harmless options. No line of the bypass corpus, which writes files or runs programs, is allowed. At least
/// 95 of 100 ordinary lines are.
#[test]
fn a_wildcard_matches_ordinary_lines_and_no_bypass() {
    let bypass = rows(include_str!("corpus/bypass.tsv"));
    let ordinary = rows(include_str!("corpus/ordinary.tsv"));
    let wrong = |rows: &[Row], right: fn(VerdictEffect) -> bool| -> Vec<String> {
        verdicts(rows).into_iter().filter(|(effect, _)| !right(*effect)).map(|(_, why)| why).collect()
    };
    let allowed = wrong(&bypass, |effect| effect != VerdictEffect::Allow);
    let asked = wrong(&ordinary, |effect| effect == VerdictEffect::Allow);
    println!("wrongly allowed: {} of {} lines that write files or run programs", allowed.len(), bypass.len());
    println!("wrongly asked: {} of {} ordinary lines\n{}", asked.len(), ordinary.len(), asked.join("\n"));
    assert!(allowed.is_empty(), "wrongly allowed:\n{}", allowed.join("\n"));
    assert!(asked.len() * 20 <= ordinary.len(), "wrongly asked:\n{}", asked.join("\n"));
    assert!(bypass.len() >= 400 && ordinary.len() >= 300, "{} and {} lines", bypass.len(), ordinary.len());
}
