//! The everyday verbs: `ls`, `approvals`, `approve`, `deny`, `logs`, `stop`.

use std::process::Output;

use plexus_testkit::pty::Pty;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::support::{LIMIT, TestHub, plexus, text};
use crate::terminal::Terminal;
use crate::transcript;

async fn compare(hub: &TestHub, name: &str, args: &[&str], words: &[(&str, &str)]) -> Output {
    let output = hub.run(args).await;
    let folder = hub.folder.path().to_str().unwrap();
    let words: Vec<(&str, &str)> = words.iter().copied().chain([(folder, "FOLDER")]).collect();
    transcript::matches(name, &args.join(" "), &output, &words);
    output
}

/// Waits until the latest turn of a session is over.
async fn over(hub: &TestHub, session: &str) -> Value {
    let ended = async {
        loop {
            let poll = json!({"session_id": session, "from_seq": 1_000_000, "wait_ms": 1000});
            let seen = hub.call("claudecode.poll", poll).await.unwrap();
            if matches!(seen["status"].as_str(), Some("complete" | "failed" | "interrupted")) {
                return seen["status"].clone();
            }
        }
    };
    tokio::time::timeout(LIMIT, ended).await.expect("the turn ends")
}

#[tokio::test]
async fn a_day_at_the_command_line() {
    let hub = TestHub::start().await;
    compare(&hub, "ls-empty", &["ls"], &[]).await;
    let (session, approval) = hub.asking_session("fixer").await;
    let id = &approval[..8];
    compare(&hub, "ls", &["ls"], &[]).await;
    let open = hub.run(&["approvals"]).await;
    let shown = text(&open.stdout);
    let digest = hub.digest(&approval).await;
    assert!(
        shown.starts_with(&format!("{id}  Asked you ")) && shown.contains("fixer wants to use Bash\n"),
        "{shown}"
    );
    assert!(
        shown.contains("\n$ touch made\n") && shown.ends_with(&format!("\ndigest {digest}\n")),
        "{shown}"
    );
    let none = compare(&hub, "approve-unknown", &["approve", "zzz", "--digest", "x"], &[]).await;
    assert_eq!(none.status.code(), Some(1));
    let unseen = compare(&hub, "approve-unseen", &["approve", id], &[(id, "ID")]).await;
    assert_eq!(unseen.status.code(), Some(2));
    let other = compare(&hub, "approve-other", &["approve", id, "--digest", "x"], &[(id, "ID")]).await;
    assert_eq!(other.status.code(), Some(1));
    assert!(!hub.work().join("made").exists());
    let words = [(&approval[..6], "ID"), (&*digest, "DIGEST")];
    compare(&hub, "approve", &["approve", &approval[..6], "--digest", &digest], &words).await;
    assert_eq!(over(&hub, &session).await, "complete");
    assert!(hub.work().join("made").exists());
    compare(&hub, "logs", &["logs", "fixer"], &[(id, "ID")]).await;
    let words = [(&*approval, "ID"), (&*digest, "DIGEST")];
    let late = compare(&hub, "approve-late", &["approve", &approval, "--digest", &digest], &words).await;
    assert_eq!(late.status.code(), Some(1));
    compare(&hub, "stop", &["stop", "fixer"], &[]).await;
    compare(&hub, "stop-unknown", &["stop", "nobody"], &[]).await;
    compare(&hub, "approvals-empty", &["approvals"], &[]).await;
}

#[tokio::test]
async fn a_denial_reaches_the_agent_with_its_reason() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    compare(&hub, "deny", &["deny", &approval, "-m", "not here"], &[(&approval, "ID")]).await;
    over(&hub, &session).await;
    assert!(!hub.work().join("made").exists(), "a denied call never runs");
    let said = text(&hub.run(&["logs", "a"]).await.stdout);
    assert!(said.contains("= denied by you: not here") && said.contains("  ! "), "{said}");
}

