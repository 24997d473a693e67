//! Sessions that are created on a chosen host.

use plexus_e2e::{World, script, text};
use serde_json::{Value, json};

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

/// Waits for an approval in its only turn.
fn waits() -> String {
    script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]))
}

/// Creates a working session on a host with these labels; returns its id and its host.
async fn place(world: &World, name: &str, labels: &[&str]) -> anyhow::Result<(String, String)> {
    let params = json!({"name": name, "working_dir": "/tmp", "labels": labels, "prompt": waits()});
    let id = text(&world.call("claudecode.create", params).await?["id"]);
    let shown = world.call("claudecode.get", json!({"session_id": id})).await?;
    Ok((id, text(&shown["session"]["host"])))
}

#[tokio::test]
async fn a_session_is_placed_by_labels_where_slots_are_free() -> anyhow::Result<()> {
    let test = "a_session_is_placed_by_labels_where_slots_are_free";
    let hosts = [
        ("one", "labels = [\"linux\"]"),
        ("two", "labels = [\"linux\", \"gpu\"]\nslots = 1"),
        ("three", "labels = [\"gpu\", \"linux\"]\nslots = 2"),
    ];
    let Some(fleet) = Fleet::start_with(test, &hosts).await? else { return Ok(()) };
    let [one, two, _] = &fleet.hosts[..] else { unreachable!() };
    let (first, host) = place(one, "first", &["gpu", "linux"]).await?;
    assert_eq!(host, "three", "it has the most free slots");
    let mut hosts = vec![place(one, "second", &["gpu"]).await?.1, place(two, "third", &["gpu"]).await?.1];
    hosts.sort();
    assert_eq!(hosts, ["three", "two"]);

    let full = one
        .refused("claudecode.create", json!({"name": "x", "working_dir": "/tmp", "labels": ["gpu"]}))
        .await?;
    let message = full.to_string();
    for why in ["`one` lacks gpu", "`two` has no free slot (1 of 1", "`three` has no free slot (2 of 2"] {
        assert!(message.contains(why), "{why}: {message}");
    }
    let named = json!({"name": "x", "working_dir": "/tmp", "host": "two"});
    let named = one.refused("claudecode.create", named).await?;
    assert!(named.to_string().contains("has no free slot"), "{named}");
    let shown: Vec<Value> =
        one.call("host.list", json!({})).await?["hosts"].as_array().cloned().unwrap_or_default();
    let slots: Vec<_> = shown
        .iter()
        .map(|host| (text(&host["name"]), host["used_slots"].clone(), host["slots"].clone()))
        .collect();
    let expected =
        [("one", json!(0), Value::Null), ("three", json!(2), json!(2)), ("two", json!(1), json!(1))];
    assert_eq!(slots, expected.map(|(name, used, slots)| (name.to_owned(), used, slots)));
    assert_eq!(shown[2]["labels"], json!(["gpu", "linux"]));

    // The end of a turn frees its slot.
    let (_, approval) = one.asked(&first).await?;
    one.respond(&approval, json!({"approve": false, "message": "no"})).await?;
    one.ended(&first).await?;
    assert_eq!(place(two, "fourth", &["gpu"]).await?.1, "three");
    Ok(())
}

#[tokio::test]
async fn sessions_that_are_placed_at_once_never_exceed_the_slots() -> anyhow::Result<()> {
    let test = "sessions_that_are_placed_at_once_never_exceed_the_slots";
    let hosts = [("one", "labels = [\"gpu\"]\nslots = 2"), ("two", "labels = [\"gpu\"]\nslots = 1")];
    let Some(fleet) = Fleet::start_with(test, &hosts).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let params = |i: usize| json!({"name": format!("s{i}"), "working_dir": "/tmp", "labels": ["gpu"], "prompt": waits()});
    let all = (0..6).map(|i| (if i % 2 == 0 { one } else { two }).door.call("claudecode.create", params(i)));
    let created = futures::future::join_all(all).await;
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 3, "{created:?}");
    let listed = one.call("host.list", json!({})).await?;
    let used: Vec<&Value> =
        listed["hosts"].as_array().into_iter().flatten().map(|host| &host["used_slots"]).collect();
    assert_eq!(used, [&json!(2), &json!(1)], "{listed:#}");
    let refused = created.into_iter().filter_map(Result::err);
    refused.for_each(|error| assert!(error.to_string().contains("no free slot"), "{error}"));
    Ok(())
}
