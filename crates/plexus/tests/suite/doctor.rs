//! `plexus doctor` and `mcp-config`.

use std::os::unix::fs::PermissionsExt as _;

use plexus_testkit::executable;
use serde_json::Value;

use crate::support::{TestHub, plexus, text};

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
    // The scripted agent reports version 0.0.0.
    assert_eq!((code, of(&well, "claude")["health"].as_str()), (Some(1), Some("wrong")), "{well}");
    for what in ["settings", "data directory", "hub", "port"] {
        assert_eq!(of(&well, what)["health"], "ok", "{well}");
    }
    let (code, none) = doctor(&hub, &[("PLEXUS_CLAUDE", "no-such-program")]).await;
    assert_eq!((code, of(&none, "claude")["health"].as_str()), (Some(1), Some("wrong")));
    hub.process.terminate().await.unwrap();
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
async fn a_tested_claude_passes() {
    let hub = TestHub::start().await;
    let claude = hub.folder.path().join("fine");
    executable::write(&claude, "#!/bin/sh\necho '2.1.200 (Claude Code)'\n").unwrap();
    let (code, found) = doctor(&hub, &[("PLEXUS_CLAUDE", claude.to_str().unwrap())]).await;
    assert_eq!((code, of(&found, "claude")["health"].as_str()), (Some(0), Some("ok")), "{found}");
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
