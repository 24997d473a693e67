//! The corpus: what each Bash command line gets under given rules, and that no attempt to slip past an allow rule does.
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
fn every_command_line_of_the_corpus_gets_its_verdict_and_none_slips_through() {
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
    assert!(slips >= 100, "the corpus has only {slips} attempts to slip past an allow rule");
}
