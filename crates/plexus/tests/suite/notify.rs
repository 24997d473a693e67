//! Notifications: a script in place of the user's command writes each one into a pipe that the test reads.

use std::time::{Duration, Instant};

use plexus_testkit::executable;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;

use crate::support::{LIMIT, TestHub, scripted_claude};

/// The pipe to which the script writes its input.
struct Told {
    folder: TempDir,
    lines: Lines<BufReader<pipe::Receiver>>,
}

impl Told {
    /// A script that writes an argument, the kind of notice and the notice.
    fn new() -> Self {
        Self::by("tell", r#"printf '%s %s %s\n' "$1" "$PLEXUS_NOTICE" "$(cat)""#)
    }

    /// A script with this name that writes the output of this command.
    fn by(name: &str, prints: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("told");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        let script = folder.path().join(name);
        let text = format!("#!/bin/sh\n{prints} > {}\n", pipe.display());
        executable::write(&script, &text).unwrap();
        // Also open for writing, so that the pipe has no end when a script exits.
        let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).unwrap();
        Self { folder, lines: BufReader::new(receiver).lines() }
    }

    /// A `plexus.toml` that names the script.
    fn settings(&self, more: &str) -> String {
        let script = self.folder.path().join("tell");
        format!("[notify]\ncommand = [\"{}\", \"an argument\"]\n{more}\n", script.display())
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(LIMIT, self.lines.next_line()).await.expect("a notice arrives");
        line.unwrap().unwrap()
    }

    /// The next notice.
    async fn next(&mut self) -> Value {
        let line = self.line().await;
        let rest = line.strip_prefix("an argument ").expect(&line);
        let (kind, data) = rest.split_once(' ').unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], kind);
        data
    }
}

async fn create(hub: &TestHub, name: &str, more: Value) {
    let mut create = json!({"name": name, "working_dir": hub.work()});
    create.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hub.call("claudecode.create", create).await.unwrap();
}

#[tokio::test]
async fn an_approval_that_stays_open_is_notified_once_even_if_the_hub_restarts() {
    let mut told = Told::new();
    let mut hub = TestHub::with_settings(&told.settings("approval_after_secs = 3")).await;
    let since = Instant::now();
    let (_, answered) = hub.asking_session("quick").await;
    hub.call("loopback.respond", json!({"approval_id": answered, "approve": true})).await.unwrap();
    // Times are whole seconds, and a slow machine may be late.
    let in_time = since.elapsed() < Duration::from_secs(2);
    let (_, first) = hub.asking_session("first").await;
    let mut notice = told.next().await;
    if !in_time && notice["approval"]["id"] == json!(answered) {
        notice = told.next().await;
    }
    assert_eq!(notice["approval"]["id"], json!(first), "an approval answered in time causes no notice");
    assert_eq!(notice["approval"]["input"]["command"], "touch made");
    hub.process.kill9().await.unwrap();
    hub.process.restart().await.unwrap();
    let (_, second) = hub.asking_session("second").await;
    assert_eq!(told.next().await["approval"]["id"], json!(second), "the first notice was already sent");
}

#[tokio::test]
async fn a_notice_names_its_session_by_its_path() {
    let script = r#"printf '%s|%s|%s\n' "$PLEXUS_NOTICE_SESSION" "$PLEXUS_NOTICE_TITLE" "$(cat)""#;
    let mut told = Told::by("tell", script);
    let hub = TestHub::with_settings(&told.settings("approval_after_secs = 0")).await;
    let lead = json!({"name": "lead", "working_dir": hub.work(), "hub_tools": true});
    let lead = hub.call("claudecode.create", lead).await.unwrap()["id"].as_str().unwrap().to_owned();
    let lead = Rpc::new(hub.process.url(), &hub.token_of_outside_run(&lead).await);
    let prompt = json!([{"tool": "Bash", "input": {"command": "touch made"}}]).to_string();
    let worker = json!({"name": "worker", "working_dir": hub.work(), "prompt": prompt});
    lead.call("claudecode.create", worker).await.unwrap();
    let line = told.line().await;
    let parts: Vec<&str> = line.splitn(3, '|').collect();
    assert_eq!(parts[..2], ["lead/worker", "lead/worker wants to use Bash"], "{line}");
    let notice: Value = serde_json::from_str(parts[2]).unwrap();
    let approval = &notice["approval"];
    assert_eq!(
        (&approval["session_name"], &approval["session_path"]),
        (&json!("worker"), &json!("lead/worker"))
    );
}

