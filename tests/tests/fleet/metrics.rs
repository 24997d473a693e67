//! Metrics of several hubs: each reports its own host, and how it sees the others.

use plexus_e2e::script;
use serde_json::json;

use super::Fleet;
use crate::metrics::figures;

#[tokio::test]
async fn each_hub_counts_its_own_host_and_shows_all() -> anyhow::Result<()> {
    let test = "each_hub_counts_its_own_host_and_shows_all";
    let Some(mut fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &mut fleet.hosts[..] else { unreachable!() };
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]));
    let more = json!({"host": "two", "working_dir": two.work, "prompt": prompt});
    let session = one.create("worker", more).await?;
    let (_, approval) = one.asked(&session).await?;

    let (first, second) = (figures(one).await?, figures(two).await?);
    for (name, here, there) in [
        ("plexus_sessions", 0.0, 1.0),
        ("plexus_approvals_open", 0.0, 1.0),
        ("plexus_approvals_asked_total", 0.0, 1.0),
        ("plexus_host_connected{host=\"one\"}", 1.0, 1.0),
        ("plexus_host_connected{host=\"two\"}", 1.0, 1.0),
        ("plexus_host_silent_seconds{host=\"two\"}", 0.0, 0.0),
        ("plexus_host_approvals_open{host=\"one\"}", 0.0, 0.0),
        ("plexus_host_approvals_open{host=\"two\"}", 1.0, 1.0),
    ] {
        assert_eq!((first[name], second[name]), (here, there), "{name}");
    }
    one.allow(&approval).await?;
    one.ended(&session).await?;
    let sent = figures(one).await?["plexus_commands_sent_total{host=\"two\",outcome=\"done\"}"];
    let executed = figures(two).await?["plexus_commands_executed_total{host=\"one\",outcome=\"done\"}"];
    assert!(sent >= 2.0 && sent <= executed, "created and allowed: {sent} of {executed}");
    let failed =
        one.refused("claudecode.create", json!({"name": "x", "working_dir": "/none", "host": "two"}));
    failed.await?;
    assert_eq!(figures(one).await?["plexus_commands_sent_total{host=\"two\",outcome=\"failed\"}"], 1.0);

    two.hub.kill9().await?;
    let unreachable = async {
        while figures(one).await?["plexus_host_connected{host=\"two\"}"] > 0.0 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        one.refused("claudecode.send", json!({"session_id": session, "text": "more"})).await?;
        figures(one).await
    };
    let last = tokio::time::timeout(plexus_e2e::LIMIT, unreachable).await??;
    assert_eq!(last["plexus_commands_sent_total{host=\"two\",outcome=\"unreachable\"}"], 1.0);
    let silent = last["plexus_host_silent_seconds{host=\"two\"}"];
    assert!(silent > 0.0, "{silent}");
    Ok(())
}
