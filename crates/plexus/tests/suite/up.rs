//! `plexus up` and `status`: the hub in the background.

use std::process::Output;

use serde_json::Value;

use crate::support::{LIMIT, plexus, run, scripted_claude, text};

/// A data directory. Dropping it stops its hub, if one was started.
struct Background(tempfile::TempDir);

impl Background {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        scripted_claude(folder.path());
        Self(folder)
    }

    async fn run(&self, args: &[&str]) -> Output {
        let folder = self.0.path();
        let mut command = tokio::process::Command::from(plexus(folder));
        command.args(args).arg("--data-dir").arg(folder.join("data"));
        command.env("PLEXUS_LISTEN", "127.0.0.1:0").env("PLEXUS_CLAUDE", folder.join("claude"));
        command.env("SECRET", "x").stdin(std::process::Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(LIMIT, command.output()).await.expect("it ends").unwrap()
    }

    fn pid(&self) -> u64 {
        let note = std::fs::read(self.0.path().join("data/hub.json")).unwrap();
        serde_json::from_slice::<Value>(&note).unwrap()["pid"].as_u64().unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let mut down = plexus(self.0.path());
        let _ = down.args(["down", "--data-dir"]).arg(self.0.path().join("data")).output();
    }
}

#[tokio::test]
async fn a_verb_that_needs_a_hub_starts_one_and_reports_it() {
    let there = Background::new();
    let none = there.run(&["status"]).await;
    assert_eq!(none.status.code(), Some(8), "{}", text(&none.stderr));
    let listed = there.run(&["ls"]).await;
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    let pid = there.pid();
    assert!(text(&listed.stderr).contains(&format!("started a hub in the background (process {pid}")));
    let again = there.run(&["ls"]).await;
    assert!(!text(&again.stderr).contains("started"), "{}", text(&again.stderr));
    let status: Value = serde_json::from_slice(&there.run(&["status", "--json"]).await.stdout).unwrap();
    assert_eq!((status["running"].as_bool(), status["pid"].as_u64()), (Some(true), Some(pid)));
    let log = std::fs::read_to_string(there.0.path().join("data/hub.log")).unwrap();
    assert!(log.contains("plexus listening on http://127.0.0.1:"), "{log}");
    let environment = std::fs::read(format!("/proc/{pid}/environ"));
    // The environment of a process that cannot be traced cannot be read. That is the usual case.
    if let Ok(environment) = environment {
        assert!(!text(&environment).contains("SECRET"));
    }
}

#[tokio::test]
async fn only_one_of_several_concurrent_commands_starts_the_hub() {
    let there = Background::new();
    let (a, b, c) = tokio::join!(there.run(&["up"]), there.run(&["up"]), there.run(&["ls"]));
    let started = [&a, &b, &c].iter().filter(|one| text(&one.stderr).contains("started a hub")).count();
    for one in [&a, &b, &c] {
        assert!(one.status.success(), "{}", text(&one.stderr));
    }
    assert_eq!(started, 1);
}

#[tokio::test]
async fn a_hub_that_cannot_start_is_reported_with_its_last_line_and_exit_code() {
    let there = Background::new();
    std::fs::create_dir(there.0.path().join("data")).unwrap();
    std::fs::write(there.0.path().join("data/plexus.toml"), "lisen = 1\n").unwrap();
    let failed = there.run(&["up"]).await;
    assert_eq!(failed.status.code(), Some(3));
    let said = text(&failed.stderr);
    assert!(said.contains("the hub did not start") && said.contains("hub.log"), "{said}");
}

#[tokio::test]
async fn serve_and_up_exit_alike_if_the_port_is_in_use() {
    let there = Background::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for verb in ["serve", "up"] {
        let failed = there.run(&[verb, "--listen", &address]).await;
        assert_eq!(failed.status.code(), Some(5), "{verb}: {}", text(&failed.stderr));
        assert!(text(&failed.stderr).contains(&address), "{verb}: {}", text(&failed.stderr));
    }
}

