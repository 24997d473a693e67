//! `plexus run` and `attach` at a real terminal, and without one.

use plexus_testkit::pty::{CTRL_C, CTRL_D, Pty};
use serde_json::{Value, json};

use crate::support::{TestHub, text};

/// A prompt for the scripted agent that touches these files, one after the other.
fn touch(files: &[&str]) -> String {
    let steps =
        files.iter().map(|file| json!({"tool": "Bash", "input": {"command": format!("touch {file}")}}));
    json!(steps.collect::<Vec<_>>()).to_string()
}

fn at_terminal(hub: &TestHub, args: &[&str], editor: &str) -> Pty {
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("EDITOR", editor.to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
        ("SECRET", "s3cret".to_owned()),
        ("WANTED", "w4nted".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), args, &hub.work(), &env).unwrap()
}

async fn events(hub: &TestHub, name: &str) -> String {
    hub.call("claudecode.poll", json!({"name": name, "from_seq": 0})).await.unwrap()["events"].to_string()
}

#[tokio::test]
async fn y_allows_a_call_and_n_with_a_reason_denies_it() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["one", "two"])], "true");
    run.expect("a wants to use Bash").await.unwrap();
    run.expect("touch one").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    assert!(!hub.work().join("one").exists(), "not before it is answered");
    run.press("perhaps\n").unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("touch two").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("n not that one\n").unwrap();
    run.expect("* complete").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("one").exists() && !hub.work().join("two").exists());
    assert!(events(&hub, "a").await.contains("not that one"), "the agent reads why");
}

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
async fn a_adds_a_rule_and_s_leaves_an_approval_open() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made", "made", "other"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("a\n").unwrap();
    run.expect("[Bash(touch made)]").await.unwrap();
    run.press("\n").unwrap();
    // The rule allows the second call.
    run.expect("touch other").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("s\n").unwrap();
    run.expect("plexus approve ").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": true})).await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("other").exists());
}

#[tokio::test]
async fn input_typed_while_the_agent_works_never_reaches_the_shell() {
    let hub = TestHub::start().await;
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PROMPT", touch(&["made"])),
        ("PLEXUS", env!("CARGO_BIN_EXE_plexus").to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let script =
        "\"$PLEXUS\" run --name a \"$PROMPT\"; echo run has ended; read -r line; echo \"shell: $line.\"";
    let mut shell = Pty::start("/bin/sh".as_ref(), &["-c", script], &hub.work(), &env).unwrap();
    shell.expect("Allow it?").await.unwrap();
    shell.press("s\n").unwrap();
    shell.expect("plexus approve ").await.unwrap();
    shell.press("touch pwned\n").unwrap();
    shell.expect("run takes no messages; `plexus attach a` sends one").await.unwrap();
    // Not even an incomplete line.
    shell.press("rm -r ").unwrap();
    shell.expect("rm -r ").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": true})).await.unwrap();
    shell.expect("run has ended").await.unwrap();
    shell.press("typed for the shell\n").unwrap();
    shell.expect("shell: typed for the shell.").await.unwrap();
    assert_eq!(shell.end().await.unwrap(), 0, "{}", shell.shown());
}

#[tokio::test]
async fn an_answer_that_is_not_an_option_needs_confirmation() {
    let hub = TestHub::start().await;
    let options = json!([{"label": "red"}, {"label": "blue"}, {"label": "green"}]);
    let one = json!({"question": "Which colour?", "options": options});
    let several = json!({"question": "Which others?", "options": options, "multiSelect": true});
    let prompt = json!([{"tool": "AskUserQuestion", "input": {"questions": [one, several]}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Which colour? Answer (a number or words").await.unwrap();
    run.press("4\n").unwrap();
    run.expect("choose 1 to 3").await.unwrap();
    run.expect("Which colour? Answer").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Send \"n\" as your answer? y or n: ").await.unwrap();
    run.press("n\n").unwrap();
    run.expect("Which colour? Answer").await.unwrap();
    run.press("rather pink\n").unwrap();
    run.expect("Send \"rather pink\" as your answer? y or n: ").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("Which others? Answer (a number, several such as 1,3, or words").await.unwrap();
    run.press("1,3\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let events = events(&hub, "a").await;
    assert!(events.contains("rather pink") && events.contains("red, green"), "{events}");
}

#[tokio::test]
async fn input_typed_for_one_approval_never_answers_another() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["one", "two"])], "true");
    run.expect("s(kip): ").await.unwrap();
    // Typed but not submitted when another client decides.
    run.press("y").unwrap();
    run.expect("y").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": false})).await.unwrap();
    run.expect("touch two").await.unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("\n").unwrap();
    run.expect("Allow it?").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(!hub.work().join("one").exists() && !hub.work().join("two").exists());
}

#[tokio::test]
async fn ctrl_c_interrupts_the_turn() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("interrupting the turn").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 130, "{}", run.shown());
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap();
    assert_eq!(session["session"]["status"], "interrupted");
    assert!(!hub.work().join("made").exists());
}

