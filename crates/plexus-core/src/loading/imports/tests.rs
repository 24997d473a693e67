use plexus_protocol::SessionId;
use serde_json::json;

use super::*;
use candidates::parsed;

const STATE: &str = ".claude.json";

fn imports(dir: &Path) -> Imports {
    Imports::at_start(&Settings::defaults(dir.to_owned(), PathBuf::from("plexus")))
}

fn take(candidate: &Candidate) -> ImportTake {
    let digest = candidate.digest().expect("it can be imported");
    ImportTake { kind: candidate.kind, name: candidate.name.clone(), digest }
}

fn remove(kind: ImportKind, name: &str) -> ImportRef {
    ImportRef { kind, name: name.to_owned() }
}

fn states(imports: &Imports, candidates: &[Candidate]) -> Vec<(String, ImportState)> {
    let items = imports.items(candidates, &[], &[]).unwrap();
    items.into_iter().map(|item| (item.name, item.state)).collect()
}

fn server(command: &str) -> Vec<Candidate> {
    parsed(STATE, &json!({"mcpServers": {"db": {"command": command}}}).to_string())
}

#[test]
fn a_change_has_no_effect_until_it_is_imported_again() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (server("one"), server("other"));
    let held = imports(dir.path());
    assert_eq!(states(&held, &one), [("db".to_owned(), ImportState::New)]);
    let chosen = held.chosen(&one, &[take(&one[0])]).unwrap();
    held.change(&chosen, &[]).unwrap();
    assert_eq!(states(&held, &one), [("db".to_owned(), ImportState::Imported)]);
    assert_eq!(states(&held, &other), [("db".to_owned(), ImportState::Changed)]);
    assert_eq!(states(&held, &[]), [("db".to_owned(), ImportState::Gone)]);
    let refused = held.chosen(&other, &[take(&one[0])]).unwrap_err();
    assert!(refused.message.contains("has changed since it was shown"), "{refused}");

    // The next hub has the same copies.
    let next = imports(dir.path());
    let given = next.for_session("/work").unwrap().unwrap();
    assert!(matches!(&given.mcp_servers["db"], McpServer::Stdio { command, .. } if command == "one"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(dir.path().join("imported.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    next.change(&[], &[remove(ImportKind::Server, "db")]).unwrap();
    assert_eq!(next.for_session("/work").unwrap(), None);
    assert!(next.check(&[], &[remove(ImportKind::Server, "db")]).is_err(), "it is not imported");
}

#[test]
fn a_server_of_a_project_is_given_only_to_sessions_in_that_project() {
    let dir = tempfile::tempdir().unwrap();
    let server = |command: &str| json!({"mcpServers": {"db": {"command": command}}});
    let mut state = server("users");
    state["projects"] = json!({"/a": server("of-a"), "/a/b": server("of-b"), "C:\\x": server("no")});
    let candidates = parsed(STATE, &state.to_string());
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    assert_eq!(names, ["db", "/a:db", "/a/b:db"]);
    let held = imports(dir.path());
    let all: Vec<ImportTake> = candidates.iter().map(take).collect();
    held.change(&held.chosen(&candidates, &all).unwrap(), &[]).unwrap();
    for (working_dir, expected) in
        [("/other", "users"), ("/a", "of-a"), ("/a/x", "of-a"), ("/a/b/c", "of-b"), ("/ab", "users")]
    {
        let given = held.for_session(working_dir).unwrap().unwrap();
        assert!(
            matches!(&given.mcp_servers["db"], McpServer::Stdio { command, .. } if command == expected),
            "{working_dir}"
        );
    }
}

#[test]
fn nothing_that_is_shown_contains_a_secret() {
    let state = json!({"mcpServers": {
        "a": {"command": "x", "args": ["two words"], "env": {"KEY": "SECRET"}},
        "b": {"type": "http", "url": "https://b.example/", "headers": {"Authorization": "SECRET"}},
        "c": {"command": "x", "env": "SECRET"},
        "d": {"command": "x", "headersHelper": "SECRET"},
        "e": {"type": "SECRET"},
        "plexus": {"command": "x"},
    }});
    let candidates = parsed(STATE, &state.to_string());
    assert!(!format!("{candidates:?}").contains("SECRET"), "{candidates:?}");
    let reasons: Vec<&str> =
        candidates.iter().filter_map(|c| c.content.as_ref().err()).map(String::as_str).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert_eq!(candidates[0].does, "x 'two words'");
    assert_eq!(
        (&candidates[0].with, &candidates[1].with),
        (&vec!["env KEY".to_owned()], &vec!["header Authorization".to_owned()])
    );
    assert!(!format!("{:?}", parsed(STATE, "{\"SECRET")).contains("SECRET"));
}

#[test]
fn rules_are_compared_with_the_rules_of_the_operator_for_every_session() {
    let settings = json!({"permissions": {"allow": ["Bash(ls:*)", "Edit(src/**)"], "ask": ["WebFetch"], "deny": ["Read(.env)", "WebSearch"]}});
    let candidates = parsed("settings.json", &settings.to_string());
    let rule = |effect: Effect, made_by: Decider, session_id: Option<SessionId>| RuleView {
        number: 1,
        rule: "Bash(ls:*)".to_owned(),
        effect,
        counts: Counts::Fully,
        session_id,
        expires_at: None,
        made_by,
        created_at: 0,
    };
    let dir = tempfile::tempdir().unwrap();
    let held = imports(dir.path());
    let denied = ["WebSearch".to_owned()];
    let states = |in_force: &[RuleView]| {
        let items = held.items(&candidates, in_force, &denied).unwrap();
        items.into_iter().map(|item| item.state).collect::<Vec<_>>()
    };
    use ImportState::{Imported, New, Refused};
    assert_eq!(states(&[]), [New, Refused, New, Refused, Imported]);
    for other in [
        rule(Effect::Ask, Decider::Operator, None),
        rule(Effect::Allow, Decider::Hub, None),
        rule(Effect::Allow, Decider::Operator, Some(SessionId::random())),
    ] {
        assert_eq!(states(&[other])[0], New);
    }
    let own = [rule(Effect::Allow, Decider::Operator, None)];
    assert_eq!(states(&own)[0], Imported);
    assert_eq!(held.rules_to_remove("Bash(ls:*)", &own), [1]);
    assert_eq!(held.rules_to_remove("Bash(ls)", &own), [0; 0]);
}

#[test]
fn agents_are_parsed_and_skills_are_listed_with_the_reason() {
    let agent =
        parsed("agents/in/a.md", "---\nname: reviewer\ndescription: Reviews\nhooks: x\ntools: Read\n---\nP");
    assert_eq!((agent[0].name.as_str(), agent[0].does.as_str()), ("reviewer", "Reviews (tools: Read)"));
    assert_eq!(agent[0].left_out, ["hooks"]);
    assert!(parsed("agents/a.md", "no head")[0].content.is_err());
    let skill = parsed("skills/s/SKILL.md", "x");
    assert_eq!((skill[0].name.as_str(), skill[0].content.is_err()), ("s", true));
}

#[test]
fn unreadable_copies_are_an_error_and_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("imported.json"), "{").unwrap();
    let held = imports(dir.path());
    let candidates = server("one");
    let chosen = held.chosen(&candidates, &[take(&candidates[0])]).unwrap();
    assert!(held.change(&chosen, &[]).is_err() && held.for_session("/").is_err());
    assert_eq!(std::fs::read(dir.path().join("imported.json")).unwrap(), b"{");
}
