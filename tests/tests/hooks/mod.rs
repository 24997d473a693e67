//! The user's hooks with real CLIs: what they can deny, what they cannot allow, and what the model reads of them.

use plexus_e2e::{World, events};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

mod attacks;
mod decisions;
mod restart;

/// Hooks with one command for one event.
fn hooks(event: &str, command: &str) -> Value {
    json!({event: [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]})
}

/// A session with these hooks, and a turn whose only call creates the file `ran-NAME`.
async fn calling(world: &World, name: &str, policy: &str, hooks: Value) -> anyhow::Result<String> {
    let call = json!({"command": format!("touch ran-{name}"), "description": "a step"});
    world.model.script(&format!("MARK-{name}"), vec![Step::tool("Bash", call), Step::text("All done.")]);
    let session = world.create(name, json!({"policy": policy, "hooks": hooks})).await?;
    world.chat(&session, &format!("MARK-{name}")).await?;
    Ok(session)
}

fn ran(world: &World, name: &str) -> bool {
    world.file(&format!("ran-{name}")).exists()
}

/// The data of the `hook` events of a turn.
fn hook_events(poll: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = events(poll, "system");
    found.retain(|event| event["subtype"] == "hook");
    found.into_iter().map(|event| event["data"].clone()).collect()
}

/// The bodies of the model requests for this marker, as text.
fn sent_to_the_model(world: &World, marker: &str) -> String {
    world.model.requests_for(marker).iter().map(Value::to_string).collect()
}
