//! The risk marks of calls, as a table: which calls get which marks, and that everyday calls get none. Also that no input makes the
//! analysis fail or take long.
#![cfg(test)]

use std::path::Path;
use std::time::{Duration, Instant};

use plexus_policy::{Call, risks};
use plexus_protocol::{RiskKind, RiskMark};
use proptest::prelude::*;
use serde_json::{Value, json};

const PROJECT: &str = "/home/me/project";

fn marks_of(tool_name: &str, input: &Value) -> Vec<RiskMark> {
    let (cwd, home) = (Path::new(PROJECT), Some(Path::new("/home/me")));
    risks(&Call { tool_name, input, cwd, home, now: 0 }, &[cwd])
}

fn kinds(marks: &[RiskMark]) -> String {
    let mut kinds: Vec<RiskKind> = marks.iter().map(|mark| mark.kind).collect();
    kinds.dedup();
    let names: Vec<String> =
        kinds.iter().map(|kind| json!(kind).as_str().unwrap_or_default().to_owned()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// The input of a tool with one interesting field.
fn input(tool: &str, text: &str) -> Value {
    match tool {
        "Bash" | "Monitor" | "PowerShell" => json!({"command": text}),
        "REPL" => json!({"code": text}),
        "Read" | "Edit" | "Write" => json!({"file_path": text}),
        "Glob" => json!({"pattern": text}),
        "Grep" => json!({"pattern": "x", "path": text}),
        "WebFetch" => json!({"url": text}),
        _ => json!({"text": text}),
    }
}

fn table() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let lines =
        include_str!("risk_calls.tsv").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let mut columns = line.splitn(3, '\t');
        let mut column = || columns.next().unwrap_or_else(|| panic!("three columns: {line}"));
        (column(), column(), column().replace("\\n", "\n"))
    })
}

