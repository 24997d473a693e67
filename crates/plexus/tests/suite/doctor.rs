//! `plexus doctor` and `mcp-config`.

use std::os::unix::fs::PermissionsExt as _;

use plexus_testkit::executable;
use serde_json::Value;

use crate::support::{TestHub, plexus, run, text};

fn of<'a>(findings: &'a Value, what: &str) -> &'a Value {
    findings.as_array().unwrap().iter().find(|finding| finding["what"] == what).unwrap_or(&Value::Null)
}

async fn doctor(hub: &TestHub, env: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut command = tokio::process::Command::from(plexus(hub.folder.path()));
    command.args(["doctor", "--json", "--data-dir"]).arg(hub.process.data_dir()).envs(env.iter().copied());
    let output = command.output().await.unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[tokio::test]
async fn each_problem_comes_with_a_fix() {
    let mut hub = TestHub::start().await;
    let claude = hub.folder.path().join("claude").display().to_string();
    let (code, well) = doctor(&hub, &[("PLEXUS_CLAUDE", &claude)]).await;
    assert_eq!((code, of(&well, "claude")["health"].as_str()), (Some(1), Some("wrong")), "{well}");
    let found = of(&well, "claude")["found"].as_str().unwrap();
    assert!(found.contains("is not Claude Code: it reports \"0.0.0 (Plexus scripted agent)\""), "{found}");
    for what in ["settings", "data directory", "hub", "port"] {
        assert_eq!(of(&well, what)["health"], "ok", "{well}");
    }
    hub.process.terminate().await.unwrap();
    let (code, none) = doctor(&hub, &[("PLEXUS_CLAUDE", "no-such-program")]).await;
    assert_eq!((code, of(&none, "claude")["health"].as_str()), (Some(1), Some("wrong")));
    assert!(of(&none, "claude")["found"].as_str().unwrap().contains("`no-such-program` is not in PATH"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    std::fs::set_permissions(hub.process.data_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (_, ill) = doctor(&hub, &[("PLEXUS_LISTEN", &address)]).await;
    assert_eq!(of(&ill, "hub")["health"], "note");
    for (what, fix) in [("port", "PLEXUS_LISTEN"), ("data directory", "chmod go=")] {
        assert_eq!(of(&ill, what)["health"], "wrong", "{ill}");
        assert!(of(&ill, what)["fix"].as_str().unwrap().contains(fix), "{ill}");
    }
}

/// The reported protections are tested against real attacks in `plexus-agent/tests/sandbox.rs`.
#[tokio::test]
async fn each_protection_of_the_sandbox_is_reported_with_its_reason() {
    let hub = TestHub::start().await;
    let (_, found) = doctor(&hub, &[]).await;
    if of(&found, "sandbox")["health"] != "ok" {
        let why = format!("sandbox: {}", of(&found, "sandbox"));
        return plexus_testkit::skip("each_protection_of_the_sandbox_is_reported_with_its_reason", &why);
    }
    let tried = plexus_agent::try_sandbox(
        hub.process.data_dir(),
        plexus_agent::Tracing::Denied,
        &std::collections::BTreeSet::new(),
    );
    let plexus_agent::SandboxState::Namespaces { signals, terminals, descriptors, memory, .. } = tried else {
        panic!("{tried:?}")
    };
    for (what, protection) in
        [("signals", signals), ("terminals", terminals), ("descriptors", descriptors), ("memory", memory)]
    {
        let (health, said) = match protection {
            plexus_agent::Protection::Held(by) => ("ok", by),
            plexus_agent::Protection::Open(why) => ("note", why),
        };
        let finding = of(&found, what);
        assert_eq!(finding["health"], health, "{found}");
        assert!(finding["found"].as_str().unwrap().contains(&said), "{finding}");
    }

    let allowing = TestHub::with_settings("tracing = \"allowed\"\n").await;
    let (_, found) = doctor(&allowing, &[]).await;
    assert!(of(&found, "descriptors")["found"].as_str().unwrap().contains("plexus.toml"), "{found}");
    let off = TestHub::with_settings("wall = \"off\"\n").await;
    let (_, found) = doctor(&off, &[]).await;
    assert_eq!(
        (of(&found, "sandbox")["health"].as_str(), of(&found, "signals")),
        (Some("note"), &Value::Null)
    );
}

#[tokio::test]
async fn the_claude_and_the_login_of_the_running_hub_pass() {
    let folder = tempfile::tempdir().unwrap();
    let claude = folder.path().join("fine");
    executable::write(&claude, "#!/bin/sh\necho '2.1.200 (Claude Code)'\n").unwrap();
    // As with `plexus up --claude PROGRAM`: no variable or file names the program.
    let mut hub = TestHub::with(folder, "", claude.clone(), vec![]).await;
    let (code, found) =
        doctor(&hub, &[("PLEXUS_CLAUDE", "no-such-program"), ("ANTHROPIC_API_KEY", "fake")]).await;
    assert_eq!((code, of(&found, "claude")["health"].as_str()), (Some(0), Some("ok")), "{found}");
    assert!(of(&found, "claude")["found"].as_str().unwrap().ends_with("(used by the running hub)"));
    hub.process.terminate().await.unwrap();
    let variables = [("PLEXUS_CLAUDE", claude.to_str().unwrap()), ("ANTHROPIC_API_KEY", "fake")];
    let (_, found) = doctor(&hub, &variables).await;
    assert_eq!(of(&found, "claude")["health"], "ok", "{found}");
}

#[tokio::test]
async fn doctor_and_run_report_an_old_claude_in_the_same_words() {
    const TOO_OLD: &str = "Claude Code 2.0.75 is too old; 2.1.197 or later is required";
    let folder = tempfile::tempdir().unwrap();
    let claude = folder.path().join("old");
    executable::write(&claude, "#!/bin/sh\necho '2.0.75 (Claude Code)'\n").unwrap();
    let hub = TestHub::with(folder, "", claude, vec![]).await;
    let (code, found) = doctor(&hub, &[]).await;
    assert_eq!((code, of(&found, "claude")["health"].as_str()), (Some(1), Some("wrong")), "{found}");
    assert!(of(&found, "claude")["found"].as_str().unwrap().contains(TOO_OLD), "{found}");
    assert!(of(&found, "claude")["fix"].as_str().unwrap().starts_with("run `claude update`"), "{found}");
    let data_dir = hub.process.data_dir().to_str().unwrap();
    let refused = run(&["run", "--data-dir", data_dir, "hello"], hub.folder.path()).await;
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(said.contains(&format!("{TOO_OLD}: run `claude update`")), "{said}");
}

#[tokio::test]
async fn a_launcher_is_checked_with_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("launch");
    // It starts the program as a child, as npx does.
    executable::write(&launcher, "#!/bin/sh\n[ \"$*\" = '--x a b --version' ] || exit 9\nsh -c \"echo '2.1.200 (Claude Code)'\"\nexit 0\n")
        .unwrap();
    let array = serde_json::json!([launcher, "--x", "a b"]).to_string();
    let mut hub = TestHub::with(folder, "", array.clone().into(), vec![]).await;
    let (code, found) = doctor(&hub, &[("ANTHROPIC_API_KEY", "fake")]).await;
    assert_eq!((code, of(&found, "claude")["health"].as_str()), (Some(0), Some("ok")), "{found}");
    let said = of(&found, "claude")["found"].as_str().unwrap();
    assert!(said.ends_with("launch --x a b: 2.1.200 (Claude Code) (used by the running hub)"), "{said}");
    hub.process.terminate().await.unwrap();
    for (given, what) in [(array.as_str(), "claude"), ("[]", "settings"), ("npx -y x", "settings")] {
        let (_, found) = doctor(&hub, &[("PLEXUS_CLAUDE", given)]).await;
        let health = if what == "claude" { "ok" } else { "wrong" };
        assert_eq!(of(&found, what)["health"], health, "{given}: {found}");
    }
}

#[tokio::test]
async fn a_missing_login_is_a_problem_that_says_how_to_log_in() {
    let hub = TestHub::start().await;
    let (code, found) = doctor(&hub, &[]).await;
    let login = of(&found, "login");
    assert_eq!((code, login["health"].as_str()), (Some(1), Some("wrong")), "{found}");
    assert!(login["fix"].as_str().unwrap().contains("type /login"), "{login}");
    std::fs::create_dir(hub.folder.path().join(".claude")).unwrap();
    let credentials =
        serde_json::json!({"claudeAiOauth": {"accessToken": "fake-a", "refreshToken": "fake-r"}});
    std::fs::write(hub.folder.path().join(".claude/.credentials.json"), credentials.to_string()).unwrap();
    let (_, found) = doctor(&hub, &[]).await;
    assert_eq!(of(&found, "login")["health"], "ok", "{found}");
    assert!(!found.to_string().contains("fake-"), "no secret is shown: {found}");
}

#[tokio::test]
async fn a_data_directory_that_is_not_writable_is_a_problem() {
    let home = tempfile::tempdir().unwrap();
    // Not even root can create files in /proc.
    let output = run(&["doctor", "--json", "--data-dir", "/proc/plexus"], home.path()).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let dir = of(&found, "data directory");
    assert_eq!(dir["health"], "wrong", "{found}");
    assert!(dir["found"].as_str().unwrap().starts_with("/proc is not writable: "), "{dir}");
}

#[tokio::test]
async fn without_user_namespaces_the_risk_and_the_fix_are_named() {
    let home = tempfile::tempdir().unwrap();
    // The limit applies to one user namespace and its descendants.
    let line = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" doctor --json --data-dir \"$1\"";
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", line, env!("CARGO_BIN_EXE_plexus")]);
    command.arg(home.path().join("data")).env_clear().env("HOME", home.path());
    let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().await.unwrap();
    let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else {
        let why = text(&output.stderr);
        return plexus_testkit::skip("without_user_namespaces_the_risk_and_the_fix_are_named", &why);
    };
    let sandbox = of(&found, "sandbox");
    assert_eq!(sandbox["health"], "note", "{found}");
    assert!(
        sandbox["found"].as_str().unwrap().contains("can read the hub's token and allow its own calls"),
        "{sandbox}"
    );
    assert!(sandbox["fix"].as_str().unwrap().contains("sysctl user.max_user_namespaces=15000"), "{sandbox}");
}

#[tokio::test]
async fn a_hub_of_another_version_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    let socket = tokio::net::UnixListener::bind(dir.join("hub.sock")).unwrap();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", port.local_addr().unwrap());
    std::fs::write(dir.join("hub.json"), serde_json::json!({"url": url, "pid": 4321}).to_string()).unwrap();
    let other = tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        let request = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await.unwrap();
        assert_ne!(request, 0);
        let body = r#"{"status":"ok","version":"99.0.0"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
        // The connection stays open until the answer was read.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut Vec::new()).await;
    });
    let output = run(&["doctor", "--json", "--data-dir", dir.to_str().unwrap()], home.path()).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hub = of(&found, "hub");
    assert_eq!(hub["health"], "note", "{found}");
    assert!(
        hub["found"].as_str().unwrap().starts_with("version 99.0.0 is running; this program is version "),
        "{hub}"
    );
    assert!(hub["fix"].as_str().unwrap().contains("`kill 4321`, then `plexus up`"), "{hub}");
    other.abort();
}

#[tokio::test]
async fn the_configuration_of_a_client_contains_no_secret() {
    let hub = TestHub::start().await;
    let token = hub.process.token().unwrap();
    for client in ["claude-code", "claude-desktop", "cursor"] {
        let printed = hub.run(&["mcp-config", client]).await;
        assert!(printed.status.success());
        let printed = text(&printed.stdout);
        assert!(printed.contains("\"mcp\"") && !printed.contains(&token), "{printed}");
    }
    let alone = hub.run(&["mcp-config", "--json"]).await;
    let entry = serde_json::from_slice::<Value>(&alone.stdout).unwrap()["mcpServers"]["plexus"].take();
    assert_eq!(entry["args"][0], "mcp");
}
