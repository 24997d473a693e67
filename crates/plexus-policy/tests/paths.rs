//! Rules for paths: an allow rule matches the resolved path, after links and `..`. A deny rule matches both the literal and the resolved
//! path.
#![cfg(test)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use serde_json::{Value, json};

use VerdictEffect::{Allow, Ask, Deny, Unmentioned};

struct Project {
    _folder: tempfile::TempDir,
    cwd: PathBuf,
}

/// A project with `src/a.rs`, `src/deep/b.rs`, `.env`, links out of it and into it, and a dangling link.
fn project() -> Project {
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path().canonicalize().expect("a place").join("project");
    std::fs::create_dir_all(cwd.join("src/deep")).expect("folders");
    std::fs::create_dir_all(cwd.join("../outside")).expect("a folder");
    for file in ["src/a.rs", "src/deep/b.rs", ".env", "../outside/secret"] {
        std::fs::write(cwd.join(file), "").expect("a file");
    }
    for (to, link) in [
        ("../outside", "out"),
        ("src", "in"),
        ("../outside/secret", "src/secret.rs"),
        ("../../outside/new", "src/new.rs"),
        ("loop", "loop"),
        ("../../outside", "src/out"),
        (".env", "settings"),
    ] {
        symlink(to, cwd.join(link)).expect("a link");
    }
    Project { _folder: folder, cwd }
}

impl Project {
    fn verdict(&self, rules: &[(RuleEffect, &str)], tool: &str, input: Value) -> VerdictEffect {
        let home = self.cwd.join("../outside");
        let entries = rules.iter().map(|(effect, rule)| {
            RuleEntry::parse(rule, *effect).expect("a rule").anchored(&self.cwd, Some(&home))
        });
        let level = Level { name: "root".to_owned(), authority: Authority::Root, rules: entries.collect() };
        let policy = Policy::new(vec![level]).expect("a policy");
        policy
            .evaluate(&Call { tool_name: tool, input: &input, cwd: &self.cwd, home: Some(&home), now: 0 })
            .effect
    }

    fn edit(&self, rules: &[(RuleEffect, &str)], path: &str) -> VerdictEffect {
        self.verdict(rules, "Edit", json!({ "file_path": path }))
    }
}

const ALLOW: RuleEffect = RuleEffect::Allow;
const DENY: RuleEffect = RuleEffect::Deny;

#[test]
fn an_allow_rule_matches_the_resolved_path() {
    let project = project();
    let absolute = |path: &str| project.cwd.join(path).display().to_string();
    let rules = [(ALLOW, "Edit(src/**)")];
    for path in [
        "src/a.rs",
        "./src/a.rs",
        "src/deep/b.rs",
        "src/deep/../a.rs",
        "src/fresh.rs",
        "src/fresh/x.rs",
        "in/a.rs",
        "in/fresh.rs",
    ] {
        assert_eq!(project.edit(&rules, path), Allow, "{path}");
        assert_eq!(project.edit(&rules, &absolute(path)), Allow, "{path}, absolute");
    }
    for path in [
        "a.rs",
        "src",
        "src2/a.rs",
        ".env",
        "src/../.env",
        "src/../../outside/secret",
        "out/secret",
        "out/../project/src/a.rs",
        "src/secret.rs",
        "src/new.rs",
        "src/out/secret",
        "src/out/fresh",
        "loop",
        "src/missing/../../.env",
        "/etc/passwd",
        "deep/src/a.rs",
        "SRC/a.rs",
        "src\0/a",
        "~/x",
        "",
    ] {
        assert_eq!(project.edit(&rules, path), Unmentioned, "{path}");
    }
}

#[test]
fn a_deny_rule_matches_the_literal_and_the_resolved_path() {
    let project = project();
    let rules = [
        (ALLOW, "Edit"),
        (ALLOW, "Read"),
        (DENY, "Read(.env)"),
        (DENY, "Edit(src/**)"),
        (DENY, "Edit(./out/secret)"),
    ];
    for path in [
        ".env",
        "./.env",
        "src/../.env",
        "settings",
        "deep/.env",
        "src/a.rs",
        "in/a.rs",
        "src/new.rs",
        "lib/src/a.rs",
        "out/secret",
        "../outside/secret",
        "src/out/x",
    ] {
        assert_eq!(project.edit(&rules, path), Deny, "{path}");
    }
    for path in ["a.rs", "env", "out/other"] {
        assert_eq!(project.edit(&rules, path), Allow, "{path}");
    }
    for path in ["~/x", "loop", "a\0b"] {
        assert_eq!(project.edit(&rules, path), Ask, "{path:?} cannot be judged");
    }
    assert_eq!(project.verdict(&rules, "Read", json!({ "file_path": "settings" })), Deny);
    assert_eq!(project.verdict(&rules, "Read", json!({ "file_path": "src/a.rs" })), Allow);
    for input in [json!({}), json!({ "file_path": 1 }), json!({ "path": "a" }), json!(null), json!([])] {
        assert_eq!(project.verdict(&rules[2..], "Edit", input.clone()), Ask, "{input} cannot be judged");
        assert_eq!(
            project.verdict(&[(ALLOW, "Edit(**)")], "Edit", input.clone()),
            Unmentioned,
            "{input} cannot be judged"
        );
    }
}

