//! `plexus import`: the list, the choice at a terminal, and the refusals.

use plexus_testkit::pty::Pty;
use serde_json::{Value, json};

use crate::support::{TestHub, scripted_claude, text};

/// A hub whose user has this configuration.
async fn hub() -> TestHub {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::create_dir_all(config.join("agents")).unwrap();
    std::fs::create_dir_all(config.join("skills/deploy")).unwrap();
    let permissions = json!({"allow": ["Bash(npm test:*)", "Edit(src/**)"], "ask": ["WebFetch"]});
    std::fs::write(config.join("settings.json"), json!({"permissions": permissions}).to_string()).unwrap();
    let server = json!({"command": "db-server", "args": ["--read-only"], "env": {"DB_URL": "THE-SECRET"}});
    std::fs::write(config.join(".claude.json"), json!({"mcpServers": {"db": server}}).to_string()).unwrap();
    let agent =
        "---\nname: reviewer\ndescription: Reviews code\n---\nYou review.\nLook for \u{1b}[2J bugs.\n";
    std::fs::write(config.join("agents/reviewer.md"), agent).unwrap();
    std::fs::write(config.join("skills/deploy/SKILL.md"), "---\nname: deploy\n---\n!`deploy`").unwrap();
    let claude = scripted_claude(folder.path());
    let env = vec![("CLAUDE_CONFIG_DIR".to_owned(), config.to_str().unwrap().to_owned())];
    TestHub::with(folder, "", claude, env).await
}

async fn json_of(hub: &TestHub, args: &[&str]) -> Value {
    let output = hub.run(args).await;
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

async fn state(hub: &TestHub, name: &str) -> String {
    let items = json_of(hub, &["import", "--json"]).await;
    let item = items.as_array().unwrap().iter().find(|item| item["name"] == name);
    item.unwrap()["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn entries_are_listed_imported_by_name_and_removed() {
    let hub = hub().await;
    let output = hub.run(&["import"]).await;
    let (listed, said) = (text(&output.stdout), text(&output.stderr));
    for part in [
        "1  rule    Bash(npm test:*)  new",
        "rule    Edit(src/**)      not possible  allow: its path is relative to the working directory",
        "2  rule    WebFetch          new           ask",
        "3  server  db                new           db-server --read-only",
        "4  agent   reviewer          new           Reviews code",
        "skill   deploy            not possible",
    ] {
        assert!(listed.contains(part), "{part}\n{listed}");
    }
    assert!(said.contains("plexus import rules|servers|agents"), "{said}");
    assert!(!listed.contains("THE-SECRET"));

    let needs_yes = hub.run(&["import", "servers", "db"]).await;
    assert_eq!(needs_yes.status.code(), Some(2), "{}", text(&needs_yes.stderr));
    assert_eq!(state(&hub, "db").await, "new");
    for (args, why) in [
        (["import", "servers", "dbb", "--yes"], "did you mean `db`?"),
        (["import", "rules", "Edit(src/**)", "--yes"], "its path is relative to the working directory"),
        (["import", "skills", "deploy", "--yes"], "cannot import `deploy`"),
    ] {
        let refused = hub.run(&args).await;
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
    let output = hub.run(&["import", "rules", "--all", "--yes"]).await;
    assert_eq!(text(&output.stdout), "imported rule Bash(npm test:*)\nimported rule WebFetch\n");
    let taken = json_of(&hub, &["import", "servers", "db", "--yes", "--json"]).await;
    assert_eq!(taken["taken"], json!([{"kind": "server", "name": "db"}]));
    assert_eq!(state(&hub, "db").await, "imported");
    let again = hub.run(&["import", "servers", "db", "--yes"]).await;
    assert!(again.status.success() && text(&again.stderr).contains("`db` is already imported"));

    let removed = hub.run(&["import", "--remove", "servers", "db", "--yes"]).await;
    assert_eq!(text(&removed.stdout), "removed server db\n", "{}", text(&removed.stderr));
    let removed = hub.run(&["import", "--remove", "rules", "WebFetch", "--yes"]).await;
    assert_eq!(text(&removed.stdout), "removed rule WebFetch\n", "{}", text(&removed.stderr));
    let rules = json_of(&hub, &["rules", "--json"]).await;
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
}

#[tokio::test]
async fn a_choice_at_a_terminal_is_shown_in_full_before_it_is_confirmed() {
    let hub = hub().await;
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let import =
        || Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), &["import"], &hub.work(), &env).unwrap();

    let mut shown = import();
    shown.expect("Import which?").await.unwrap();
    shown.press("9\n").unwrap();
    shown.expect("`9` is not a number from 1 to 4").await.unwrap();
    shown.press("3-4\n").unwrap();
    for part in
        ["db-server --read-only", "with: env DB_URL", "Reviews code", "> You review.", "Import 2 entries?"]
    {
        shown.expect(part).await.unwrap();
    }
    shown.press("n\n").unwrap();
    assert_eq!(shown.end().await.unwrap(), 130, "{}", shown.shown());
    assert!(!shown.shown().contains("THE-SECRET") && !shown.shown().contains("\u{1b}[2J bugs"));
    assert_eq!(state(&hub, "db").await, "new");

    let mut taken = import();
    taken.expect("Import which?").await.unwrap();
    taken.press("4\n").unwrap();
    taken.expect("Import 1 entry?").await.unwrap();
    taken.press("y\n").unwrap();
    taken.expect("imported agent reviewer").await.unwrap();
    assert_eq!(taken.end().await.unwrap(), 0, "{}", taken.shown());
    assert_eq!(state(&hub, "reviewer").await, "imported");
}