#[tokio::test]
async fn flags_that_differ_from_the_running_hub_are_refused_and_named() {
    let there = Background::new();
    let claude = there.0.path().join("claude");
    assert!(there.run(&["up"]).await.status.success());
    for same in [&["--claude", claude.to_str().unwrap()][..], &["--listen", "127.0.0.1:0"]] {
        let up = there.run(&[&["up"], same].concat()).await;
        assert_eq!(up.status.code(), Some(0), "{same:?}: {}", text(&up.stderr));
    }
    let mut other = plexus(there.0.path());
    other.args(["up", "--data-dir"]).arg(there.0.path().join("data")).env("PLEXUS_CLAUDE", "/no/other");
    let warned = other.output().unwrap();
    assert!(warned.status.success() && text(&warned.stderr).contains("keeps its own settings"), "{warned:?}");
    let up = there.run(&["up", "--claude", "/no/other", "--listen", "127.0.0.1:1"]).await;
    assert_eq!(up.status.code(), Some(1), "{}", text(&up.stdout));
    let said = text(&up.stderr);
    for part in [
        "keeps its own settings: it listens on 127.0.0.1:",
        "not on 127.0.0.1:1",
        &format!("its --claude is `{}`, not `/no/other`", claude.display()),
        "`plexus down`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test]
async fn an_unusable_data_directory_has_one_exit_code() {
    let there = Background::new();
    std::fs::write(there.0.path().join("data"), "a file").unwrap();
    for verb in [&["up"][..], &["ls"], &["serve"], &["run", "--detach", "x"]] {
        let failed = there.run(verb).await;
        assert_eq!(failed.status.code(), Some(4), "{verb:?}: {}", text(&failed.stderr));
    }
}

#[tokio::test]
async fn a_systemd_unit_is_printed_and_installed_only_on_request() {
    let home = tempfile::tempdir().unwrap();
    let printed = run(&["up", "--systemd"], home.path()).await;
    assert!(text(&printed.stdout).contains("KillMode=process"), "{}", text(&printed.stdout));
    let unit = home.path().join(".config/systemd/user/plexus.service");
    assert!(!unit.exists());
    assert!(run(&["up", "--systemd", "--install"], home.path()).await.status.success());
    assert_eq!(std::fs::read_to_string(unit).unwrap(), text(&printed.stdout));
}

#[tokio::test]
async fn a_process_of_an_agent_starts_no_hub() {
    let there = Background::new();
    let mut command = tokio::process::Command::from(plexus(there.0.path()));
    command.args(["ls", "--data-dir"]).arg(there.0.path().join("data"));
    let refused = command.env("PLEXUS_SESSION_ID", "x").output().await.unwrap();
    assert_eq!(refused.status.code(), Some(8), "{}", text(&refused.stderr));
    assert!(!there.0.path().join("data").exists());
}

#[tokio::test]
async fn a_launcher_with_arguments_reaches_the_hub() {
    let there = Background::new();
    let claude = there.0.path().join("claude");
    let array = serde_json::json!(["env", "-u", "FOO", claude]).to_string();
    let started = there.run(&["up", "--claude", &array]).await;
    assert!(started.status.success(), "{}", text(&started.stderr));
    let note: Value =
        serde_json::from_slice(&std::fs::read(there.0.path().join("data/hub.json")).unwrap()).unwrap();
    assert_eq!(note["claude"], serde_json::json!(["env", "-u", "FOO", claude]));
    let unit = text(&there.run(&["up", "--systemd", "--claude", &array]).await.stdout);
    assert!(unit.contains("\"--claude\" \"[\\\"env\\\",\\\"-u\\\",\\\"FOO\\\","), "{unit}");
}

#[tokio::test]
async fn an_invalid_launcher_is_refused_with_the_array_to_write() {
    let there = Background::new();
    for (given, why) in [
        ("[]", "the array is empty"),
        ("[\"\"]", "it contains an empty string"),
        ("[npx]", "it is not a JSON array of strings"),
        (
            "npx -y @anthropic-ai/claude-code",
            "write an array: [\"npx\",\"-y\",\"@anthropic-ai/claude-code\"]",
        ),
    ] {
        let refused = there.run(&["serve", "--claude", given]).await;
        assert!(!refused.status.success());
        assert!(text(&refused.stderr).contains(why), "{given}: {}", text(&refused.stderr));
    }
}
