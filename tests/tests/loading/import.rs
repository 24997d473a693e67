//! Imports of the user's own configuration: sessions of the operator get the copies, calls still pass the gate, and nobody else can
//! import or is given anything.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, script, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use super::{bash, calls, get, tool_server};

over!(clis: imported_rules_servers_and_agents_work_in_sessions_of_the_operator);

const AGENT: &str = "---\nname: reviewer\ndescription: reviews\ntools: Bash\npermissionMode: bypassPermissions\n---\n\
                     THE-REVIEWERS-PROMPT\n";

/// Writes the configuration of the user.
fn write(world: &World, server: &Value, allow: &[&str]) -> anyhow::Result<()> {
    let config = world.home.join(".claude");
    std::fs::create_dir_all(config.join("agents"))?;
    std::fs::write(config.join("agents/reviewer.md"), AGENT)?;
    std::fs::write(config.join("settings.json"), json!({"permissions": {"allow": allow}}).to_string())?;
    let state = json!({"mcpServers": {"notes": server}, "projects": {}, "numStartups": 3});
    Ok(std::fs::write(world.home.join(".claude.json"), state.to_string())?)
}

async fn listed(world: &World) -> anyhow::Result<Vec<Value>> {
    let listed = world.call("claudecode.imports", json!({})).await?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

/// What `claudecode.import` needs to import an entry.
fn take(items: &[Value], name: &str) -> anyhow::Result<Value> {
    let item = items.iter().find(|item| item["name"] == name).with_context(|| format!("no entry {name}"))?;
    Ok(json!({"kind": item["kind"], "name": name, "digest": item["digest"]}))
}

async fn import_all(world: &World) -> anyhow::Result<Value> {
    let items = listed(world).await?;
    let open = items.iter().filter(|item| item["state"] == "new" || item["state"] == "changed");
    let take: Vec<Value> = open
        .map(|item| json!({"kind": item["kind"], "name": item["name"], "digest": item["digest"]}))
        .collect();
    world.call("claudecode.import", json!({"take": take})).await
}

fn state(items: &[Value], name: &str) -> String {
    items.iter().find(|item| item["name"] == name).map(|item| text(&item["state"])).unwrap_or_default()
}

async fn imported_rules_servers_and_agents_work_in_sessions_of_the_operator(
    world: World,
) -> anyhow::Result<()> {
    write(&world, &tool_server(&world, "notes.log")?, &["Bash(touch allowed.txt)", "Edit(src/**)"])?;
    let items = listed(&world).await?;
    assert_eq!(state(&items, "Edit(src/**)"), "refused", "{items:#?}");
    import_all(&world).await?;

    let review = json!({
        "description": "helper", "prompt": "REVIEW-IT", "subagent_type": "reviewer", "run_in_background": false,
    });
    let steps = vec![
        bash("touch allowed.txt"),
        Step::tool("mcp__notes__note", json!({"text": "hello"})),
        Step::tool("Agent", review),
        Step::text("Done."),
    ];
    world.model.script("IMPORTED", steps);
    world.model.script("REVIEW-IT", vec![bash("touch reviewed.txt"), Step::text("Reviewed.")]);
    let session = world.create("importing", json!({})).await?;
    world.chat(&session, "IMPORTED").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["tool_name"], "mcp__notes__note", "the rule allowed the first call");
    assert!(world.file("allowed.txt").exists());
    assert_eq!(
        calls(&world, "notes.log"),
        Vec::<Value>::new(),
        "the server was called before it was allowed"
    );
    world.allow(&approval).await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "touch reviewed.txt", "the mode of the agent has no effect");
    assert!(!world.file("reviewed.txt").exists());
    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert_eq!(calls(&world, "notes.log"), [json!("hello")]);
    let prompts =
        world.model.requests().iter().filter(|r| r.body.to_string().contains("THE-REVIEWERS-PROMPT")).count();
    assert!(prompts > 0, "the agent has its prompt");

    let view = get(&world, &session).await?;
    assert_eq!(view["loads"]["imported"], json!({"mcp_servers": ["notes"], "agents": ["reviewer"]}));
    let mut shown = view.to_string() + &world.hub.stderr() + &json!(listed(&world).await?).to_string();
    shown += &world.call("audit.list", json!({})).await?.to_string();
    assert!(!shown.contains("THE-SECRET-KEY"), "{shown}");
    assert!(shown.contains("\"imported\""), "the audit log names the imports");
    Ok(())
}

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("loading").await?.context("the scripted agent is always available")
}

/// The names of the servers that the first run of a new session starts with.
async fn servers_of(world: &World, create: Value) -> anyhow::Result<Vec<String>> {
    // A number that no earlier session of this world has.
    let number = std::fs::read_dir(world.hub.data_dir().join("sessions")).map_or(0, Iterator::count);
    let session = world.create(&format!("session-{number}"), create).await?;
    world.chat(&session, &script(&json!([{"say": "here"}]))).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let config: Value = serde_json::from_slice(&std::fs::read(world.run_dir(&session, 1).join("mcp.json"))?)?;
    let servers = config["mcpServers"].as_object().cloned().unwrap_or_default();
    Ok(servers.into_iter().map(|(name, server)| format!("{name}={}", text(&server["command"]))).collect())
}

