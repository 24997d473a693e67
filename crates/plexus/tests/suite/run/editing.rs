//! Editing the input of a call.

use serde_json::json;

use super::{at_terminal, touch};
use crate::support::TestHub;

#[tokio::test]
async fn e_opens_the_command_as_plain_text_and_an_empty_command_again() {
    let hub = TestHub::start().await;
    let script = hub.folder.path().join("editor");
    let lines = "case \"$1\" in *.sh) cp \"$1\" ../draft;; esac\n\
                 if [ -e ../again ]; then echo 'touch changed' >\"$1\"; else touch ../again; echo >\"$1\"; fi\n";
    std::fs::write(&script, lines).unwrap();
    let editor = format!("sh {}", script.display());
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], &editor);
    run.expect("Allow it?").await.unwrap();
    run.press("e\n").unwrap();
    run.expect("the command is empty").await.unwrap();
    assert_eq!(std::fs::read_to_string(hub.folder.path().join("draft")).unwrap(), "touch made");
    run.expect("Press Enter").await.unwrap();
    run.press("\n").unwrap();
    run.expect("- touch made").await.unwrap();
    run.expect("+ touch changed").await.unwrap();
    run.expect("Allow it with this input? y, or n to cancel the edit: ").await.unwrap();
    assert!(!hub.work().join("changed").exists(), "an edit alone answers nothing");
    run.press("y\n").unwrap();
    run.expect("Allowed: Bash touch changed (edited, a)").await.unwrap();
    run.expect("= allowed by you, edited").await.unwrap();
    run.expect("+ touch changed").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("changed").exists() && !hub.work().join("made").exists());
}

#[tokio::test]
async fn an_edited_file_is_written_with_the_saved_text() {
    let hub = TestHub::start().await;
    let path = hub.work().join("made.rs");
    let input = json!({"file_path": path, "content": "fn a() {\n    \"x\"\n}\n"});
    let prompt = json!([{"tool": "Write", "input": input}]).to_string();
    let editor = "sh -c 'case $1 in *.rs) sed -i s/x/y/ \"$1\";; esac' x";
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], editor);
    run.expect("Allow it?").await.unwrap();
    run.press("e\n").unwrap();
    run.expect("Allow it with this input?").await.unwrap();
    run.press("y\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert_eq!(std::fs::read_to_string(path).unwrap(), "fn a() {\n    \"y\"\n}\n");
}

#[tokio::test]
async fn an_input_without_a_main_text_is_edited_as_json() {
    let hub = TestHub::start().await;
    let prompt = json!([{"tool": "Other", "input": {"count": 1}}]).to_string();
    let editor = "sh -c 'case $1 in *.json) echo \"{\" >\"$1\";; esac' x";
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], editor);
    run.expect("Allow it?").await.unwrap();
    run.press("e\n").unwrap();
    run.expect("this is not a JSON object").await.unwrap();
    run.expect("n to go back").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Allow it? y,").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn an_editor_that_fails_or_returns_no_change_or_no_command_answers_nothing() {
    let hub = TestHub::start().await;
    for (editor, said) in [
        ("true", "the input was not changed"),
        ("false", "failed (exit status: 1)"),
        ("sh -c 'echo touch stolen >\"$1\"; exit 3' x", "failed (exit status: 3)"),
        ("sh -c 'kill -9 $$' x", "failed (exit status: 137)"),
        ("sh -c 'printf %s \"touch made\" >\"$1\"' x", "the input was not changed"),
        ("sh -c 'echo touch made >\"$1\"' x", "the input was not changed"),
        ("sh -c ': >\"$1\"' x", "the command is empty"),
    ] {
        let mut run = at_terminal(&hub, &["run", &touch(&["made"])], editor);
        run.expect("Allow it?").await.unwrap();
        run.press("e\n").unwrap();
        run.expect(said).await.unwrap();
        if said.ends_with("is empty") {
            run.expect("n to go back").await.unwrap();
            run.press("n\n").unwrap();
        }
        run.expect("nothing was answered; the approval stays open").await.unwrap();
        run.expect("Allow it? y,").await.unwrap();
        assert_eq!(
            hub.call("loopback.pending", json!({})).await.unwrap()["approvals"][0]["status"],
            "pending"
        );
        run.press("n\n").unwrap();
        assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
        assert!(!hub.work().join("made").exists() && !hub.work().join("stolen").exists(), "{editor}");
    }
}

#[tokio::test]
async fn after_a_refused_edit_the_requested_input_is_shown_again() {
    let hub = TestHub::start().await;
    let rules = json!({"rules": [{"rule": "Bash(rm:*)", "effect": "deny"}]});
    hub.call("policy.add", rules).await.unwrap();
    let editor = "sh -c 'echo rm made >\"$1\"' x";
    let mut run = at_terminal(&hub, &["run", &touch(&["made"])], editor);
    run.expect("Allow it?").await.unwrap();
    run.press("e\n").unwrap();
    run.expect("Allow it with this input?").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("a rule denies this call").await.unwrap();
    // The call directly above the prompt is the one that `y` would allow.
    run.expect("$ touch made").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn an_edit_of_escaped_characters_warns_that_the_escapes_will_run() {
    let hub = TestHub::start().await;
    let prompt = json!([{"tool": "Bash", "input": {"command": "true \u{1b}a"}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "sed -i s/a/b/");
    run.expect("$ true \\u{1b}a").await.unwrap();
    run.expect("are shown as \\u{…}").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("e\n").unwrap();
    run.expect("The escapes will run, not the characters").await.unwrap();
    run.expect("Allow it with this input?").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}