#[tokio::test]
async fn a_failed_turn_is_notified_and_a_complete_one_only_if_configured() {
    let failing = json!({"prompt": json!([{"result_error": "it broke"}]).to_string()});
    let well = json!({"prompt": json!([{"say": "all well"}]).to_string()});
    for (settings, wanted) in [("", vec!["bad"]), ("turns = \"all\"", vec!["good", "bad"])] {
        let mut told = Told::new();
        let hub = TestHub::with_settings(&told.settings(settings)).await;
        create(&hub, "good", well.clone()).await;
        let wait = json!({"cursor": 0, "timeout_ms": 20_000});
        let waited = hub.call("loopback.wait", wait).await.unwrap();
        assert_eq!(waited["finished"][0]["status"], "complete", "{waited}");
        create(&hub, "bad", failing.clone()).await;
        for name in wanted {
            let notice = told.next().await;
            assert_eq!((&notice["type"], &notice["session_name"]), (&json!("turn"), &json!(name)));
            assert_eq!(notice["status"], if name == "bad" { "failed" } else { "complete" });
        }
    }
}

#[tokio::test]
async fn a_budget_that_runs_low_is_notified() {
    let mut told = Told::new();
    let hub = TestHub::with_settings(&told.settings("turns = \"off\"")).await;
    let prompt = json!([{"say": "hello"}]).to_string();
    create(&hub, "limited", json!({"prompt": prompt, "budget": {"turns": 1}})).await;
    let notice = told.next().await;
    assert_eq!((&notice["type"], &notice["session_name"]), (&json!("limit"), &json!("limited")));
    assert_eq!((&notice["limit"], &notice["left"]), (&json!("turns"), &json!(0)));
}

#[tokio::test]
async fn a_command_that_fails_is_logged_and_delays_nothing() {
    let hub =
        TestHub::with_settings("[notify]\ncommand = [\"/no/such/program\"]\napproval_after_secs = 0\n").await;
    let (session, approval) = hub.asking_session("worker").await;
    let logged = async {
        while !hub.process.stderr().contains("cannot deliver a notification") {
            hub.call("claudecode.poll", json!({"session_id": session, "from_seq": 1000, "wait_ms": 100}))
                .await
                .unwrap();
        }
    };
    tokio::time::timeout(LIMIT, logged).await.expect("it is logged");
    hub.call("loopback.respond", json!({"approval_id": approval, "approve": true})).await.unwrap();
}

#[tokio::test]
async fn a_desktop_notification_treats_no_text_as_option_or_markup() {
    let mut told = Told::by("notify-send", r#"printf '%s|' "$@" | tr '\n' ' ' | sed 's/$/\n/'"#);
    let folder = tempfile::tempdir().unwrap();
    let claude = scripted_claude(folder.path());
    let path = format!("{}:{}", told.folder.path().display(), std::env::var("PATH").unwrap());
    let settings = "[notify]\ndesktop = true\napproval_after_secs = 0\n";
    let hub = TestHub::with(folder, settings, claude, vec![("PATH".to_owned(), path)]).await;
    let command = "--hint=string:x <b>grüße</b> & \u{1b}[31m\nmore";
    let prompt = json!([{"tool": "Bash", "input": {"command": command}}]).to_string();
    create(&hub, "worker", json!({"prompt": prompt})).await;
    let line = told.line().await;
    let text = "--hint=string:x &lt;b&gt;grüße&lt;/b&gt; &amp; \\u{1b}[31m…";
    assert_eq!(line.trim_end(), format!("--app-name=plexus|--|worker wants to use Bash|{text}|"));
}
