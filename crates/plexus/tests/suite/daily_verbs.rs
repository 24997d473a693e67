//! The verbs for daily tasks: `allow`, `rules`, `tokens`, `audit`, `send`, `interrupt`, `rename`, `rm` and `diff`.

use plexus_testkit::pty::Pty;
use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, git, run, text};

/// The text that a successful command prints.
async fn done(hub: &TestHub, args: &[&str]) -> String {
    let output = hub.run(args).await;
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

async fn json_of(hub: &TestHub, args: &[&str]) -> Value {
    serde_json::from_str(&done(hub, args).await).unwrap()
}

/// The exit code and the message of a command that fails.
async fn fails(hub: &TestHub, args: &[&str]) -> (Option<i32>, String) {
    let output = hub.run(args).await;
    assert!(!output.status.success(), "{args:?}: {}", text(&output.stdout));
    (output.status.code(), text(&output.stderr))
}

fn at_terminal(hub: &TestHub, args: &[&str]) -> Pty {
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), args, &hub.work(), &env).unwrap()
}

/// Waits until a session has this status.
async fn until(hub: &TestHub, name: &str, status: &str) {
    let reached = async {
        loop {
            let poll = json!({"name": name, "from_seq": 1_000_000, "wait_ms": 500});
            if hub.call("claudecode.poll", poll).await.unwrap()["status"] == status {
                return;
            }
        }
    };
    tokio::time::timeout(LIMIT, reached).await.expect("the status is reached");
}

#[tokio::test]
async fn a_rule_is_added_listed_and_removed() {
    let hub = TestHub::start().await;
    let create = json!({"name": "fixer", "working_dir": hub.work()});
    hub.call("claudecode.create", create).await.unwrap();
    let added = done(&hub, &["allow", "Bash(npm test:*)", "--session", "fixer", "--for", "1h"]).await;
    assert!(
        added.starts_with("rule 1: Bash(npm test:*) is allowed in fixer and all below it, expires in "),
        "{added}"
    );
    let added = done(&hub, &["allow", "Edit(src/**)"]).await;
    let here = hub.work().canonicalize().unwrap();
    assert_eq!(added, format!("rule 2: Edit(/{}/src/**) is allowed in every session\n", here.display()));
    let listed = done(&hub, &["rules"]).await;
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "EFFECT", "SESSION", "EXPIRES", "BY", "RULE"]);
    assert_eq!(lines[1][..4], ["1", "allow", "fixer", "in"], "{listed}");
    assert_eq!(lines[2][..5], ["2", "allow", "(every)", "never", "you"], "{listed}");
    assert_eq!(json_of(&hub, &["rules", "--session", "fixer", "--json"]).await.as_array().unwrap().len(), 2);

    let (code, said) = fails(&hub, &["rules", "rm", "1"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("Remove rule 1 (allow Bash(npm test:*))? Pass --yes"), "{said}");
    assert!(fails(&hub, &["rules", "rm", "9", "--yes"]).await.1.contains("there is no rule 9"));
    assert_eq!(done(&hub, &["rules", "rm", "1", "--yes"]).await, "removed rule 1\n");
    assert_eq!(json_of(&hub, &["rules", "--json"]).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_rule_that_allows_everything_or_an_unknown_tool_needs_confirmation() {
    let hub = TestHub::start().await;
    for (rule, why) in
        [("Bsh", "did you mean `Bash`?"), ("*", "allows everything"), ("Bash", "every command")]
    {
        let (code, said) = fails(&hub, &["allow", rule]).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why) && said.contains("--yes"), "{said}");
        let mut asked = at_terminal(&hub, &["allow", rule]);
        asked.expect(why).await.unwrap();
        asked.expect("Add the rule? y or n: ").await.unwrap();
        asked.press("n\n").unwrap();
        assert_eq!(asked.end().await.unwrap(), 130, "{}", asked.shown());
    }
    assert_eq!(json_of(&hub, &["rules", "--json"]).await, json!([]));
    assert!(done(&hub, &["allow", "Bsh", "--yes"]).await.starts_with("rule 1: Bsh is allowed"));
    assert!(done(&hub, &["allow", "mcp__github"]).await.starts_with("rule 2: mcp__github"));
}

#[tokio::test]
async fn a_mode_with_an_answer_is_named_in_the_prompt_and_in_the_result() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    let mut asked = at_terminal(&hub, &["approve", &approval[..8], "--mode", "acceptEdits"]);
    asked
        .expect("This also sets the permission mode of a to acceptEdits, for all later calls.")
        .await
        .unwrap();
    asked.expect("Allow it and set the mode acceptEdits? y").await.unwrap();
    asked.press("y\n").unwrap();
    asked.expect("Allowed: Bash touch made (a); set the permission mode acceptEdits").await.unwrap();
    assert_eq!(asked.end().await.unwrap(), 0, "{}", asked.shown());
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap()["session"].take();
    assert_eq!(session["permission_mode"], "acceptEdits");
}