#[tokio::test]
async fn an_agent_inherits_only_named_variables() {
    let hub = TestHub::start().await;
    let prompt = json!([{"tool": "Bash", "input": {"command": "env >seen"}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", "--env", "WANTED", &prompt], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("y\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let seen = std::fs::read_to_string(hub.work().join("seen")).unwrap();
    assert!(seen.contains("WANTED=w4nted") && !seen.contains("s3cret"), "{seen}");
}

#[tokio::test]
async fn output_of_an_agent_never_moves_the_cursor() {
    let hub = TestHub::start().await;
    let hostile = "\u{1b}[2Jgone\u{202e}\r";
    let prompt = json!([{"say": hostile}, {"tool": "Bash", "input": {"command": format!("true {hostile}")}}])
        .to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0);
    let shown = run.shown();
    assert!(
        !shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}') && shown.contains("\\u{1b}[2Jgone"),
        "{shown}"
    );
}

#[tokio::test]
async fn attach_answers_and_sends_the_next_prompt() {
    let hub = TestHub::start().await;
    let (_, _) = hub.asking_session("a").await;
    let mut attached = at_terminal(&hub, &["attach", "a"], "true");
    attached.expect("touch made").await.unwrap();
    attached.expect("Allow it?").await.unwrap();
    attached.press("y\n").unwrap();
    attached.expect("* complete").await.unwrap();
    attached.expect("a> ").await.unwrap();
    attached.press("[{\"say\":\"hello again\"}]\n").unwrap();
    attached.expect("hello again").await.unwrap();
    attached.expect("* complete").await.unwrap();
    attached.expect("a> ").await.unwrap();
    attached.press(CTRL_D).unwrap();
    assert_eq!(attached.end().await.unwrap(), 0, "{}", attached.shown());
}

#[tokio::test]
async fn without_a_terminal_an_approval_stays_open_and_is_reported() {
    let hub = TestHub::start().await;
    let prompt = touch(&["made"]);
    let words = ["run", "--name", "a", &prompt];
    let (ran, ()) = tokio::join!(hub.run(&words), async {
        let waited = async {
            loop {
                let wait = hub.call("loopback.wait", json!({"cursor": 0, "timeout_ms": 1000})).await.unwrap();
                if let Some(id) = wait["approvals"][0]["id"].as_str() {
                    return id.to_owned();
                }
            }
        };
        let id = tokio::time::timeout(crate::support::LIMIT, waited).await.expect("it asks");
        let refused = hub.run(&["approve", &id[..8]]).await;
        assert_eq!(refused.status.code(), Some(2), "it needs a digest: {}", text(&refused.stderr));
        assert!(hub.run(&["approve", &id[..8], "--digest", &hub.digest(&id).await]).await.status.success());
    });
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert!(
        text(&ran.stderr).contains("plexus: a needs approval: `plexus approve "),
        "{}",
        text(&ran.stderr)
    );
    assert!(text(&ran.stdout).starts_with("> Bash touch made\n"), "{}", text(&ran.stdout));
    assert!(!text(&ran.stdout).contains('\u{1b}'));
}

#[tokio::test]
async fn the_exit_code_is_the_outcome_of_the_turn() {
    let hub = TestHub::start().await;
    let failed = hub.run(&["run", "[{\"result_error\":\"the model is away\"}]"]).await;
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let json = hub.run(&["run", "--name", "b", "--json", "[{\"say\":\"hi\"}]"]).await;
    assert_eq!(json.status.code(), Some(0));
    let lines: Vec<Value> =
        text(&json.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"]["type"], "start");
    assert_eq!(lines.last().unwrap()["status"], "complete");
    let usage = hub.run(&["run", "--env", "NOT_SET", "x"]).await;
    assert_eq!(usage.status.code(), Some(2), "{}", text(&usage.stderr));
    let taken = hub.run(&["run", "--name", "b", "x"]).await;
    assert_eq!(taken.status.code(), Some(1), "{}", text(&taken.stderr));
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_the_session_running() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    // The hub does not respond, so the interrupt stays pending.
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("interrupting the turn").await.unwrap();
    run.press(CTRL_C).unwrap();
    run.expect("detached; a keeps running").await.unwrap();
    let code = run.end().await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(code.unwrap(), 130);
}

#[tokio::test]
async fn a_verb_reports_a_frozen_hub_and_exits() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let met = hub.run(&["ls"]).await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(met.status.code(), Some(1), "{met:?}");
    let said = text(&met.stderr);
    assert!(
        said.contains("has not responded") && said.contains(&format!("kill -CONT {}", hub.process.pid())),
        "{said}"
    );
    assert_eq!(hub.run(&["ls"]).await.status.code(), Some(0));
}

#[tokio::test]
async fn a_question_is_answered_by_number_or_text() {
    let hub = TestHub::start().await;
    let options = json!([{"label": "red", "description": "like fire"}, {"label": "blue"}]);
    let colour = json!({"question": "Which colour?", "options": options});
    let size = json!({"question": "Which size?", "options": []});
    let prompt = json!([{"tool": "AskUserQuestion", "input": {"questions": [colour, size]}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("1. red").await.unwrap();
    run.expect("like fire").await.unwrap();
    run.expect("2. blue").await.unwrap();
    run.expect("Answer").await.unwrap();
    run.press("2\n").unwrap();
    run.expect("Which size? Answer").await.unwrap();
    run.press("rather large\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    let events = events(&hub, "a").await;
    assert!(events.contains("blue") && events.contains("rather large"), "{events}");
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
async fn no_and_quit_are_not_parsed_as_a_rule() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", &touch(&["made"])], "true");
    for no in ["n\n", "q\n"] {
        run.expect("Allow it? y,").await.unwrap();
        run.press("a\n").unwrap();
        run.expect("Rule to remember").await.unwrap();
        run.press(no).unwrap();
        run.expect("$ touch made").await.unwrap();
    }
    run.expect("Allow it? y,").await.unwrap();
    assert!(!hub.work().join("made").exists());
    assert_eq!(hub.call("policy.list", json!({})).await.unwrap()["rules"], json!([]));
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
}

#[tokio::test]
async fn a_long_call_is_allowed_only_after_its_last_page() {
    let hub = TestHub::start().await;
    let command = format!("true\n{}touch hidden", "# nothing to see\n".repeat(60));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("22 of 65 lines shown; Enter shows more").await.unwrap();
    assert!(!run.shown().contains("touch hidden"));
    for line in ["y\n", "a\n"] {
        run.press(line).unwrap();
        run.expect("you can allow it once you have seen all of it").await.unwrap();
        run.expect("22 of 65 lines shown").await.unwrap();
    }
    assert!(!hub.work().join("hidden").exists());
    run.press("\n").unwrap();
    run.expect("44 of 65 lines shown").await.unwrap();
    run.press("\n").unwrap();
    run.expect("touch hidden").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    run.press("y\n").unwrap();
    run.expect("Allowed: Bash true").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("hidden").exists());
}

#[tokio::test]
async fn invisible_characters_are_escaped_and_imitate_no_line_of_plexus() {
    let hub = TestHub::start().await;
    let command = "rm\u{a0}-r\u{200b} x  \n\tls\nAllow it? y, n\nplexus: Allowed";
    let input = json!({"command": command, "because": "it is safe"});
    let prompt = json!([{"tool": "Bash", "input": input}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Allow it? y, n, n WHY").await.unwrap();
    let shown = ["\r", "\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"]
        .iter()
        .fold(run.shown(), |text, code| text.replace(code, ""));
    for row in [
        "$ rm\\u{a0}-r\\u{200b} x··\n",
        "\n| →   ls\n",
        "\n| Allow it? y, n\n",
        "\n| plexus: Allowed\n",
        "\n  because: it is safe\n",
    ] {
        assert!(shown.contains(row), "{row:?} in\n{shown}");
    }
    assert!(shown.contains("characters are shown as \\u{…}"), "{shown}");
    run.press("n\n").unwrap();
    assert_eq!(run.end().await.unwrap(), 0);
}

#[tokio::test]
async fn a_frozen_hub_is_shown_as_disconnected_and_takes_no_answers() {
    use rustix::process::{Pid, Signal, kill_process};
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it? y,").await.unwrap();
    let pid = Pid::from_raw(hub.process.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let disconnected = run.expect("Disconnected").await;
    run.press("y\n").unwrap();
    let prompts = run.shown().matches("Allow it?").count();
    kill_process(pid, Signal::CONT).unwrap();
    disconnected.unwrap();
    run.expect("Reconnected.").await.unwrap();
    run.expect("touch made").await.unwrap();
    run.expect("Allow it? y,").await.unwrap();
    assert_eq!((prompts, hub.work().join("made").exists()), (1, false), "input typed meanwhile is ignored");
    run.press("y\n").unwrap();
    run.expect("Allowed: Bash touch made (a)").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("made").exists());
}

#[tokio::test]
async fn a_rule_that_does_not_match_the_call_is_rejected_and_prompted_again() {
    let hub = TestHub::start().await;
    let mut run = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    run.expect("Allow it?").await.unwrap();
    run.press("a\n").unwrap();
    run.expect("[Bash(touch made)]: ").await.unwrap();
    run.press("Bash(rm:*)\n").unwrap();
    run.expect("`Bash(rm:*)` does not match this call; nothing was answered").await.unwrap();
    run.expect("[Bash(touch made)]: ").await.unwrap();
    assert!(!hub.work().join("made").exists());
    let rules = hub.call("policy.list", json!({"name": "a"})).await.unwrap();
    assert_eq!(rules["rules"], json!([]), "no rule was added");
    run.press("Bash(touch:*)\n").unwrap();
    run.expect("added the rule Bash(touch:*)").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(hub.work().join("made").exists());
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

#[tokio::test]
async fn an_approval_resolved_elsewhere_while_it_is_read_is_reported() {
    let hub = TestHub::start().await;
    let command = format!("touch made\n{}", "# line\n".repeat(60));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let mut run = at_terminal(&hub, &["run", "--name", "a", &prompt], "true");
    run.expect("Enter shows more").await.unwrap();
    let open = hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    hub.call("loopback.respond", json!({"approval_id": open[0]["id"], "approve": false})).await.unwrap();
    run.expect("plexus: Denied by you: Bash touch made").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert!(!hub.work().join("made").exists());
}

#[tokio::test]
async fn ctrl_d_leaves_the_session_running() {
    let hub = TestHub::start().await;
    let wait = json!([{"tool": "Bash", "input": {"command": "until [ -e ../go ]; do sleep 0.05; done"}}])
        .to_string();
    // At a prompt, and while the agent works.
    let mut asked = at_terminal(&hub, &["run", "--name", "a", &touch(&["made"])], "true");
    asked.expect("Allow it?").await.unwrap();
    asked.press(CTRL_D).unwrap();
    asked.expect("detached; a keeps running, and `plexus attach a` shows it again").await.unwrap();
    assert_eq!(asked.end().await.unwrap(), 130, "{}", asked.shown());
    let mut working = at_terminal(&hub, &["run", "--name", "b", "--policy", "allow_all", &wait], "true");
    working.expect("] Bash until").await.unwrap();
    working.press(CTRL_D).unwrap();
    working.expect("detached; b keeps running, and `plexus attach b` shows it again").await.unwrap();
    assert_eq!(working.end().await.unwrap(), 130, "{}", working.shown());
    for name in ["a", "b"] {
        let session = hub.call("claudecode.get", json!({"name": name})).await.unwrap();
        assert!(session["session"]["status"] != "interrupted", "{session}");
    }
    std::fs::write(hub.folder.path().join("go"), "").unwrap();
}

#[tokio::test]
async fn a_prompt_comes_from_a_file_or_stdin_and_a_detached_run_prints_its_name() {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("task.json"), "[{\"say\": \"from a file\"}]").unwrap();
    let file = hub.run(&["run", "@task.json"]).await;
    assert!(file.status.success() && text(&file.stdout).contains("from a file"), "{}", text(&file.stderr));
    let none = hub.run(&["run", "@missing"]).await;
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
    // The stdin of `hub.run` is empty.
    let empty = hub.run(&["run", "-"]).await;
    assert!(text(&empty.stderr).contains("the prompt is empty"), "{}", text(&empty.stderr));
    assert_eq!(empty.status.code(), Some(2));
    let mut command = crate::support::plexus(hub.folder.path());
    let stdin = std::fs::File::open(hub.work().join("task.json")).unwrap();
    command.args(["run", "-", "--data-dir"]).arg(hub.process.data_dir()).current_dir(hub.work()).stdin(stdin);
    let piped = tokio::process::Command::from(command).output().await.unwrap();
    assert!(piped.status.success() && text(&piped.stdout).contains("from a file"), "{}", text(&piped.stderr));
    let detached = hub.run(&["run", "--detach", "--name", "d", &touch(&["made"])]).await;
    assert_eq!((detached.status.code(), text(&detached.stdout).as_str()), (Some(0), "d\n"));
    assert!(text(&detached.stderr).contains("`plexus attach d` follows it"), "{}", text(&detached.stderr));
    let session = hub.call("claudecode.get", json!({"name": "d"})).await.unwrap();
    hub.first_approval(session["session"]["id"].as_str().unwrap()).await;
}

#[tokio::test]
async fn the_budget_trust_and_servers_reach_the_session() {
    let hub = TestHub::start().await;
    let servers = json!({"mcpServers": {"files": {"command": "true"}}}).to_string();
    std::fs::write(hub.work().join("mcp.json"), servers).unwrap();
    let args =
        ["run", "--name", "a", "--budget", "2.5", "--trust", "--mcp", "mcp.json", "[{\"say\": \"hi\"}]"];
    let ran = hub.run(&args).await;
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let session = hub.call("claudecode.get", json!({"name": "a"})).await.unwrap()["session"].take();
    assert_eq!(session["budget"]["cost_usd"]["limit"], 2.5);
    assert_eq!(session["loads"]["mcp_servers"], json!(["files"]));
    assert!(session["loads"]["project"]["trusted_at"].is_number(), "{session}");
    for invalid in [["--budget", "none"], ["--mode", "bypassPermissions"], ["--mcp", "missing.json"]] {
        let refused = hub.run(&[&["run"], &invalid[..], &["x"]].concat()).await;
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    }
}

#[tokio::test]
async fn the_end_of_a_worktree_session_shows_its_changes_and_the_next_commands() {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("notes"), "one\ntwo\n").unwrap();
    for args in [
        &["init", "-q"][..],
        &["add", "notes"],
        &["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-qm", "first"],
    ] {
        let done = std::process::Command::new("git")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", hub.folder.path())
            .args(args)
            .current_dir(hub.work())
            .status()
            .unwrap();
        assert!(done.success(), "{args:?}");
    }
    let input = json!({"file_path": "notes", "old_string": "two", "new_string": "three"});
    let prompt = json!([{"tool": "Edit", "input": input}]).to_string();
    let mut run =
        at_terminal(&hub, &["run", "--name", "a", "--worktree", "--policy", "allow_all", &prompt], "true");
    run.expect("* complete").await.unwrap();
    run.expect("# notes +1 -1").await.unwrap();
    run.expect("-two").await.unwrap();
    run.expect("+three").await.unwrap();
    run.expect("commit:  git -C ").await.unwrap();
    run.expect("merge:   git merge plexus/a-").await.unwrap();
    run.expect("discard: git worktree remove --force ").await.unwrap();
    assert_eq!(run.end().await.unwrap(), 0, "{}", run.shown());
    assert_eq!(
        std::fs::read_to_string(hub.work().join("notes")).unwrap(),
        "one\ntwo\n",
        "only the worktree changed"
    );
}

#[tokio::test]
async fn a_transcript_in_a_file_is_plain_while_the_terminal_asks() {
    let hub = TestHub::start().await;
    let prompt =
        json!([{"say": "# A `title`"}, {"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("PROMPT", prompt),
        ("PLEXUS", env!("CARGO_BIN_EXE_plexus").to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let script = "\"$PLEXUS\" run --name a \"$PROMPT\" >transcript";
    let mut shell = Pty::start("/bin/sh".as_ref(), &["-c", script], &hub.work(), &env).unwrap();
    shell.expect("Allow it?").await.unwrap();
    shell.press("y\n").unwrap();
    assert_eq!(shell.end().await.unwrap(), 0, "{}", shell.shown());
    let written = std::fs::read_to_string(hub.work().join("transcript")).unwrap();
    assert!(written.starts_with("# A `title`\n> Bash touch made\n= allowed by you\n"), "{written}");
    assert!(!written.contains('\u{1b}'), "{written:?}");
}