fn at_terminal(hub: &TestHub, args: &[&str], editor: &str) -> Pty {
    let env = [
        ("HOME", hub.folder.path().to_str().unwrap().to_owned()),
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm".to_owned()),
        ("EDITOR", editor.to_owned()),
        ("PLEXUS_DATA_DIR", hub.process.data_dir().to_str().unwrap().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    Pty::start(env!("CARGO_BIN_EXE_plexus").as_ref(), args, &hub.work(), &env).unwrap()
}

#[tokio::test]
async fn an_edited_input_is_confirmed_runs_and_is_shown_everywhere() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let edit = ["approve", &approval, "--edit"];
    let alone = hub.run(&edit).await;
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
    assert!(text(&alone.stderr).contains("--edit needs a terminal"), "{}", text(&alone.stderr));

    let mut same = at_terminal(&hub, &edit, "true");
    same.expect("not changed: nothing was answered; the approval stays open").await.unwrap();
    assert_eq!(same.end().await.unwrap(), 130);
    let mut broken = at_terminal(&hub, &edit, "sh -c ': >\"$1\"' x");
    broken.expect("the command is empty").await.unwrap();
    broken.expect("n to cancel: ").await.unwrap();
    broken.press("n\n").unwrap();
    broken.expect("the approval stays open").await.unwrap();
    assert_eq!(broken.end().await.unwrap(), 130);
    let mut refused = at_terminal(&hub, &edit, "sed -i s/made/changed/");
    refused.expect("Allow it with this input? y allows, n leaves it open: ").await.unwrap();
    refused.press("n\n").unwrap();
    refused.expect("the approval stays open").await.unwrap();
    assert_eq!(refused.end().await.unwrap(), 130);

    let mut changed = at_terminal(&hub, &edit, "sed -i s/made/changed/");
    changed.expect("- touch made").await.unwrap();
    changed.expect("+ touch changed").await.unwrap();
    changed.expect("Allow it with this input? y allows, n leaves it open: ").await.unwrap();
    changed.press("y\n").unwrap();
    changed.expect("Allowed: Bash touch changed (edited, a)").await.unwrap();
    assert_eq!(changed.end().await.unwrap(), 0);
    over(&hub, &session).await;
    assert!(hub.work().join("changed").exists() && !hub.work().join("made").exists());
    compare(&hub, "logs-edited", &["logs", "a"], &[(&approval[..8], "ID")]).await;
    let transcript = text(&hub.run(&["transcript", "a"]).await.stdout);
    assert!(transcript.contains("-touch made\n+touch changed\n"), "{transcript}");
    let logs = text(&hub.run(&["logs", "a", "--json"]).await.stdout);
    assert!(logs.contains("\"updated_input\":{\"command\":\"touch changed\"}"), "{logs}");
}

#[tokio::test]
async fn approve_shows_all_of_a_call_and_asks() {
    let hub = TestHub::start().await;
    let command = format!("true\n{}touch made", "# line\n".repeat(40));
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&session).await;
    let listed = text(&hub.run(&["approvals"]).await.stdout);
    assert!(listed.contains("TRUNCATED: 16 of 45 lines shown") && !listed.contains("digest"), "{listed}");
    let whole = text(&hub.run(&["approvals", &approval[..8]]).await.stdout);
    assert!(whole.contains("touch made\n") && whole.contains(&hub.digest(&approval).await), "{whole}");

    let mut leaves = at_terminal(&hub, &["approve", &approval], "true");
    leaves.expect("n or q cancels: ").await.unwrap();
    leaves.press("n\n").unwrap();
    leaves.expect("nothing was answered; the approval stays open").await.unwrap();
    assert_eq!(leaves.end().await.unwrap(), 130);

    let mut asks = at_terminal(&hub, &["approve", &approval], "true");
    asks.expect("22 of 45 lines shown").await.unwrap();
    asks.press("y\n").unwrap();
    asks.expect("you can allow it once you have seen all of it").await.unwrap();
    asks.expect("22 of 45 lines shown; Enter shows more, n or q cancels: ").await.unwrap();
    asks.press("\n").unwrap();
    asks.expect("44 of 45 lines shown").await.unwrap();
    asks.press("\n").unwrap();
    asks.expect("touch made").await.unwrap();
    asks.expect("Allow it? y allows, n leaves it open: ").await.unwrap();
    assert!(!hub.work().join("made").exists());
    asks.press("y\n").unwrap();
    asks.expect("Allowed: Bash true").await.unwrap();
    assert_eq!(asks.end().await.unwrap(), 0, "{}", asks.shown());
    over(&hub, &session).await;
    assert!(hub.work().join("made").exists());
}

