//! `plexus watch` in a real terminal, with a real hub and an agent that needs approval.

use std::path::Path;

use plexus_testkit::model::{ScriptedModel, Step};
use plexus_testkit::{executable, require_claude};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, plexus, read};
use crate::terminal::Terminal;

fn watch(hub: &TestHub, env: &[(&str, &Path)]) -> Terminal {
    let mut command = plexus(hub.folder.path());
    command.args(["watch", "--data-dir"]).arg(hub.process.data_dir()).env("TERM", "xterm");
    command.envs(env.iter().copied());
    Terminal::start(command)
}

/// The first event of this type in the latest turn of a session.
async fn event(hub: &TestHub, session: &str, kind: &str) -> Value {
    let found = async {
        loop {
            let poll = json!({"session_id": session, "from_seq": 0, "wait_ms": 500});
            let seen = hub.call("claudecode.poll", poll).await.unwrap();
            let events = seen["events"].as_array().unwrap();
            if let Some(found) = events.iter().find(|event| event["event"]["type"] == kind) {
                return found["event"].clone();
            }
        }
    };
    tokio::time::timeout(LIMIT, found).await.expect(kind)
}

fn answered(screen: &str) -> bool {
    screen.contains(" 0 open")
}

#[tokio::test]
async fn a_new_approval_is_selected_and_a_key_allows_it() {
    let hub = TestHub::start().await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows(" 0 open").await;
    let (session, _) = hub.asking_session("worker").await;
    terminal.shows("$ touch made").await;
    terminal.presses("a", "no question is open", answered).await;
    assert_eq!(event(&hub, &session, "tool_result").await["is_error"], false);
    assert!(hub.work().join("made").exists());
    terminal.shows("done worker").await;
    terminal.types("q");
    assert!(terminal.gives_back().await.success());
}

#[tokio::test]
async fn a_call_is_denied_with_the_typed_reason() {
    let hub = TestHub::start().await;
    let (session, _) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    terminal.presses("d", "the reason is asked for", |screen| screen.contains("Why not?")).await;
    terminal.types("\u{15}not today\r");
    terminal.until("no question is open", answered).await;
    let resolved = event(&hub, &session, "approval_resolved").await;
    assert_eq!((&resolved["status"], &resolved["message"]), (&json!("denied"), &json!("not today")));
    event(&hub, &session, "complete").await;
    assert!(!hub.work().join("made").exists());
}

#[tokio::test]
async fn a_key_escalates_an_approval_of_an_agent() {
    let hub = TestHub::start().await;
    let create =
        json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true, "approve_scope": ["*"]});
    let lead = hub.call("claudecode.create", create).await.unwrap()["id"].clone();
    let config = hub.call("loopback.configure", json!({"session_id": lead})).await.unwrap();
    let bearer = config["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"].as_str().unwrap();
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let create = json!({"name": "worker", "working_dir": hub.work(), "prompt": prompt});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "claudecode.create", "params": create});
    let post = http::Request::post("/rpc").header("authorization", bearer);
    let (_, made) = read(hub.send(post, request.to_string()).await).await;
    let worker = made["result"]["id"].as_str().unwrap().to_owned();
    let mut terminal = watch(&hub, &[]);
    terminal.shows("waits for session:").await;
    terminal
        .presses("p", "an opinion is asked for", |screen| screen.contains("Note for the next decider"))
        .await;
    terminal.types("\u{15}too much for it\r");
    terminal.shows("operator escalated it").await;
    terminal.shows("opinion: too much for it").await;
    terminal.until("the operator decides", |screen| !screen.contains("waits for session:")).await;
    terminal.presses("a", "no question is open", answered).await;
    assert_eq!(event(&hub, &worker, "tool_result").await["is_error"], false);
}

#[tokio::test]
async fn a_call_runs_with_the_edited_input() {
    let hub = TestHub::start().await;
    let editor = hub.folder.path().join("editor");
    executable::write(&editor, "#!/bin/sh\nsed -i s/made/changed/ \"$1\"\n").unwrap();
    let (session, _) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[("EDITOR", &editor)]);
    terminal.shows("$ touch made").await;
    terminal.presses("e", "it is asked about", |screen| screen.contains("Allow it with this input?")).await;
    terminal.shows("touch changed").await;
    assert!(!hub.work().join("changed").exists(), "an edit alone answers nothing");
    terminal.presses("y", "no question is open", answered).await;
    terminal.shows("Allowed: Bash touch changed (edited, worker)").await;
    let resolved = event(&hub, &session, "approval_resolved").await;
    assert_eq!(resolved["updated_input"]["command"], "touch changed");
    event(&hub, &session, "complete").await;
    assert!(hub.work().join("changed").exists() && !hub.work().join("made").exists());
}

