//! Scopes only narrow: an answer, a rule or a scope that a session grants must be within every scope above it. Each scope is evaluated
//! on the call, whatever the text of the rules is.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, script, text};
use plexus_testkit::rpc::{Door, McpClient, Rpc};
use serde_json::{Value, json};

/// A command that leaves the working directory: `Bash(cd:*)` does not match it, `Bash(cd /etc)` does.
const LEAVES: &str = "cd /etc && ls";

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// The commands that ran, in order.
fn ran(world: &World) -> Vec<String> {
    world.ran().iter().map(|call| text(&call["input"]["command"])).collect()
}

async fn world() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

/// A client of a session that has had a turn, so that it has a token and counts as present.
async fn door_of(world: &World, session: &str) -> anyhow::Result<McpClient> {
    world.chat(session, &script(&json!([{"say": "here"}]))).await?;
    world.ended(session).await?;
    world.door_of(session).await
}

/// A session of the operator with a scope, and a client of it.
async fn root(world: &World, scope: Value) -> anyhow::Result<(String, McpClient)> {
    let session = world.create("root", json!({"hub_tools": true, "approve_scope": scope})).await?;
    let door = door_of(world, &session).await?;
    Ok((session, door))
}

/// A session that `door` creates with a scope, and a client of it.
async fn below(
    world: &World,
    door: &McpClient,
    name: &str,
    scope: Value,
) -> anyhow::Result<(String, McpClient)> {
    let params = json!({"name": name, "working_dir": world.work, "hub_tools": true, "approve_scope": scope});
    let session = text(&door.call("claudecode.create", params).await?["id"]);
    let door = door_of(world, &session).await?;
    Ok((session, door))
}

/// A session that `door` creates to work.
async fn worker(world: &World, door: &dyn Door, name: &str) -> anyhow::Result<String> {
    let params = json!({"name": name, "working_dir": world.work});
    Ok(text(&door.call("claudecode.create", params).await?["id"]))
}

async fn outcome(world: &World, session: &str, command: &str) -> anyhow::Result<Value> {
    let call = json!({"session_id": session, "tool_name": "Bash", "input": {"command": command}});
    Ok(world.call("policy.test", call).await?["outcome"].clone())
}

#[tokio::test]
async fn a_session_grants_no_scope_that_names_a_call_beyond_its_own() -> anyhow::Result<()> {
    let world = world().await?;
    let (_, door) = root(&world, json!(["Bash(find:*)"])).await?;
    for (i, rule) in ["Bash(find . -exec touch stolen.txt +)", "Bash(find . -exec:*)", "Bash(find . -delete)"]
        .into_iter()
        .enumerate()
    {
        let params = json!({"name": format!("wide-{i}"), "working_dir": world.work, "hub_tools": true,
                            "approve_scope": [rule]});
        let refused = door.call("claudecode.create", params).await.expect_err(rule);
        assert_eq!(
            (&refused.data["type"], &refused.data["field"]),
            (&json!("forbidden"), &json!("approve_scope"))
        );
    }
    // A narrower scope is granted and used.
    let (_, door) = below(&world, &door, "narrow", json!(["Bash(find src:*)"])).await?;
    let worker = worker(&world, &door, "worker").await?;
    world.chat(&worker, &script(&json!([bash("find src"), bash("find . -exec touch stolen.txt +")]))).await?;
    let (_, asked) = world.asked(&worker).await?;
    assert_eq!(asked["asked_of"]["kind"], "session", "{asked}");
    door.call("loopback.respond", json!({"approval_id": asked["id"], "approve": true})).await?;
    let asked = until_asked(&world, &worker, "find . -exec touch stolen.txt +").await?;
    assert_eq!(asked["asked_of"]["kind"], "operator", "{asked}");
    let allow = json!({"approval_id": asked["id"], "approve": true});
    let refused = door.call("loopback.respond", allow).await.expect_err("beyond its scope");
    assert_eq!(refused.kind.as_deref(), Some("beyond_scope"), "{refused}");
    assert_eq!(ran(&world), ["find src"]);
    Ok(())
}

