//! The audit log: every decision is logged with its decider, its right and the exact input. A changed log is detected, also
//! without a hub.

use std::path::Path;
use std::process::Output;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, script, text, until};
use plexus_testkit::binaries;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

async fn scripted(config: &str) -> anyhow::Result<World> {
    Setup::scripted()
        .with_config(config)
        .world("scripted")
        .await?
        .context("the scripted agent is always available")
}

async fn rows(world: &World, filter: Value) -> anyhow::Result<Vec<Value>> {
    let page = world.call("audit.list", filter).await?;
    Ok(page["rows"].as_array().context("rows")?.iter().map(|row| row["entry"].clone()).collect())
}

/// Runs `plexus audit …` on the data directory of this world. Its hub may or may not run.
async fn audit(world: &World, words: &[&str]) -> anyhow::Result<Output> {
    let run = Command::new(binaries::plexus()?)
        .arg("audit")
        .args(words)
        .arg("--data-dir")
        .arg(world.hub.data_dir())
        .env_clear()
        .env("HOME", &world.home)
        .output();
    Ok(timeout(LIMIT, run).await??)
}

fn one_command(command: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": command}}, {"say": "done"}]))
}

#[tokio::test]
async fn every_decision_is_logged_with_its_decider_and_right() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let by_operator = world.create("by-operator", json!({"prompt": one_command("echo one")})).await?;
    let (_, approval) = world.asked(&by_operator).await?;
    let changed = json!({"approve": true, "updated_input": {"command": "echo two"}});
    world.respond(&approval, changed).await?;
    world.ended(&by_operator).await?;

    let by_token = world.create("by-token", json!({"prompt": one_command("echo three")})).await?;
    let (_, approval) = world.asked(&by_token).await?;
    let token = world.call("token.new", json!({"name": "phone", "right": "decide"})).await?;
    let phone = Rpc::new(world.hub.url(), &text(&token["token"]));
    phone.call("loopback.respond", json!({"approval_id": approval["id"], "approve": false})).await?;
    world.ended(&by_token).await?;
    world.call("token.revoke", json!({"name": "phone"})).await?;

    let hasty = json!({"prompt": one_command("echo four"), "approval_timeout_secs": 1});
    let expired = world.create("expired", hasty).await?;
    world.ended(&expired).await?;

    let withdrawn = world.create("withdrawn", json!({"prompt": one_command("echo five")})).await?;
    world.asked(&withdrawn).await?;
    world.call("claudecode.stop", json!({"session_id": withdrawn})).await?;
    world.call("claudecode.delete", json!({"session_id": withdrawn})).await?;

    let decisions = rows(&world, json!({"kind": "decision"})).await?;
    let seen: Vec<Value> = decisions
        .iter()
        .map(|row| {
            json!([row["session_id"], row["status"], row["by"], row["right"], row["input"]["command"]])
        })
        .collect();
    let expected = [
        json!([by_operator, "allowed", {"kind": "operator"}, "operator", "echo one"]),
        json!([by_token, "denied", {"kind": "token", "name": "phone"}, "token", "echo three"]),
        json!([expired, "expired", {"kind": "hub"}, "expiry", "echo four"]),
        json!([withdrawn, "withdrawn", {"kind": "hub"}, "withdrawal", "echo five"]),
    ];
    assert_eq!(seen, expected);
    assert_eq!(decisions[0]["updated_input"], json!({"command": "echo two"}));
    assert_eq!(decisions[0]["gate"], json!({"answer": "own_course"}));
    for row in &decisions {
        assert!(row["asked_at"].as_u64() <= row["at"].as_u64() && row["asked_at"].is_u64(), "{row}");
        assert!(row["digest"].is_string() && row["asked_of"]["kind"] == "operator", "{row}");
    }

    let tokens = rows(&world, json!({"kind": "token", "by": "operator"})).await?;
    assert_eq!(tokens.iter().map(|row| &row["status"]).collect::<Vec<_>>(), ["made", "revoked"]);
    let lived = rows(&world, json!({"kind": "session", "session_id": withdrawn})).await?;
    assert_eq!(lived.iter().map(|row| &row["status"]).collect::<Vec<_>>(), ["made", "stopped", "deleted"]);
    assert!(!world.call("audit.list", json!({})).await?.to_string().contains(&text(&token["token"])));
    assert_eq!(world.call("audit.verify", json!({})).await?["type"], "ok");
    let refused = world.refused("audit.list", json!({"limit": 0})).await?;
    assert_eq!(refused.data["field"], "limit");
    Ok(())
}

#[tokio::test]
async fn calls_answered_by_a_rule_are_logged_with_the_rule() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let steps =
        ["echo free", "echo never"].map(|command| json!({"tool": "Bash", "input": {"command": command}}));
    let rules = json!([
        {"rule": "Bash(echo free)", "effect": "allow"},
        {"rule": "Bash(echo never)", "effect": "deny"},
    ]);
    let session = world.create("ruled", json!({"prompt": script(&json!(steps)), "rules": rules})).await?;
    world.ended(&session).await?;
    let seen = rows(&world, json!({"kind": "gate", "tool_name": "Bash", "session_id": session})).await?;
    let said: Vec<Value> = seen.iter().map(|row| json!([row["status"], row["input"]["command"]])).collect();
    assert_eq!(said, [json!(["allow", "echo free"]), json!(["deny", "echo never"])]);
    let made = rows(&world, json!({"kind": "policy", "by": "operator", "session_id": session})).await?;
    assert_eq!(made.len(), 2, "{made:?}");
    for (row, rule) in seen.iter().zip(&made) {
        let named = format!("rule {}", rule["detail"]["number"]);
        assert!(text(&row["gate"]["reason"]).contains(&named), "{row} by {rule}");
        assert_eq!((&row["by"]["kind"], &row["right"]), (&json!("hub"), &json!("rule")));
    }
    Ok(())
}