#[tokio::test]
async fn an_editor_that_changes_nothing_or_fails_answers_nothing() {
    let hub = TestHub::start().await;
    hub.asking_session("worker").await;
    let steal = hub.folder.path().join("editor");
    executable::write(&steal, "#!/bin/sh\necho touch stolen > \"$1\"\nexit 1\n").unwrap();
    for (editor, said) in [
        (Path::new("true"), "the input was not changed"),
        (&*steal, "nothing was answered, the approval stays open"),
    ] {
        let mut terminal = watch(&hub, &[("EDITOR", editor)]);
        terminal.shows("$ touch made").await;
        terminal.presses("e", said, |screen| screen.contains(said)).await;
        assert!(terminal.text().contains(" 1 open"), "{}", terminal.text());
    }
    assert_eq!(hub.call("loopback.pending", json!({})).await.unwrap()["approvals"][0]["status"], "pending");
    assert!(!hub.work().join("stolen").exists());
}

#[tokio::test]
async fn a_long_input_is_allowed_only_after_its_end_was_shown() {
    let hub = TestHub::start().await;
    let command = format!("true\n{}touch hidden", "# nothing to see\n".repeat(30));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "worker", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let mut terminal = watch(&hub, &[]);
    terminal.shows("rows 1-13 of 35; space: next page").await;
    terminal.presses("a", "why not", |screen| screen.contains("13 of 35 rows were shown")).await;
    terminal.types(" ");
    terminal.shows("rows 14-26 of 35").await;
    terminal.types("a");
    terminal.shows("26 of 35 rows were shown").await;
    assert!(!hub.work().join("hidden").exists());
    terminal.types(" ");
    terminal.shows("touch hidden").await;
    terminal.presses("a", "no question is open", answered).await;
    terminal.shows("Allowed: Bash true").await;
    event(&hub, &session, "complete").await;
    assert!(hub.work().join("hidden").exists());
}

#[tokio::test]
async fn a_frozen_hub_is_shown_as_disconnected_and_no_key_answers() {
    use rustix::process::{Pid, kill_process};
    let hub = TestHub::start().await;
    let (session, _) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    terminal.shows("Disconnected. Reconnecting…").await;
    terminal.presses("a", "why not", |screen| screen.contains("you cannot answer")).await;
    kill_process(pid, Signal::CONT).unwrap();
    terminal.until("it is connected again", |screen| !screen.contains("Disconnected. Re")).await;
    assert!(!hub.work().join("made").exists(), "no key had an effect meanwhile");
    terminal.presses("a", "no question is open", answered).await;
    terminal.shows("Allowed: Bash touch made (worker)").await;
    event(&hub, &session, "complete").await;
    assert!(hub.work().join("made").exists());
}

/// A real Claude Code edits a file, and needs approval for a second edit.
async fn edits(version: &str, test: &str) {
    let Some(claude) = require_claude(version, test) else { return };
    let model = ScriptedModel::start().await.unwrap();
    let hub = TestHub::with_claude(claude, &model).await;
    let file = hub.work().join("a.txt");
    std::fs::write(&file, "eins\nzwei\n").unwrap();
    let edit = |old: &str, new: &str| {
        Step::tool("Edit", json!({"file_path": file, "old_string": old, "new_string": new}))
    };
    let read = Step::tool("Read", json!({"file_path": file}));
    model.script("EDIT-IT", vec![read, edit("zwei", "drei"), edit("eins", "null"), Step::text("Well.")]);
    let mut terminal = watch(&hub, &[]);
    terminal.shows(" 0 open").await;
    let create = json!({"name": "worker", "working_dir": hub.work(), "prompt": "EDIT-IT"});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();

    terminal.shows("worker wants to use Edit").await;
    terminal.until("a diff", |screen| screen.contains("│2 - zwei") && screen.contains("│2 + drei")).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "eins\nzwei\n", "not before it is answered");
    terminal.presses("a", "it is answered", |screen| !screen.contains("+ drei")).await;
    terminal.until("the next", |screen| screen.contains("- eins") && screen.contains("+ null")).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "eins\ndrei\n");
    terminal.presses("d", "the reason is asked for", |screen| screen.contains("Why not?")).await;
    terminal.types("\u{15}grüße: leave the first line\r");
    terminal.until("no question is open", answered).await;
    event(&hub, &session, "complete").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "eins\ndrei\n", "the denied call never ran");
    let heard = model.requests_for("EDIT-IT").pop().unwrap().to_string();
    assert!(heard.contains("grüße: leave the first line"), "the model reads why: {heard}");
    terminal.types("q");
    assert!(terminal.gives_back().await.success());
}

#[tokio::test]
async fn an_edit_is_seen_as_a_diff_and_answered_by_keys_cli_197() {
    edits("2.1.197", "an_edit_is_seen_as_a_diff_and_answered_by_keys_cli_197").await;
}