/// By their texts, each scope here contains the next. Only the call shows that the one in the middle is wider.
#[tokio::test]
async fn an_answer_must_be_within_every_scope_above() -> anyhow::Result<()> {
    let world = world().await?;
    let (_, top) = root(&world, json!(["Bash(cd:*)", "Bash(ls:*)"])).await?;
    let (middle, door) = below(&world, &top, "middle", json!(["Bash(cd /etc)", "Bash(ls:*)"])).await?;
    let worker = worker(&world, &door, "worker").await?;
    world.chat(&worker, &script(&json!([bash("ls"), bash(LEAVES)]))).await?;
    let (_, asked) = world.asked(&worker).await?;
    assert_eq!(asked["asked_of"], json!({"kind": "session", "id": middle}), "{asked}");
    // An edited input must be within them, too.
    let edited = json!({"approval_id": asked["id"], "approve": true, "updated_input": {"command": LEAVES}});
    let refused = door.call("loopback.respond", edited).await.expect_err("edited beyond a scope");
    assert_eq!(refused.kind.as_deref(), Some("beyond_scope"), "{refused}");
    door.call("loopback.respond", json!({"approval_id": asked["id"], "approve": true})).await?;
    let asked = until_asked(&world, &worker, LEAVES).await?;
    assert_eq!(asked["asked_of"], json!({"kind": "operator"}), "no session may allow it: {asked}");
    for door in [&door, &top] {
        let allow = json!({"approval_id": asked["id"], "approve": true});
        let refused = door.call("loopback.respond", allow).await.expect_err("beyond a scope");
        assert_eq!(refused.kind.as_deref(), Some("beyond_scope"), "{refused}");
    }
    assert_eq!(ran(&world), ["ls"]);
    // No scope limits the operator.
    world.allow(&asked).await?;
    world.ended(&worker).await?;
    assert_eq!(ran(&world), ["ls", LEAVES]);
    Ok(())
}

#[tokio::test]
async fn a_remembered_rule_allows_no_more_than_the_scopes_above() -> anyhow::Result<()> {
    let world = world().await?;
    let (_, top) = root(&world, json!(["Bash(cd:*)", "Bash(ls:*)", "Bash(find:*)"])).await?;
    let scope = json!(["Bash(cd /etc)", "Bash(ls:*)", "Bash(find:*)"]);
    let (_, door) = below(&world, &top, "middle", scope).await?;
    let worker = worker(&world, &door, "worker").await?;
    let calls = [bash("ls"), bash("ls src"), bash("ls -a"), bash(LEAVES)];
    world.chat(&worker, &script(&json!(calls))).await?;
    let remember = |asked: &Value, rule: &str| json!({"approval_id": asked["id"], "approve": true, "remember": {"rule": rule}});
    let (_, asked) = world.asked(&worker).await?;
    let refused = door.call("loopback.respond", remember(&asked, "Bash(find . -delete)")).await;
    assert_eq!(refused.expect_err("beyond its scope").kind.as_deref(), Some("beyond_scope"));
    door.call("loopback.respond", remember(&asked, "Bash(cd /etc)")).await?;
    let asked = until_asked(&world, &worker, "ls src").await?;
    door.call("loopback.respond", remember(&asked, "Bash(ls:*)")).await?;
    let asked = until_asked(&world, &worker, LEAVES).await?;
    assert_eq!(asked["asked_of"], json!({"kind": "operator"}), "{asked}");
    assert_eq!(ran(&world), ["ls", "ls src", "ls -a"], "a rule within all scopes applies");
    assert_eq!(outcome(&world, &worker, "ls -l").await?, "allow");
    assert_eq!(outcome(&world, &worker, LEAVES).await?, "own_course");
    // A fork of the worker has the same rules, within the same scopes.
    let fork = world.call("claudecode.fork", json!({"session_id": worker, "new_name": "fork"})).await?;
    let fork = text(&fork["id"]);
    assert_eq!(outcome(&world, &fork, "ls -l").await?, "allow");
    assert_eq!(outcome(&world, &fork, LEAVES).await?, "own_course");
    Ok(())
}

#[tokio::test]
async fn a_fork_of_a_session_may_allow_no_more_than_the_scopes_above() -> anyhow::Result<()> {
    let world = world().await?;
    let (_, top) = root(&world, json!(["Bash(cd:*)", "Bash(ls:*)"])).await?;
    let (middle, _) = below(&world, &top, "middle", json!(["Bash(cd /etc)", "Bash(ls:*)"])).await?;
    let fork = top.call("claudecode.fork", json!({"session_id": middle, "new_name": "fork"})).await?;
    let fork = text(&fork["id"]);
    let given = world.call("loopback.configure", json!({"session_id": fork})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    let door = Rpc::new(world.hub.url(), header.trim_start_matches("Bearer "));
    let worker = worker(&world, &door, "worker").await?;
    world.chat(&worker, &script(&json!([bash("ls"), bash(LEAVES)]))).await?;
    let (_, asked) = world.asked(&worker).await?;
    assert_eq!(asked["asked_of"], json!({"kind": "session", "id": fork}), "{asked}");
    door.call("loopback.respond", json!({"approval_id": asked["id"], "approve": true})).await?;
    let asked = until_asked(&world, &worker, LEAVES).await?;
    let allow = json!({"approval_id": asked["id"], "approve": true});
    let refused = door.call("loopback.respond", allow).await.expect_err("beyond a scope");
    assert_eq!(refused.data["type"], "beyond_scope", "{refused}");
    assert_eq!(ran(&world), ["ls"]);
    Ok(())
}

/// Waits for the approval of this command.
async fn until_asked(world: &World, session: &str, command: &str) -> anyhow::Result<Value> {
    let asked = |poll: &Value| poll["pending_approvals"][0]["input"]["command"] == command;
    let poll = world.poll_until(session, asked).await?;
    Ok(poll["pending_approvals"][0].clone())
}