#[tokio::test]
async fn the_audit_log_is_verified_and_exported_with_and_without_a_hub() -> anyhow::Result<()> {
    let elsewhere = tempfile::tempdir()?;
    let heads = elsewhere.path().join("heads.jsonl");
    let heads_text = heads.to_str().context("a path")?.to_owned();
    let mut world = scripted(&format!("[audit]\nhead_file = {heads_text:?}")).await?;
    world.create("one", json!({})).await?;
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    until("the first head", || lines(&heads) > 0).await?;
    for name in ["two", "three"] {
        world.create(name, json!({})).await?;
    }
    let listed = audit(&world, &["list", "--limit", "2"]).await?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!((&listed["next"], listed["rows"].as_array().map(Vec::len)), (&json!(2), Some(2)));
    let with_hub = audit(&world, &["verify"]).await?;
    assert!(with_hub.status.success(), "{with_hub:?}");
    world.hub.terminate().await?;

    let verified = audit(&world, &["verify", "--head", &heads_text]).await?;
    assert!(verified.status.success(), "{verified:?}");
    let found: Value = serde_json::from_slice(&verified.stdout)?;
    assert_eq!((&found["type"], &found["rows"]), (&json!("ok"), &json!(3)));
    let kept = std::fs::read_to_string(&heads)?;
    let last: Value = serde_json::from_str(kept.lines().last().context("a line")?)?;
    assert_eq!((&last["number"], &last["hash"]), (&json!(3), &found["head"]["hash"]), "written at the end");

    let exported = audit(&world, &["export"]).await?;
    let exported = String::from_utf8(exported.stdout)?;
    let names: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).map(|row| row["entry"]["session_name"].clone()))
        .collect::<Result<_, _>>()?;
    assert_eq!(names, ["one", "two", "three"]);

    // A kept head of another log: this log was rewritten.
    let other = json!({"number": 1, "hash": "f".repeat(64), "at": 0}).to_string();
    std::fs::write(&heads, format!("{other}\n{{\"broken off\n{kept}"))?;
    let found = audit(&world, &["verify", "--head", &heads_text]).await?;
    assert_eq!(found.status.code(), Some(1));
    assert!(String::from_utf8(found.stderr)?.contains("entry 1 "));
    assert_eq!(serde_json::from_slice::<Value>(&found.stdout)?["number"], 1);
    Ok(())
}

/// A webhook that fails for its first request.
async fn receives(listener: tokio::net::TcpListener, bodies: tokio::sync::mpsc::UnboundedSender<String>) {
    for status in std::iter::once("500 Not Now").chain(std::iter::repeat("204 No Content")) {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes()).await;
        let body = String::from_utf8_lossy(&request);
        let _ = bodies.send(body.rsplit("\r\n").next().unwrap_or_default().to_owned());
    }
}

#[tokio::test]
async fn the_head_is_sent_to_a_webhook_until_it_is_accepted() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (bodies, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(receives(listener, bodies));
    let mut world = scripted(&format!("[audit]\nhead_webhook = \"http://{address}/heads\"")).await?;
    world.create("one", json!({})).await?;
    // The first request failed, so it is repeated.
    for _ in 0..2 {
        let head: Value = serde_json::from_str(&timeout(LIMIT, told.recv()).await?.context("a head")?)?;
        assert_eq!(head["number"], 1, "{head}");
    }
    world.create("two", json!({})).await?;
    world.hub.terminate().await?;
    let head: Value = serde_json::from_str(&timeout(LIMIT, told.recv()).await?.context("a head")?)?;
    let verified: Value = serde_json::from_slice(&audit(&world, &["verify"]).await?.stdout)?;
    assert_eq!((&head["number"], &head["hash"]), (&json!(2), &verified["head"]["hash"]), "{verified}");
    Ok(())
}

#[tokio::test]
async fn acts_on_a_session_are_logged() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let session = world.create("one", json!({})).await?;
    world.call("claudecode.set_model", json!({"session_id": session, "model": "opus"})).await?;
    world.chat(&session, &one_command("echo one")).await?;
    let (_, approval) = world.asked(&session).await?;
    world.call("loopback.extend", json!({"approval_id": approval["id"], "secs": 60})).await?;
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    world.call("claudecode.rename", json!({"session_id": session, "new_name": "two"})).await?;
    let acts = rows(&world, json!({"kind": "session"})).await?;
    let said: Vec<&str> = acts.iter().filter_map(|act| act["status"].as_str()).collect();
    assert_eq!(said, ["made", "set_model", "extended", "interrupted", "renamed"]);
    assert_eq!(
        (&acts[2]["detail"]["approval_id"], &acts[4]["detail"]["to"]),
        (&approval["id"], &json!("two"))
    );
    Ok(())
}