#[tokio::test]
async fn a_write_over_an_existing_file_is_shown_as_a_diff_and_a_new_file_as_new() {
    let hub = TestHub::start().await;
    std::fs::write(hub.work().join("old.txt"), "one\ntwo\nthree\n").unwrap();
    for (name, shown) in [
        ("old.txt", "replaces the content of an existing file:\n1   one\n2 - two\n2 + 2\n3   three\n"),
        ("new.txt", "a new file:\n+ one\n+ 2\n+ three\n"),
    ] {
        let input = json!({"file_path": hub.work().join(name), "content": "one\n2\nthree\n"});
        let prompt = json!([{"tool": "Write", "input": input}]).to_string();
        let create = json!({"name": name, "working_dir": hub.work(), "prompt": prompt});
        let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
        let approval = hub.first_approval(&session).await;
        let listed = text(&hub.run(&["approvals", &approval]).await.stdout);
        assert!(listed.contains(shown), "{listed}");
        hub.run(&["deny", &approval]).await;
    }
}

#[tokio::test]
async fn always_adds_a_rule() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let mut asks = at_terminal(&hub, &["approve", &approval, "--always"], "true");
    asks.expect("rule for this session and all below it:").await.unwrap();
    asks.expect("  Bash(touch made)").await.unwrap();
    asks.expect("n leaves it open: ").await.unwrap();
    asks.press("y\n").unwrap();
    asks.expect("added the rule Bash(touch made)").await.unwrap();
    assert_eq!(asks.end().await.unwrap(), 0, "{}", asks.shown());
    over(&hub, &session).await;
    let unnamed = hub.run(&["approve", &approval, "--digest", "x", "--always"]).await;
    assert_eq!(unnamed.status.code(), Some(2), "a rule that was not shown: {}", text(&unnamed.stderr));
    let rules = hub.call("policy.list", json!({"session_id": session})).await.unwrap();
    assert_eq!(rules["rules"][0]["rule"], "Bash(touch made)");
}

#[tokio::test]
async fn a_rule_that_does_not_match_the_call_answers_nothing() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let digest = hub.digest(&approval).await;
    for rule in ["n", "Bash(rm:*)"] {
        let refused = hub.run(&["approve", &approval, "--digest", &digest, "--always", rule]).await;
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("`{rule}` does not match this call; nothing was answered")), "{said}");
    }
    let rules = hub.call("policy.list", json!({"session_id": session})).await.unwrap();
    assert_eq!(rules["rules"], json!([]), "no rule was added");
    let allowed = hub.run(&["approve", &approval, "--digest", &digest, "--always", "Bash(touch:*)"]).await;
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed.stderr));
}

#[tokio::test]
async fn a_rule_allows_no_open_call_that_was_not_shown() {
    let hub = TestHub::start().await;
    let (session, token) = hub.outside_session("a").await;
    let asks = |number: u32| {
        let rpc = Rpc::new(hub.process.url(), &token);
        let input = json!({"command": format!("touch file-{number}")});
        let call = json!({"tool_name": "Bash", "input": input, "tool_use_id": format!("t{number}")});
        tokio::spawn(async move { rpc.call("loopback.permit", call).await })
    };
    let first = asks(1);
    let approval = hub.first_approval(&session).await;
    let digest = hub.digest(&approval).await;
    let second = asks(2);
    let pending = async || hub.call("loopback.pending", json!({})).await.unwrap()["approvals"].take();
    while pending().await.as_array().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let always = ["--always", "Bash(touch:*)"];
    let refused = hub.run(&[&["approve", &approval, "--digest", &digest], &always[..]].concat()).await;
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("would also allow another open call") && said.contains("nothing was answered"),
        "{said}"
    );
    assert_eq!(pending().await.as_array().unwrap().len(), 2);

    let mut shows = at_terminal(&hub, &[&["approve", &approval], &always[..]].concat(), "true");
    shows.expect("The rule also allows this call, which is open now:").await.unwrap();
    shows.expect("$ touch file-2").await.unwrap();
    shows.expect("Allow it? y allows, n leaves it open: ").await.unwrap();
    shows.press("y\n").unwrap();
    assert_eq!(shows.end().await.unwrap(), 0, "{}", shows.shown());
    for decision in [first, second] {
        assert_eq!(decision.await.unwrap().unwrap()["behavior"], "allow");
    }
}

