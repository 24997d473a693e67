//! Any hub shows and answers the approvals of all hosts, and acts on their sessions.

use anyhow::Context as _;
use plexus_e2e::{events, script, text, until};
use plexus_testkit::rpc::Listener;
use serde_json::{Value, json};

use super::Fleet;

fn touches(file: &str) -> String {
    script(&json!([{"tool": "Bash", "input": {"command": format!("touch {file}")}}, {"say": "done"}]))
}

#[tokio::test]
async fn an_approval_is_answered_on_any_host() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("an_approval_is_answered_on_any_host", &["one", "two"]).await? else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let session = two.create("worker", json!({"prompt": touches("allowed")})).await?;

    let (_, approval) = one.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "touch allowed");
    let pending = one.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"][0]["id"], approval["id"], "{pending:#}");
    one.allow(&approval).await?;
    let poll = one.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}\n{}", two.hub.stderr());
    assert!(two.file("allowed").exists() && !one.file("allowed").exists());

    one.chat(&session, &touches("denied")).await?;
    let (_, approval) = one.asked(&session).await?;
    let denied = one.respond(&approval, json!({"approve": false, "message": "not now"})).await?;
    assert_eq!(denied["type"], "ok");
    let poll = two.ended(&session).await?;
    assert!(events(&poll, "tool_result")[0]["output"].to_string().contains("not now"), "{poll:#}");
    assert!(!two.file("denied").exists());

    let again = one.respond(&approval, json!({"approve": true})).await?;
    assert_eq!(again["type"], "already_resolved", "{again}");
    let verified = one.call("audit.verify", json!({})).await?;
    assert_eq!(verified["type"], "ok", "{verified}");
    Ok(())
}

#[tokio::test]
async fn an_edited_call_runs_as_edited_on_its_host() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("an_edited_call_runs_as_edited_on_its_host", &["one", "two"]).await?
    else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let session = two.create("worker", json!({"prompt": touches("asked")})).await?;
    let (_, approval) = one.asked(&session).await?;
    let edited = json!({"approve": true, "updated_input": {"command": "touch edited"}});
    one.respond(&approval, edited).await?;
    one.ended(&session).await?;
    assert!(two.file("edited").exists() && !two.file("asked").exists());
    Ok(())
}

#[tokio::test]
async fn a_session_is_stopped_and_prompted_from_any_host() -> anyhow::Result<()> {
    let Some(fleet) =
        Fleet::start("a_session_is_stopped_and_prompted_from_any_host", &["one", "two"]).await?
    else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let waits = script(&json!([{"wait_file": two.file("never").display().to_string()}]));
    let session = two.create("worker", json!({"prompt": waits, "policy": "allow_all"})).await?;
    let view = async |name: &str| -> anyhow::Result<Value> {
        Ok(one.call("claudecode.get", json!({"name": name})).await?["session"].clone())
    };
    let runs = async {
        while !view("worker").await?["pid"].is_u64() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(plexus_e2e::LIMIT, runs).await.context("its host says that it runs")??;
    one.call("claudecode.stop", json!({"session_id": session})).await?;
    assert_eq!(one.ended(&session).await?["status"], "interrupted");
    assert!(view("worker").await?["pid"].is_null());

    one.chat(&session, &touches("made")).await?;
    assert_eq!(two.ended(&session).await?["status"], "complete");
    assert!(two.file("made").exists());

    one.call("claudecode.delete", json!({"session_id": session})).await?;
    let listed = two.call("claudecode.list", json!({})).await?;
    assert_eq!(listed["sessions"], json!([]), "{listed:#}");
    Ok(())
}

#[tokio::test]
async fn a_rule_of_one_host_decides_on_all() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("a_rule_of_one_host_decides_on_all", &["one", "two"]).await? else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let waiting = two.create("waiting", json!({"prompt": touches("first")})).await?;
    two.asked(&waiting).await?;
    let added =
        one.call("policy.add", json!({"rules": [{"rule": "Bash(touch *)", "effect": "allow"}]})).await?;
    // The rule also decides the approval that is already open there.
    assert_eq!(two.ended(&waiting).await?["status"], "complete");
    assert!(two.file("first").exists());
    one.call("policy.revoke", json!({"number": added["rules"][0]["number"]})).await?;

    let asking = two.create("asking", json!({"prompt": touches("second")})).await?;
    let (_, approval) = two.asked(&asking).await?;
    assert_eq!(approval["input"]["command"], "touch second");
    assert!(!two.file("second").exists());
    Ok(())
}

#[tokio::test]
async fn a_rule_is_revoked_on_another_host_at_once() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("a_rule_is_revoked_on_another_host_at_once", &["one", "two"]).await?
    else {
        return Ok(());
    };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    for number in 0..40 {
        let rule = json!({"rule": format!("Bash(touch {number})"), "effect": "allow"});
        let added = one.call("policy.add", json!({"rules": [rule]})).await?;
        // The other hub may not have read the rule yet.
        two.call("policy.revoke", json!({"number": added["rules"][0]["number"]})).await?;
    }
    let refused = two.refused("policy.revoke", json!({"number": 1})).await?;
    assert_eq!(refused.kind.as_deref(), Some("rule_not_found"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn two_machines_cannot_use_the_name_of_one_host() -> anyhow::Result<()> {
    let Some(fleet) = Fleet::start("two_machines_cannot_use_the_name_of_one_host", &["one"]).await? else {
        return Ok(());
    };
    let refused = fleet.setup("one").world("impostor").await.err().context("refused")?;
    assert!(refused.to_string().contains("choose another name with --host"), "{refused}");
    // The first hub still writes.
    let [one] = &fleet.hosts[..] else { unreachable!() };
    let session = one.create("worker", json!({"prompt": touches("made"), "policy": "allow_all"})).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete");
    assert_eq!(text(&one.call("audit.verify", json!({})).await?["type"]), "ok");
    until("the file", || one.file("made").exists()).await
}

#[tokio::test]
async fn the_events_of_a_session_are_streamed_from_any_host() -> anyhow::Result<()> {
    let test = "the_events_of_a_session_are_streamed_from_any_host";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let go = two.file("go").display().to_string();
    let says = script(&json!([{"say": "first"}, {"wait_file": go}, {"say": "second"}]));
    let session = two.create("worker", json!({"prompt": says})).await?;
    let path = format!("/sessions/{session}/events");
    let mut stream = Listener::open(one.hub.url(), &path, &one.hub.token()?, None).await?;
    let mut texts = Vec::new();
    while texts != ["first", "second"] {
        let event = stream.next().await?.context("the stream goes on")?;
        let frame: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if frame["event"]["type"] == "content" {
            texts.push(text(&frame["event"]["text"]));
            std::fs::write(&go, "")?;
        }
    }
    // Each event was streamed once and without gaps.
    assert_eq!(one.ended(&session).await?["status"], "complete");
    Ok(())
}