#[test]
fn each_call_of_the_table_gets_exactly_its_marks() {
    let mut wrong = Vec::new();
    for (expected, tool, text) in table() {
        let marks = marks_of(tool, &input(tool, &text));
        let mut wanted: Vec<&str> = expected.split(',').collect();
        let found = kinds(&marks);
        let mut found: Vec<&str> = found.split(',').collect();
        wanted.sort_unstable();
        found.sort_unstable();
        if wanted != found {
            let reasons: Vec<&str> = marks.iter().map(|mark| mark.reason.as_str()).collect();
            wrong.push(format!("{tool} {text:?}: expected {wanted:?}, got {found:?} {reasons:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(table().count() >= 200);
}

#[test]
fn a_reason_names_the_part_of_the_call() {
    let reason = |tool: &str, text: &str| marks_of(tool, &input(tool, text)).remove(0).reason;
    assert_eq!(reason("Bash", "cd x && git push --force"), "`git push --force` overwrites the remote branch");
    assert_eq!(reason("Bash", "sudo rm -rf build"), "`rm -rf build` deletes directories with their contents");
    assert_eq!(reason("Bash", "curl -s https://Example.com/x"), "`curl` connects to `example.com`");
    assert_eq!(reason("Read", ".env"), "reads `.env`, which usually holds secrets");
    assert_eq!(reason("Edit", "/tmp/x"), "changes `/tmp/x`, which is outside the project");
    assert_eq!(reason("Bash", "'"), "the command cannot be analysed: a quote is not closed");
    let long = reason("Bash", &format!("rm -rf {}", "x".repeat(5_000)));
    assert!(long.chars().count() < 150 && long.contains('…'), "{long}");
}

#[test]
fn a_call_in_a_directory_outside_the_project_is_marked() {
    let input = json!({"command": "make"});
    let call = Call { tool_name: "Bash", input: &input, cwd: Path::new("/srv/other"), home: None, now: 0 };
    let marks = risks(&call, &[Path::new(PROJECT)]);
    assert_eq!(kinds(&marks), "outside_project");
    assert_eq!(marks[0].reason, "runs in `/srv/other`, which is outside the project");
    // A worktree has its own root, and a call in a subdirectory may go up inside it.
    let input = json!({"command": "cat ../Cargo.toml"});
    let call =
        Call { tool_name: "Bash", input: &input, cwd: Path::new("/home/me/project/src"), home: None, now: 0 };
    assert_eq!(risks(&call, &[Path::new(PROJECT)]), []);
}

#[test]
fn a_call_has_few_marks_however_long_it_is() {
    let command = (0..200)
        .map(|n| format!("rm -rf /x{n}; curl https://h{n}.example; sudo x{n}"))
        .collect::<Vec<_>>()
        .join("\n");
    let marks = marks_of("Bash", &json!({"command": command}));
    assert!(marks.len() <= 12, "{marks:?}");
}

/// A generous limit for a debug build on a busy machine. Without bounds an analysis would take minutes.
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn every_call_is_analysed_quickly() {
    for line in [
        "(".repeat(9_000),
        "sudo ".repeat(1_900),
        "sudo -a ".repeat(1_200),
        "docker exec -a b ".repeat(580),
        "find -exec rm ".repeat(700),
        format!("a {}", "'rm -rf /x; curl y' ".repeat(500)),
        "a/$X ".repeat(1_900),
        format!("rm {}", "/x/../y ".repeat(1_200)),
        "sudo rm -rf /a /b; ".repeat(500),
        "$TOKEN ".repeat(1_400),
        "${HOME}".repeat(1_400),
        "$PWD$TOKEN ".repeat(1_000_000),
        "a".repeat(10_000_000),
        "rm -rf x;\n".repeat(1_000_000),
        "/../".repeat(2_400),
        "{a,b}".repeat(3_000),
        "cat {a,{b,c}}/.e? ;".repeat(500),
        "for a in ".repeat(2_000),
        "F=$F$F;".repeat(1_300),
        format!("F={};{}", "x".repeat(1_000), "$F".repeat(4_000)),
        "F=a; sudo rm -rf /a$F; ".repeat(400),
        (0..2_000).map(|n| format!("a{n}=b;")).collect(),
        "alias a=rm;".repeat(800),
        "alias a=b; a; ".repeat(600),
        "~a ".repeat(3_000),
    ] {
        let start = Instant::now();
        let marks = marks_of("Bash", &json!({ "command": line }));
        assert!(marks.len() <= 12);
        marks_of("mcp__shell__run", &json!({"command": line, "args": vec![line.as_str(); 3]}));
        marks_of("Read", &json!({ "file_path": line }));
        let took = start.elapsed();
        assert!(took < LIMIT, "{}… took {took:?}", line.chars().take(40).collect::<String>());
    }
}

proptest! {
    #[test]
    fn no_input_makes_the_analysis_fail(
        tool in prop::sample::select(vec!["Bash", "PowerShell", "Read", "Glob", "WebFetch", "mcp__a__run", "Nonsense"]),
        text in "\\PC{0,200}",
        words in prop::collection::vec(
            prop::sample::select(vec![
                "git", "push", "-f", "--", "rm", "-rf", "~", "~bob", "/", "..", "$X", "${", "\"", "'", "|", ";", "&&", "$(", ")", "`",
                "curl", "https://", "@", ":", "=", "+", "*", "?", "[", "<", ">", ">>", "<<E", "E", "\n", "sudo", "env", "xargs",
                "-c", "ä", "\u{202e}", "find", "-exec", "{}", "\\;", "/dev/tcp/", "[::1", "a=b", "--x=", "chmod", "4755",
            ]),
            0..24,
        ),
    ) {
        for text in [text, words.concat(), words.join(" ")] {
            let fields = ["command", "file_path", "pattern", "path", "url", "args"];
            let input: Value = fields.iter().map(|field| ((*field).to_owned(), json!(text))).collect::<serde_json::Map<_, _>>().into();
            let marks = marks_of(tool, &input);
            prop_assert!(marks.len() <= 12);
            prop_assert!(marks.iter().all(|mark| mark.reason.chars().count() < 400 && !mark.reason.contains('\n')));
        }
        marks_of(tool, &json!(words));
    }
}