#[tokio::test]
async fn approve_asks_for_the_answers_to_a_question() {
    let hub = TestHub::start().await;
    let questions = json!([{"question": "Which?", "header": "h", "multiSelect": false,
        "options": [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]}]);
    let prompt = json!([{"tool": "AskUserQuestion", "input": {"questions": questions}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&session).await;
    let digest = hub.digest(&approval).await;
    let script = hub.run(&["approve", &approval, "--digest", &digest]).await;
    assert_eq!(script.status.code(), Some(2), "{}", text(&script.stderr));
    assert!(text(&script.stderr).contains("answer it with --answers '{"), "{}", text(&script.stderr));
    let mut leaves = at_terminal(&hub, &["approve", &approval], "true");
    leaves.expect("Which? Answer (a number or words; Enter alone leaves it open): ").await.unwrap();
    leaves.press("\n").unwrap();
    leaves.expect("nothing was answered; the approval stays open").await.unwrap();
    assert_eq!(leaves.end().await.unwrap(), 130, "{}", leaves.shown());
    let given = ["approve", &approval, "--answers", "{\"Which?\": \"red\"}"];
    let mut sends = at_terminal(&hub, &given, "true");
    sends.expect("  Which?: red").await.unwrap();
    sends.expect("Send these answers? y allows, n leaves it open: ").await.unwrap();
    sends.press("n\n").unwrap();
    assert_eq!(sends.end().await.unwrap(), 130, "{}", sends.shown());
    let mut answers = at_terminal(&hub, &["approve", &approval], "true");
    answers.expect("2. blue").await.unwrap();
    answers.expect("Enter alone leaves it open): ").await.unwrap();
    answers.press("3\n").unwrap();
    answers.expect("choose 1 to 2").await.unwrap();
    answers.expect("Enter alone leaves it open): ").await.unwrap();
    answers.press("q\n").unwrap();
    answers.expect("Send \"q\" as your answer? y or n: ").await.unwrap();
    answers.press("n\n").unwrap();
    answers.expect("Enter alone leaves it open): ").await.unwrap();
    answers.press("2\n").unwrap();
    answers.expect("Answered: blue (a)").await.unwrap();
    assert_eq!(answers.end().await.unwrap(), 0, "{}", answers.shown());
}

#[tokio::test]
async fn a_small_terminal_shows_every_line_above_its_prompt() {
    let hub = TestHub::start().await;
    let command = (1..=12).map(|number| format!("echo line-{number}\n")).collect::<String>() + "touch made";
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&session).await;
    let data_dir = hub.process.data_dir().to_str().unwrap().to_owned();
    let start = |args: &[&str], width, height| {
        let mut command = plexus(hub.folder.path());
        command.args(args).args(["--data-dir", &data_dir]).env("TERM", "xterm");
        Terminal::sized(command, width, height)
    };
    let mut small = start(&["approve", &approval], 20, 6);
    let mut shown = std::collections::BTreeSet::new();
    let last = |screen: &str| screen.lines().last().unwrap_or_default().trim_end().to_owned();
    let mut prompt = String::new();
    loop {
        small
            .until("the next prompt", |screen| {
                let now = last(screen);
                now != prompt && (now.ends_with("cancels:") || now.ends_with("open:"))
            })
            .await;
        let screen = small.text();
        prompt = last(&screen);
        let on_screen = |number: &u32| screen.lines().any(|line| line.ends_with(&format!(" line-{number}")));
        shown.extend((1..=12).filter(on_screen));
        if prompt.ends_with("open:") {
            break;
        }
        small.types("\r");
    }
    assert_eq!(shown.len(), 12, "every line was on the screen with its prompt: {shown:?}");
    small.types("n\r");
    small.shows("stays open").await;
    let (_, other) = hub.asking_session("b").await;
    let rule = "Bash(touch made)";
    let mut narrow = start(&["approve", &other, "--always", rule], 40, 12);
    narrow.shows("Allow it? y allows, n leaves it open:").await;
    let screen = narrow.text();
    for line in ["$ touch made", "rule for this session and all below it:", "  Bash(touch made)"] {
        assert!(screen.lines().any(|shown| shown.trim_end() == line), "{line}\n{screen}");
    }
    narrow.types("y\r");
    narrow.shows("added the rule Bash(touch made)").await;
}

#[tokio::test]
async fn a_terminal_that_is_resized_shows_every_line_above_its_prompt() {
    let hub = TestHub::start().await;
    let command = (1..=60).map(|number| format!("echo line-{number}\n")).collect::<String>() + "touch made";
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    let approval = hub.first_approval(&session).await;
    for (width, height) in [(40, 12), (80, 12)] {
        let mut command = plexus(hub.folder.path());
        command.args(["approve", &approval, "--data-dir"]).arg(hub.process.data_dir()).env("TERM", "xterm");
        let mut terminal = Terminal::sized(command, 80, 24);
        let mut shown = std::collections::BTreeSet::new();
        let collect = |screen: &str, shown: &mut std::collections::BTreeSet<u32>| {
            let on_screen = |number: &u32| screen.lines().any(|it| it.ends_with(&format!(" line-{number}")));
            shown.extend((1..=60).filter(on_screen));
        };
        terminal.shows("q cancels:").await;
        collect(&terminal.text(), &mut shown);
        if width != 80 {
            // The lines wrap differently, so everything must be shown again.
            shown.clear();
        }
        terminal.resize(width, height);
        let last = |screen: &str| screen.lines().last().unwrap_or_default().trim_end().to_owned();
        let asks = |screen: &str| last(screen).ends_with("cancels:") || last(screen).ends_with("open:");
        // The prompt contains the number of lines, because the previous page has the same prompt otherwise.
        let prompt = |screen: &str| screen.rfind("-- ").map(|at| screen[at..].trim_end().to_owned());
        while !last(&terminal.text()).ends_with("open:") {
            let before = prompt(&terminal.text());
            terminal.types("\r");
            terminal.until("the next prompt", |screen| prompt(screen) != before && asks(screen)).await;
            collect(&terminal.text(), &mut shown);
        }
        assert_eq!(shown.len(), 60, "every line was on the screen with its prompt: {shown:?}");
        terminal.types("n\r");
        terminal.shows("stays open").await;
    }
}

#[tokio::test]
async fn an_empty_id_is_refused() {
    let hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    for verb in [&["approve", "", "--digest", "x"][..], &["deny", ""], &["approvals", ""]] {
        let refused = hub.run(verb).await;
        assert_eq!(refused.status.code(), Some(2), "{verb:?}: {}", text(&refused.stderr));
    }
    assert!(hub.run(&["approvals", &approval[..1]]).await.status.success(), "one character is a prefix");
}

#[tokio::test]
async fn a_transcript_in_a_file_holds_no_control_characters() {
    let hub = TestHub::start().await;
    let prompt = json!([{"say": "red \u{1b}[31m bell \u{7} turned \u{202e}evil"}]).to_string();
    let create = json!({"name": "a", "working_dir": hub.work(), "prompt": prompt});
    let session = hub.call("claudecode.create", create).await.unwrap()["id"].as_str().unwrap().to_owned();
    over(&hub, &session).await;
    for format in ["markdown", "html"] {
        let written = text(&hub.run(&["transcript", "a", "--format", format]).await.stdout);
        assert!(written.contains("evil"), "{written}");
        assert!(!written.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{format}: {written:?}");
    }
    let lines = text(&hub.run(&["transcript", "a", "--format", "jsonl"]).await.stdout);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    assert!(!lines.contains(['\u{1b}', '\u{7}']), "{lines:?}");
}

#[tokio::test]
async fn a_prefix_of_a_resolved_approval_finds_its_outcome() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    assert!(hub.run(&["deny", &approval[..8]]).await.status.success());
    over(&hub, &session).await;
    for verb in [&["approve", &approval[..8], "--digest", "x"][..], &["deny", &approval[..8]]] {
        let late = hub.run(verb).await;
        assert_eq!(late.status.code(), Some(1));
        let said = text(&late.stderr);
        assert!(said.contains("no longer open: Denied by you: Bash touch made (a)"), "{said}");
    }
    let shown = text(&hub.run(&["approvals", &approval[..8]]).await.stdout);
    assert!(shown.ends_with("no longer open: Denied by you: Bash touch made (a)\n"), "{shown}");
    let other = hub.run(&["approve", "ffffffff", "--digest", "x"]).await;
    assert!(text(&other.stderr).contains("no open approval has an id that starts with `ffffffff`"));
}

#[tokio::test]
async fn verbs_print_json_on_request() {
    let hub = TestHub::start().await;
    let (session, approval) = hub.asking_session("a").await;
    let json = |output: Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    assert_eq!(json(hub.run(&["ls", "--json"]).await)[0]["id"], session.as_str());
    assert_eq!(json(hub.run(&["approvals", "--json"]).await)[0]["id"], approval.as_str());
    assert_eq!(json(hub.run(&["deny", &approval, "--json"]).await)["type"], "ok");
    let logs = text(&hub.run(&["logs", "a", "--json"]).await.stdout);
    let first: Value = serde_json::from_str(logs.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["turn"], &first["seq"], &first["event"]["type"]),
        (&json!(1), &json!(0), &json!("start"))
    );
}