#[tokio::test]
async fn an_edit_is_seen_as_a_diff_and_answered_by_keys_cli_325() {
    edits("2.1.325", "an_edit_is_seen_as_a_diff_and_answered_by_keys_cli_325").await;
}

#[tokio::test]
async fn an_answer_of_another_client_is_shown() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": false})).await.unwrap();
    terminal.shows("Denied by you: Bash touch made (worker)").await;
    terminal.until("no question is open", answered).await;
}

#[tokio::test]
async fn a_resize_is_drawn_and_a_signal_restores_the_terminal() {
    let hub = TestHub::start().await;
    hub.asking_session("worker").await;
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = watch(&hub, &[]);
        terminal.shows("$ touch made").await;
        terminal.until("the log has no room", |screen| !screen.contains("Log of")).await;
        terminal.resize(140, 40);
        terminal.shows("Log of worker").await;
        terminal.signal(signal);
        terminal.gives_back().await;
    }
}

#[tokio::test]
async fn a_panic_restores_the_terminal() {
    let hub = TestHub::start().await;
    let file = hub.folder.path().join("panic");
    let mut terminal = watch(&hub, &[("PLEXUS_WATCH_PANIC", &file)]);
    terminal.shows(" 0 open").await;
    std::fs::write(&file, "").unwrap();
    terminal.types("j");
    assert!(!terminal.gives_back().await.success());
}

#[tokio::test]
async fn watch_reconnects_to_a_restarted_hub() {
    let mut hub = TestHub::start().await;
    let (session, _) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    hub.process.kill9().await.unwrap();
    terminal.shows("Disconnected. Reconnecting…").await;
    hub.process.restart().await.unwrap();
    terminal.until("the hub is back", |screen| !screen.contains("Disconnected. Re")).await;
    terminal.shows("$ touch made").await;
    terminal.presses("a", "no question is open", answered).await;
    event(&hub, &session, "complete").await;
    assert!(hub.work().join("made").exists());
}

#[tokio::test]
async fn watch_needs_a_terminal() {
    let hub = TestHub::start().await;
    let output = hub.run(&["watch"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(crate::support::text(&output.stderr).contains("needs a terminal"));
}

#[tokio::test]
async fn a_reply_of_the_terminal_answers_nothing() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    // A key that opens the prompt shows that the approval has been visible long enough to accept keys.
    terminal.presses("d", "the reason is asked for", |screen| screen.contains("Why not?")).await;
    terminal.types("\u{1b}");
    terminal.until("the line is gone", |screen| !screen.contains("Why not?")).await;
    for reply in [
        "\u{1b}P1$r0;a\u{1b}\\",
        "\u{1b}]11;rgb:aaaa/aaaa/aaaa\u{7}",
        "\u{1b}_Ga=a\u{1b}\\",
        "\u{1b}[?2026;2$y",
        "\u{1b}a",
        "\u{1}",
    ] {
        terminal.types(reply);
    }
    terminal.types("/none");
    terminal.until("all of it was read", |screen| screen.contains("/none")).await;
    let found = hub.call("loopback.get", json!({"approval_id": approval})).await.unwrap();
    assert_eq!(found["approval"]["status"], "pending", "{}", terminal.text());
    terminal.types("\u{1b}");
    terminal.shows("$ touch made").await;
    terminal.presses("a", "no question is open", answered).await;
}

#[tokio::test]
async fn a_rule_that_does_not_match_the_call_is_not_added() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("worker").await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows("$ touch made").await;
    terminal.presses("r", "a rule is asked for", |screen| screen.contains("add this rule")).await;
    terminal.types("\u{15}Bash(rm:*)\r");
    terminal.shows("`Bash(rm:*)` does not match this call; nothing was answered").await;
    let rules = hub.call("policy.list", json!({"session_id": session})).await.unwrap();
    assert_eq!(rules["rules"], json!([]), "no rule was added");
    let found = hub.call("loopback.get", json!({"approval_id": approval})).await.unwrap();
    assert_eq!(found["approval"]["status"], "pending");
    terminal.presses("r", "a rule is asked for", |screen| screen.contains("add this rule")).await;
    terminal.types("\u{15}Bash(touch:*)\r");
    terminal.shows("added the rule Bash(touch:*)").await;
}

#[tokio::test]
async fn a_row_that_is_drawn_too_wide_ends_at_the_edge() {
    let hub = TestHub::start().await;
    let mut terminal = watch(&hub, &[]);
    terminal.shows(" 0 open").await;
    assert!(terminal.wrote("\u{1b}[?7l") && !terminal.wrote("\u{1b}[?7h"), "lines do not wrap");
    terminal.types("q");
    let wrote = terminal.all();
    assert!(terminal.gives_back().await.success());
    assert!(String::from_utf8_lossy(&wrote.lock().unwrap()).contains("\u{1b}[?7h"), "lines wrap again");
}
