//! A hub that is killed leaves its agents to the next hub of its host, and to no other.

use plexus_e2e::{script, until};
use serde_json::json;

use super::Fleet;

#[tokio::test]
async fn agents_of_a_killed_hub_wait_for_the_next_hub_of_their_host() -> anyhow::Result<()> {
    let test = "agents_of_a_killed_hub_wait_for_the_next_hub_of_their_host";
    let Some(mut fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &mut fleet.hosts[..] else { unreachable!() };
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]));
    let session = two.create("worker", json!({"prompt": prompt})).await?;
    let (_, approval) = one.asked(&session).await?;

    two.hub.kill9().await?;
    // Another hub that starts meanwhile leaves them alone.
    one.hub.restart().await?;
    let (poll, still_open) = one.asked(&session).await?;
    assert_eq!(still_open["id"], approval["id"], "{poll:#}");

    // The answer reaches the next hub of that host.
    let answer = one.respond(&approval, json!({"approve": true}));
    let (answered, restarted) = tokio::join!(answer, two.hub.restart());
    restarted?;
    assert_eq!(answered?["type"], "ok");
    assert_eq!(one.ended(&session).await?["status"], "complete");
    until("the file", || two.file("made").exists()).await
}