#[tokio::test]
async fn only_the_content_that_was_shown_is_imported() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    write(&world, &json!({"command": "shown"}), &["Bash(ls:*)"])?;
    let items = listed(&world).await?;
    assert_eq!([state(&items, "notes"), state(&items, "Bash(ls:*)")], ["new", "new"]);
    let shown = take(&items, "notes")?;
    write(&world, &json!({"command": "swapped"}), &["Bash"])?;
    let refused = world.refused("claudecode.import", json!({"take": [shown]})).await?;
    assert!(refused.to_string().contains("has changed since it was shown"), "{refused}");
    let gone = take(&items, "Bash(ls:*)")?;
    assert!(world.refused("claudecode.import", json!({"take": [gone]})).await.is_ok());
    assert_eq!(servers_of(&world, json!({})).await?, Vec::<String>::new(), "nothing was imported");

    write(&world, &json!({"command": "shown"}), &["Bash(ls:*)"])?;
    import_all(&world).await?;
    write(&world, &json!({"command": "swapped"}), &[])?;
    assert_eq!(state(&listed(&world).await?, "notes"), "changed");
    world.hub.kill9().await?;
    world.hub.restart().await?;
    assert_eq!(servers_of(&world, json!({})).await?, ["notes=shown"], "the copy applies");
    assert_eq!(servers_of(&world, json!({"imported": false})).await?, Vec::<String>::new());
    let own = json!({"mcp_servers": {"notes": {"command": "own"}}});
    assert_eq!(servers_of(&world, own).await?, ["notes=own"], "a parameter takes precedence");

    let removed =
        json!({"remove": [{"kind": "server", "name": "notes"}, {"kind": "rule", "name": "Bash(ls:*)"}]});
    world.call("claudecode.import", removed.clone()).await?;
    assert_eq!(servers_of(&world, json!({})).await?, Vec::<String>::new());
    let rules = world.call("policy.list", json!({})).await?;
    assert_eq!(rules["rules"], json!([]), "the rule is revoked");
    assert!(world.refused("claudecode.import", removed).await.is_ok(), "it is not imported any more");
    Ok(())
}

#[tokio::test]
async fn an_import_leaves_open_approvals_open() -> anyhow::Result<()> {
    let world = scripted().await?;
    write(&world, &json!({"command": "x"}), &["Bash(touch made.txt)"])?;
    let step = json!({"tool": "Bash", "input": {"command": "touch made.txt"}});
    let session = world.create("asking", json!({"prompt": script(&json!([step]))})).await?;
    let (_, approval) = world.asked(&session).await?;
    import_all(&world).await?;
    let pending = world.call("loopback.pending", json!({})).await?;
    assert_eq!(
        pending["approvals"][0]["id"], approval["id"],
        "the operator has not seen the call with the rule"
    );
    world.respond(&approval, json!({"approve": false})).await?;
    let poll = world.ended(&session).await?;
    assert!(world.ran().is_empty(), "{poll:#}");
    assert!(events(&poll, "approval_requested").len() == 1);
    Ok(())
}

#[tokio::test]
async fn a_session_cannot_import_and_its_children_get_only_servers_that_it_passes_on() -> anyhow::Result<()> {
    let world = scripted().await?;
    write(&world, &json!({"command": "given"}), &[])?;
    import_all(&world).await?;
    let lead = world.create("lead", json!({"hub_tools": true})).await?;
    let given = world.call("loopback.configure", json!({"session_id": lead})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    let lead = Rpc::new(world.hub.url(), header.trim_start_matches("Bearer "));
    for (method, params) in [
        ("claudecode.imports", json!({})),
        ("claudecode.import", json!({"remove": [{"kind": "server", "name": "notes"}]})),
        ("claudecode.create", json!({"name": "a", "working_dir": world.work, "imported": true})),
    ] {
        let refused = lead.call(method, params).await.expect_err(method);
        assert_eq!(refused.data["type"], "forbidden", "{method}: {refused}");
    }
    let child = async |name: &str, more: Value| -> anyhow::Result<Value> {
        let mut create = json!({"name": name, "working_dir": world.work});
        for (key, value) in more.as_object().into_iter().flatten() {
            create[key] = value.clone();
        }
        let id = text(&lead.call("claudecode.create", create).await?["id"]);
        Ok(get(&world, &id).await?["loads"].take())
    };
    assert_eq!(child("plain", json!({})).await?, Value::Null);
    let inherited = json!({"mcp_servers": {"notes": {"type": "inherited"}}});
    assert_eq!(child("passed-on", inherited).await?["mcp_servers"], json!(["notes"]));
    Ok(())
}
