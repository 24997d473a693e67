//! What the terminal shows, and what it never shows.

use plexus_testkit::pty::Pty;
use serde_json::json;

use super::{at_terminal, touch};
use crate::support::TestHub;

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
