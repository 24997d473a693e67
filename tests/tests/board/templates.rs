//! Templates: saved after the checks of `create`, listed without secrets, and used by the operator alone.

use plexus_e2e::{script, text};
use serde_json::{Value, json};

use super::{bash, scripted};
use crate::console_methods::client_of;

#[tokio::test]
async fn a_template_sets_the_parameters_of_new_sessions() -> anyhow::Result<()> {
    let world = scripted().await?;
    let prompt = script(&json!([bash("echo template")]));
    let saved = json!({
        "name": "fix", "prompt": prompt, "working_dir": world.work, "policy": "ask_all", "permission_mode": "plan",
        "model": "opus", "budget": {"turns": 3},
        "mcp_servers": {"db": {"type": "stdio", "command": "true", "env": {"KEY": "A-SECRET"}}},
    });
    world.call("template.save", saved).await?;
    let list = world.call("template.list", json!({})).await?;
    let template = &list["templates"][0];
    assert_eq!((&template["name"], &template["mcp_servers"]), (&json!("fix"), &json!(["db"])), "{list:#}");
    assert!(!list.to_string().contains("A-SECRET"), "{list:#}");

    let create = json!({"name": "a", "working_dir": world.work, "template": "fix", "model": "haiku"});
    let session = text(&world.call("claudecode.create", create).await?["id"]);
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "echo template");
    let got = world.call("claudecode.get", json!({"session_id": session})).await?["session"].clone();
    assert_eq!((&got["policy"], &got["permission_mode"]), (&json!("ask_all"), &json!("plan")));
    assert_eq!(
        (&got["model"], &got["budget"]["turns"]["limit"]),
        (&json!("haiku"), &json!(3)),
        "given ones win"
    );
    assert_eq!(got["loads"]["mcp_servers"], json!(["db"]));

    // A form without the secrets keeps the stored server.
    let kept = json!({"name": "fix", "prompt": "other", "mcp_servers": {"db": {"type": "inherited"}}});
    world.call("template.save", kept).await?;
    let template = world.call("template.list", json!({})).await?["templates"][0].clone();
    assert_eq!(
        (&template["mcp_servers"], &template["policy"]),
        (&json!(["db"]), &Value::Null),
        "it was replaced"
    );
    world.call("template.delete", json!({"name": "fix"})).await?;
    let create = json!({"name": "b", "working_dir": world.work, "template": "fix"});
    let missing = world.refused("claudecode.create", create).await?;
    assert_eq!(missing.kind.as_deref(), Some("template_not_found"), "{missing}");
    let audit = world.call("audit.list", json!({"kind": "template"})).await?;
    assert_eq!(audit["rows"].as_array().map(Vec::len), Some(3));
    assert!(!audit.to_string().contains("A-SECRET"), "{audit:#}");
    Ok(())
}

#[tokio::test]
async fn a_template_is_checked_when_it_is_saved_and_when_it_is_used() -> anyhow::Result<()> {
    let world = scripted().await?;
    for (more, field) in [
        (json!({"prompt": ""}), "prompt"),
        (json!({"working_dir": "relative"}), "working_dir"),
        (json!({"budget": {"cost_usd": -1}}), "budget.cost_usd"),
        (json!({"isolation": {"type": "worktree", "setup": " "}}), "isolation.setup"),
        (json!({"mcp_servers": {"plexus": {"command": "x"}}}), "mcp_servers.plexus"),
        (json!({"mcp_servers": {"db": {"type": "inherited"}}}), "mcp_servers.db.type"),
        (json!({"permission_mode": "bypassPermissions"}), "permission_mode"),
        (json!({"colour": 1}), "colour"),
    ] {
        let mut params = json!({"name": "bad"});
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        let refused = world.refused("template.save", params).await?;
        assert_eq!(refused.data["field"], field, "{refused}");
    }
    assert_eq!(world.call("template.list", json!({})).await?["templates"], json!([]));

    // Whether a parameter fits the others is only known when the template is used.
    let isolated = json!({"name": "isolated", "isolation": {"type": "worktree", "setup": "true"}});
    world.call("template.save", isolated).await?;
    let resume = "00000000-0000-4000-8000-000000000000";
    let create = json!({"name": "a", "working_dir": world.work, "template": "isolated", "resume": resume});
    let refused = world.refused("claudecode.create", create).await?;
    assert_eq!(
        (&refused.data["field"], &refused.data["template"]),
        (&json!("isolation"), &json!("isolated"))
    );
    assert!(refused.message.contains("template `isolated`"), "{refused}");

    let session = world.create("agent", json!({"hub_tools": true})).await?;
    let agent = client_of(&world, &session).await?;
    let create = json!({"name": "b", "working_dir": world.work, "template": "isolated"});
    let refused = agent.call("claudecode.create", create).await.expect_err("an agent uses no template");
    assert_eq!((&refused.data["type"], &refused.data["field"]), (&json!("forbidden"), &json!("template")));
    for method in ["template.list", "template.delete"] {
        let refused =
            agent.call(method, json!({"name": "isolated"})).await.expect_err("an agent reads no template");
        assert_eq!(refused.data["type"], "forbidden", "{method}");
    }
    Ok(())
}