#[test]
fn a_rule_applies_to_all_tools_of_its_kind() {
    let project = project();
    let rules = [(ALLOW, "Edit(src/**)"), (ALLOW, "Read(src/**)")];
    for (tool, field) in [
        ("Edit", "file_path"),
        ("Write", "file_path"),
        ("MultiEdit", "file_path"),
        ("NotebookEdit", "notebook_path"),
    ] {
        assert_eq!(project.verdict(&rules[..1], tool, json!({ (field): "src/a.rs" })), Allow, "{tool}");
        assert_eq!(
            project.verdict(&[(ALLOW, "Write(src/**)")], tool, json!({ (field): "src/a.rs" })),
            Allow,
            "{tool}"
        );
        assert_eq!(project.verdict(&rules[1..], tool, json!({ (field): "src/a.rs" })), Unmentioned, "{tool}");
        assert_eq!(project.verdict(&[(ALLOW, "Edit")], tool, json!({ (field): "x" })), Allow, "{tool}");
        assert_eq!(project.verdict(&[(DENY, "Edit")], tool, json!({ (field): "x" })), Deny, "{tool}");
    }
    assert_eq!(project.verdict(&[(ALLOW, "Write")], "Edit", json!({ "file_path": "x" })), Unmentioned);
}

#[test]
fn a_search_is_allowed_if_its_whole_directory_is() {
    let project = project();
    let rules = [(ALLOW, "Read(src/**)")];
    for tool in ["Grep", "Glob", "LS"] {
        let search = |path: &str| project.verdict(&rules, tool, json!({ "path": path, "pattern": "*.rs" }));
        assert_eq!(search("src"), Allow, "{tool}");
        assert_eq!(search("src/deep"), Allow, "{tool}");
        assert_eq!(search("in"), Allow, "{tool}");
        assert_eq!(search("."), Unmentioned, "{tool}");
        assert_eq!(search("src/out"), Unmentioned, "{tool}");
        assert_eq!(project.verdict(&rules, tool, json!({ "pattern": "x" })), Unmentioned, "{tool}");
        assert_eq!(
            project.verdict(&[(ALLOW, "Read(src/*)")], tool, json!({ "path": "src", "pattern": "x" })),
            Allow,
            "{tool}"
        );
    }
    for pattern in ["/etc/*", "../*", "a/../../x", "~/x", "{a,..}/x"] {
        assert_eq!(
            project.verdict(&rules, "Glob", json!({ "path": "src", "pattern": pattern })),
            Unmentioned,
            "{pattern}"
        );
    }
    let secret = [(ALLOW, "Read"), (DENY, "Read(./.env)")];
    assert_eq!(
        project.verdict(&secret, "Grep", json!({ "pattern": "x" })),
        Ask,
        "it would show the content of .env"
    );
    assert_eq!(project.verdict(&secret, "Grep", json!({ "pattern": "x", "path": "src" })), Allow);
    assert_eq!(project.verdict(&secret, "Grep", json!({ "pattern": "x", "path": ".env" })), Deny);
    assert_eq!(
        project.verdict(&secret, "Glob", json!({ "pattern": "*" })),
        Allow,
        "file names are not secret"
    );
}

#[test]
fn a_rule_is_anchored_where_it_is_added() {
    let project = project();
    let base = project.cwd.as_path();
    let text = |effect, rule: &str| {
        let entry =
            RuleEntry::parse(rule, effect).expect("a rule").anchored(base, Some(Path::new("/home/x")));
        entry.rule().to_string().replace(&base.display().to_string(), "BASE")
    };
    assert_eq!(text(ALLOW, "Edit(src/**)"), "Edit(/BASE/src/**)");
    assert_eq!(text(DENY, "Edit(src/**)"), "Edit(/BASE/**/src/**)");
    assert_eq!(text(ALLOW, "Edit(./src/**)"), "Edit(/BASE/src/**)");
    assert_eq!(text(DENY, "Edit(/src/**)"), "Edit(/BASE/src/**)");
    assert_eq!(text(ALLOW, "Read(*.md)"), "Read(/BASE/**/*.md)");
    assert_eq!(text(DENY, "Read(a/b)"), "Read(/BASE/a/b)");
    assert_eq!(text(DENY, "Read(~/x)"), "Read(//home/x/x)");
    assert_eq!(text(DENY, "Read(//x/**)"), "Read(//x/**)");
    assert_eq!(text(ALLOW, "Bash(ls:*)"), "Bash(ls:*)");

    let odd = base.join("a[b]{c,d}*");
    std::fs::create_dir(&odd).expect("a folder");
    let rule = RuleEntry::parse("Edit(./x)", ALLOW).expect("a rule").anchored(&odd, None);
    let level = Level { name: "root".to_owned(), authority: Authority::Root, rules: vec![rule.clone()] };
    let policy = Policy::new(vec![level]).expect("a policy");
    let verdict = |cwd: &Path| {
        policy
            .evaluate(&Call {
                tool_name: "Edit",
                input: &json!({ "file_path": "x" }),
                cwd,
                home: None,
                now: 0,
            })
            .effect
    };
    assert_eq!(verdict(&odd), Allow, "{}", rule.rule());
    assert_eq!(verdict(base), Unmentioned);
}

#[test]
fn an_unanchored_rule_allows_nothing_and_restricts_what_it_may_match() {
    let project = project();
    for rule in ["Edit(src/**)", "Edit(~/x)"] {
        for (effect, expected) in [(ALLOW, Unmentioned), (DENY, Ask), (RuleEffect::Ask, Ask)] {
            let level = Level {
                name: "root".to_owned(),
                authority: Authority::Root,
                rules: vec![RuleEntry::parse(rule, effect).expect("a rule")],
            };
            let policy = Policy::new(vec![level]).expect("a policy");
            let input = json!({ "file_path": "src/a.rs" });
            let verdict = policy.evaluate(&Call {
                tool_name: "Edit",
                input: &input,
                cwd: &project.cwd,
                home: None,
                now: 0,
            });
            assert_eq!(verdict.effect, expected, "{effect:?} {rule}: {}", verdict.why);
        }
    }
}
