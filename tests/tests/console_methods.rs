//! What the console asks of the hub beside what everybody does: the record from its end.

use anyhow::Context as _;
use plexus_e2e::{Setup, World};
use serde_json::{Value, json};

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("always there")
}

#[tokio::test]
async fn the_record_is_read_back_from_its_end() -> anyhow::Result<()> {
    let world = scripted().await?;
    for name in ["one", "two", "three"] {
        world.create(name, json!({})).await?;
    }
    let forwards = world.call("audit.list", json!({})).await?["rows"].clone();
    let mut backwards = Vec::new();
    let mut page = json!({"newest_first": true, "limit": 2});
    loop {
        let read = world.call("audit.list", page.clone()).await?;
        backwards.extend(read["rows"].as_array().cloned().context("rows")?);
        match &read["next"] {
            Value::Null => break,
            next => page["before"] = next.clone(),
        }
    }
    backwards.reverse();
    assert_eq!(Value::Array(backwards), forwards);
    for (params, field) in [
        (json!({"before": 2}), "before"),
        (json!({"newest_first": true, "after": 2}), "after"),
        (json!({"newest_first": true, "limit": 0}), "limit"),
    ] {
        assert_eq!(world.refused("audit.list", params).await?.data["field"], field);
    }
    Ok(())
}
