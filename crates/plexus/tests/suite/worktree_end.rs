//! The end of a session with a worktree at a real terminal: its changes, and the offer to commit or merge them with the user's git.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use plexus_testkit::pty::{CTRL_D, Pty};
use serde_json::json;

use crate::support::{TestHub, git, text};

/// Writes a commit message.
const EDITOR: &str = "sh -c 'echo \"From the session\" > \"$0\"'";

fn at_terminal(hub: &TestHub, args: &[&str]) -> Pty {
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("EDITOR", EDITOR.to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), args, &hub.work(), &env).unwrap()
}

/// A hub whose working directory is a repository with the file `notes`.
async fn hub_with_repository() -> TestHub {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("notes"), "one\ntwo\n").unwrap();
    for args in [
        &["init", "-q"][..],
        &["add", "notes"],
        &["commit", "-qm", "first"],
        &["config", "user.name", "t"],
        &["config", "user.email", "t@example.org"],
    ] {
        git(&hub.work(), args);
    }
    hub
}

/// Runs a session that edits `notes` in a worktree, up to the offer.
async fn edited_session(hub: &TestHub) -> Pty {
    let input = json!({"file_path": "notes", "old_string": "two", "new_string": "three"});
    let prompt = json!([{"tool": "Edit", "input": input}]).to_string();
    let mut run = at_terminal(hub, &["run", "--name", "a", "--worktree", "--policy", "allow_all", &prompt]);
    run.expect("* complete").await.unwrap();
    run.expect("# notes +1 -1").await.unwrap();
    run.expect("-two").await.unwrap();
    run.expect("+three").await.unwrap();
    run.expect("or leave the changes there (Enter)?").await.unwrap();
    run
}

fn notes(hub: &TestHub) -> String {
    std::fs::read_to_string(hub.work().join("notes")).unwrap()
}

fn log_of(dir: &Path, branch: &str) -> String {
    let mut log = std::process::Command::new("git");
    log.args(["log", "--format=%s", branch]).current_dir(dir).env_clear();
    text(&log.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap().stdout)
}

fn write_hook(hub: &TestHub, name: &str, script: &str) {
    let hook = hub.work().join(".git/hooks").join(name);
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

async fn branch_of(hub: &TestHub) -> String {
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap()["session"].take();
    session["worktree"]["branch"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn enter_leaves_the_changes_and_prints_the_commands() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    run.press("\n").unwrap();
    run.expect("commit:  git -C ").await.unwrap();
    run.expect("merge:   git -C ").await.unwrap();
    run.expect("discard: git -C ").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert_eq!(notes(&hub), "one\ntwo\n", "only the worktree changed");
}

#[tokio::test]
async fn after_a_commit_only_the_merge_is_offered_and_the_merged_worktree_is_deleted() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    run.press("c\n").unwrap();
    run.expect("From the session").await.unwrap();
    run.expect("Everything is committed. Merge into ").await.unwrap();
    run.expect("or leave the commits there (Enter)? ").await.unwrap();
    let branch = branch_of(&hub).await;
    assert_eq!(log_of(&hub.work(), &branch), "From the session\nfirst\n");
    assert_eq!(notes(&hub), "one\ntwo\n", "the user's checkout is unchanged");
    run.press("m\n").unwrap();
    run.expect("merged; `plexus rm a` deletes").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert_eq!(notes(&hub), "one\nthree\n");
    let removed = hub.run(&["rm", "--yes", "a"]).await;
    let said = text(&removed.stdout);
    assert!(said.contains("deleted its worktree ") && said.contains(&branch), "{said}");
    assert_eq!(log_of(&hub.work(), &branch), "", "the branch is deleted");
}

#[tokio::test]
async fn rm_keeps_a_worktree_and_says_what_would_be_lost() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    run.press("c\n").unwrap();
    run.expect("or leave the commits there (Enter)? ").await.unwrap();
    run.press("\n").unwrap();
    run.expect("merge:   git -C ").await.unwrap();
    run.end().await.unwrap();
    assert!(!run.shown().contains("commit:  git -C "), "{}", run.shown());
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap()["session"].take();
    let path = Path::new(session["worktree"]["path"].as_str().unwrap()).to_owned();
    std::fs::write(path.join("more"), "x").unwrap();
    let removed = hub.run(&["rm", "--yes", "a"]).await;
    let said = text(&removed.stdout);
    assert!(said.contains("kept its worktree "), "{said}");
    assert!(
        said.contains("1 commit is not merged into another branch; 1 file is not committed (more)"),
        "{said}"
    );
    assert!(path.join("more").exists());
}

#[tokio::test]
async fn a_merge_with_conflicts_is_not_offered_again() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    std::fs::write(hub.work().join("notes"), "one\nmine\n").unwrap();
    git(&hub.work(), &["commit", "-qam", "mine"]);
    run.press("m\n").unwrap();
    run.expect("failed (exit status: ").await.unwrap();
    run.expect("a merge is in progress in ").await.unwrap();
    run.expect("Enter leaves the commits there: ").await.unwrap();
    run.press("\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn hooks_and_settings_of_the_repository_are_shown_before_git_runs() {
    let hub = hub_with_repository().await;
    let ran = hub.folder.path().join("hook-ran");
    write_hook(&hub, "pre-commit", &format!("#!/bin/sh\ntouch {}\n", ran.display()));
    git(&hub.work(), &["config", "filter.x.clean", "sh -c evil"]);
    let mut run = edited_session(&hub).await;
    run.press("m\n").unwrap();
    run.expect("hook pre-commit").await.unwrap();
    run.expect("setting filter.x.clean = sh -c evil").await.unwrap();
    run.expect("Run git with them?").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("git was not run").await.unwrap();
    run.expect("or leave the changes there (Enter)?").await.unwrap();
    assert!(!ran.exists());
    run.press("m\n").unwrap();
    run.expect("Run git with them?").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("merged; ").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(ran.exists());
    assert_eq!(notes(&hub), "one\nthree\n");
}

#[tokio::test]
async fn a_merge_that_fails_is_reported_and_the_changes_stay() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    std::fs::write(hub.work().join("notes"), "one\nmine\n").unwrap();
    run.press("m\n").unwrap();
    run.expect("git merge refs/heads/plexus/a-").await.unwrap();
    run.expect("failed (exit status: ").await.unwrap();
    run.expect("or leave the commits there (Enter)?").await.unwrap();
    run.press(CTRL_D).unwrap();
    run.expect("merge:   git -C ").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert_eq!(notes(&hub), "one\nmine\n");
}

#[tokio::test]
async fn leaving_an_attached_session_reports_its_changes() {
    let hub = hub_with_repository().await;
    let mut run = edited_session(&hub).await;
    run.press("\n").unwrap();
    run.end().await.unwrap();
    let mut attached = at_terminal(&hub, &["attach", "a"]);
    attached.expect("a> ").await.unwrap();
    attached.press(CTRL_D).unwrap();
    attached.expect("changes in the worktree of a: files 1, lines +1 -1, commits 0").await.unwrap();
    assert_eq!(attached.end().await.unwrap(), 0, "{}", attached.shown());
}
