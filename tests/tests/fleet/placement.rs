//! Sessions that are created on a chosen host.

use plexus_e2e::script;
use serde_json::json;

use super::Fleet;

#[tokio::test]
async fn a_session_is_created_on_the_host_that_is_named() -> anyhow::Result<()> {
    let test = "a_session_is_created_on_the_host_that_is_named";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]));
    let more = json!({"host": "two", "working_dir": two.work, "prompt": prompt, "policy": "allow_all"});
    let session = one.create("worker", more).await?;
    assert_eq!(one.ended(&session).await?["status"], "complete");
    assert!(two.file("made").exists());
    let shown = one.call("claudecode.get", json!({"session_id": session})).await?;
    assert_eq!(shown["session"]["host"], "two", "{shown:#}");
    Ok(())
}

#[tokio::test]
async fn a_session_is_created_on_a_host_that_exists_and_is_connected() -> anyhow::Result<()> {
    let test = "a_session_is_created_on_a_host_that_exists_and_is_connected";
    let Some(mut fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &mut fleet.hosts[..] else { unreachable!() };
    let create = |host: &str| json!({"name": "worker", "working_dir": two.work, "host": host});
    let (three, second) = (create("three"), create("two"));
    let unknown = one.refused("claudecode.create", three).await?;
    assert!(unknown.to_string().contains("there is no host `three`"), "{unknown}");

    two.hub.kill9().await?;
    // After ten seconds without a renewed lease the host is unreachable.
    let unreachable = async {
        loop {
            let hosts = one.call("host.list", json!({})).await?["hosts"].clone();
            if hosts[1]["state"] == "unreachable" {
                return anyhow::Ok(hosts);
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let hosts = tokio::time::timeout(plexus_e2e::LIMIT, unreachable).await??;
    assert_eq!((&hosts[0]["state"], &hosts[0]["here"]), (&json!("connected"), &json!(true)));
    let refused = one.refused("claudecode.create", second).await?;
    assert!(refused.to_string().contains("host `two` does not answer"), "{refused}");
    Ok(())
}