#[tokio::test]
async fn interrupt_and_stop_say_when_nothing_runs() {
    let hub = TestHub::start().await;
    let create = json!({"name": "idle", "working_dir": hub.work()});
    hub.call("claudecode.create", create).await.unwrap();
    for (verb, why) in [("interrupt", "idle has no running turn"), ("stop", "idle has no running process")] {
        let output = hub.run(&[verb, "idle"]).await;
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()), "{verb}");
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    hub.asking_session("busy").await;
    assert_eq!(done(&hub, &["stop", "busy"]).await, "stopped busy\n");
}

#[tokio::test]
async fn errors_of_the_hub_have_the_words_of_the_command_line() {
    let hub = TestHub::start().await;
    let missing = hub.folder.path().join("missing").display().to_string();
    let (code, said) = fails(&hub, &["run", "--dir", &missing, "x"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("`--dir` ") && !said.contains("working_dir`"), "{said}");
    let said = fails(&hub, &["run", "--dir", &missing, "x", "--json"]).await.1;
    assert!(said.contains("`working_dir` "), "programs read the hub's text: {said}");
    let said = fails(&hub, &["claudecode", "create", "--name", "a", "--working-dir", &missing]).await.1;
    assert!(said.contains("`working_dir` "), "{said}");
    let id = "4b983b28-9d18-41fa-9871-3489783bd38c";
    let said = fails(&hub, &["run", "--resume", id, "x"]).await.1;
    assert!(!said.contains("claudecode."), "{said}");
}

#[tokio::test]
async fn an_invalid_rule_or_duration_starts_no_hub() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    for (args, hint) in
        [(["allow", "Bash(", "--for", "1h"], "expected"), (["allow", "Bash", "--for", "1x"], "duration")]
    {
        let refused = run(&[&args[..], &["--data-dir", dir.to_str().unwrap()]].concat(), folder.path()).await;
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(hint), "{}", text(&refused.stderr));
    }
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_rule_that_matches_an_open_call_is_added_only_after_the_call_was_shown() {
    let hub = TestHub::start().await;
    hub.asking_session("a").await;
    hub.asking_session("b").await;
    let (code, said) = fails(&hub, &["allow", "Bash(touch:*)"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("would also allow 2 open calls") && said.contains("no rule was added"), "{said}");
    let mut cancelled = at_terminal(&hub, &["allow", "Bash(touch:*)", "--session", "a"]);
    cancelled.expect("This also allows 1 open call, with").await.unwrap();
    cancelled.expect("a wants to use Bash").await.unwrap();
    cancelled.expect("$ touch made").await.unwrap();
    cancelled.expect("y allows, n leaves it open: ").await.unwrap();
    cancelled.press("n\n").unwrap();
    cancelled.expect("no rule was added").await.unwrap();
    assert_eq!(cancelled.end().await.unwrap(), 130);
    assert!(!hub.work().join("made").exists());
    assert_eq!(done(&hub, &["rules"]).await, "");

    let mut confirmed = at_terminal(&hub, &["allow", "Bash(touch:*)", "--session", "a"]);
    confirmed.expect("y allows, n leaves it open: ").await.unwrap();
    confirmed.press("y\n").unwrap();
    confirmed.expect("allowed 1 open call that matched").await.unwrap();
    assert_eq!(confirmed.end().await.unwrap(), 0);
    until(&hub, "a", "complete").await;
    assert!(hub.work().join("made").exists());
    assert_eq!(json_of(&hub, &["approvals", "--json"]).await[0]["session_name"], "b");
}

#[tokio::test]
async fn a_token_is_created_listed_and_revoked() {
    let hub = TestHub::start().await;
    let token = done(&hub, &["tokens", "new", "phone", "--right", "decide", "--for", "30d"]).await;
    assert_eq!(token.lines().count(), 1, "only the token is on stdout: {token}");
    let listed = done(&hub, &["tokens"]).await;
    assert!(listed.starts_with("NAME   RIGHT   CREATED"), "{listed}");
    assert!(
        listed.contains("phone  decide") && listed.contains("  in ") && !listed.contains(token.trim()),
        "{listed}"
    );
    assert_eq!(json_of(&hub, &["tokens", "--json"]).await[0]["right"], "decide");
    assert_eq!(fails(&hub, &["tokens", "rm", "phone"]).await.0, Some(2));
    let (_, said) = fails(&hub, &["tokens", "rm", "fone", "--yes"]).await;
    assert!(said.contains("no token `fone`; did you mean `phone`?"), "{said}");
    assert_eq!(done(&hub, &["tokens", "rm", "phone", "--yes"]).await, "revoked phone\n");
    assert_eq!(json_of(&hub, &["tokens", "--json"]).await, json!([]));
}

#[tokio::test]
async fn the_audit_log_is_listed_with_filters() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    done(&hub, &["deny", &approval]).await;
    until(&hub, "a", "complete").await;
    done(&hub, &["tokens", "new", "phone"]).await;
    let listed = done(&hub, &["audit"]).await;
    assert!(
        listed.contains(" decision ") && listed.contains("Bash touch made") && listed.contains("phone"),
        "{listed}"
    );
    let filters = ["audit", "--session", "a", "--kind", "decision", "--since", "1h", "--tool", "Bash"];
    let decisions = done(&hub, &filters).await;
    assert_eq!(decisions.lines().count(), 2, "{decisions}");
    // The words of the column BY select its entries. The column WHEN depends on the time of the command.
    let decisions = json_of(&hub, &[filters.as_slice(), &["--json"]].concat()).await;
    let yours = json_of(&hub, &["audit", "--by", "you", "--kind", "decision", "--json"]).await;
    assert_eq!(yours, decisions);
    let (code, said) = fails(&hub, &["audit", "--by", "aa"]).await;
    assert_eq!((code, said.contains("did you mean `a`?")), (Some(1), true), "{said}");
    assert!(done(&hub, &["audit", "--by", "a"]).await.is_empty());
    assert!(done(&hub, &["audit", "--by", "session:a"]).await.is_empty());
    let last = json_of(&hub, &["audit", "-n", "1", "--json"]).await;
    assert_eq!((last.as_array().unwrap().len(), last[0]["entry"]["kind"].as_str()), (1, Some("token")));
    assert_eq!(json_of(&hub, &["audit", "verify"]).await["type"], "ok");
    assert_eq!(json_of(&hub, &["audit", "list", "--limit", "1"]).await["rows"][0]["number"], 1);
}