#[tokio::test]
async fn a_watched_tree_shows_new_sessions_and_their_changes() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let hub = TestHub::start().await;
    let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
    command.args(["ls", "-w", "--json", "--data-dir"]).arg(hub.process.data_dir());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut watching = command.spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut state = async |wanted: &str| {
        let seen = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("it continues");
                let sessions: Value = serde_json::from_str(&line).unwrap();
                if sessions[0]["status"].as_str().unwrap_or("none") == wanted {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, seen).await.unwrap_or_else(|_| panic!("{wanted} is never shown"));
    };
    state("none").await;
    let (_, approval) = hub.asking_session("a").await;
    state("awaiting_permission").await;
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    state("complete").await;
}

#[tokio::test]
async fn a_follower_resumes_after_a_restart_of_the_hub() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut hub = TestHub::start().await;
    let (_, approval) = hub.asking_session("a").await;
    let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
    command.args(["logs", "a", "-f", "--json", "--data-dir"]).arg(hub.process.data_dir());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    command.stderr(std::process::Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut words = BufReader::new(following.stderr.take().unwrap()).lines();
    let mut seen: Vec<Value> = Vec::new();
    let mut up_to = async |kind: &str| {
        let told = async {
            while seen.last().is_none_or(|last| last["event"]["type"] != kind) {
                let line = lines.next_line().await.unwrap().expect("it continues");
                seen.push(serde_json::from_str(&line).unwrap());
            }
        };
        tokio::time::timeout(LIMIT, told).await.unwrap_or_else(|_| panic!("no {kind}"));
        seen.clone()
    };
    up_to("approval_requested").await;
    hub.process.kill9().await.unwrap();
    let away = tokio::time::timeout(LIMIT, words.next_line()).await.unwrap().unwrap().unwrap();
    assert!(away.contains("Disconnected. Reconnecting…"), "{away}");
    hub.process.restart().await.unwrap();
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
    let seqs: Vec<u64> = up_to("complete").await.iter().map(|told| told["seq"].as_u64().unwrap()).collect();
    let all: Vec<u64> = (0..seqs.len() as u64).collect();
    assert_eq!(seqs, all, "each event once, and in order");
}