#[tokio::test]
async fn a_message_joins_the_running_turn_or_starts_the_next() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    assert_eq!(done(&hub, &["send", "a", "[{\"say\":\"also", "this\"}]"]).await, "added to turn 1 of a\n");
    done(&hub, &["deny", &approval]).await;
    until(&hub, "a", "complete").await;
    let script = json!([{"wait_file": "never"}]).to_string();
    assert_eq!(done(&hub, &["send", "a", &script]).await, "started turn 2 of a\n");
    until(&hub, "a", "running").await;
    assert_eq!(done(&hub, &["interrupt", "a"]).await, "interrupted a\n");
    until(&hub, "a", "interrupted").await;
    let said = done(&hub, &["logs", "a"]).await;
    assert!(said.contains("also this"), "the words are joined: {said}");
    let (code, said) = fails(&hub, &["send", "aa", "x"]).await;
    assert_eq!((code, said.contains("did you mean `a`?")), (Some(1), true), "{said}");
}

#[tokio::test]
async fn a_session_is_renamed_and_deleted_after_confirmation() {
    let hub = TestHub::start().await;
    hub.asking_session("a").await;
    assert_eq!(done(&hub, &["rename", "a", "fixer"]).await, "renamed a to fixer\n");
    let (code, said) = fails(&hub, &["rm", "fixer"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("Delete fixer with 1 running turn, 1 open approval? Pass --yes"), "{said}");
    let mut cancelled = at_terminal(&hub, &["rm", "fixer"]);
    cancelled.expect("open approval? y or n: ").await.unwrap();
    cancelled.press("\n").unwrap();
    cancelled.expect("nothing was changed").await.unwrap();
    assert_eq!(cancelled.end().await.unwrap(), 130);
    let mut confirmed = at_terminal(&hub, &["rm", "fixer"]);
    confirmed.expect("y or n: ").await.unwrap();
    confirmed.press("y\n").unwrap();
    confirmed.expect("deleted fixer").await.unwrap();
    assert_eq!(confirmed.end().await.unwrap(), 0);
    assert_eq!(json_of(&hub, &["ls", "--json"]).await, json!([]));
}

#[tokio::test]
async fn the_changes_of_a_worktree_are_shown_and_survive_rm() {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("a.txt"), "one\ntwo\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        git(&hub.work(), args);
    }
    let command = "printf 'one\\n2\\n' >a.txt; echo new >b.txt";
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "isolation": "worktree", "policy": "allow_all", "prompt": prompt});
    hub.call("claudecode.create", create).await.unwrap();
    until(&hub, "a", "complete").await;
    let shown = done(&hub, &["diff", "a"]).await;
    assert!(shown.contains("M a.txt (+1 -1)") && shown.contains("\n-two\n+2\n"), "{shown}");
    assert!(shown.contains("? b.txt (+1 -0)") && shown.contains("\n+new\n"), "{shown}");
    assert_eq!(done(&hub, &["diff", "a", "--stat"]).await, "M a.txt (+1 -1)\n? b.txt (+1 -0)\n");
    assert_eq!(json_of(&hub, &["diff", "a", "a.txt", "--json"]).await["files"][0]["insertions"], 1);
    let mut coloured = at_terminal(&hub, &["diff", "a"]);
    coloured.expect("\x1b[32m+2\x1b[0m").await.unwrap();
    coloured.end().await.unwrap();
    let deleted = done(&hub, &["rm", "a", "--yes"]).await;
    assert!(
        deleted.contains("deleted a\n  kept its worktree ")
            && deleted.contains(": 2 files are not committed (a.txt, b.txt)"),
        "{deleted}"
    );
}
