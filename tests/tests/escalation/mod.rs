//! Escalation: which session decides an approval, what a session may allow for its descendants, and how an approval moves to the next
//! ancestor. The sessions in these tests have no processes. The tests use the tokens of `loopback.configure`.

mod real_tree;
mod timeouts;
mod waking;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, text};
use plexus_testkit::rpc::{Rpc, RpcError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A session, and a client with its token.
struct Member {
    id: String,
    token: String,
    rpc: Rpc,
}

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

/// A session created by `creator`, or by the operator.
async fn member(world: &World, creator: Option<&Member>, name: &str, more: Value) -> anyhow::Result<Member> {
    let mut params = json!({"name": name, "working_dir": world.work, "hub_tools": true});
    for (field, value) in more.as_object().into_iter().flatten() {
        params[field] = value.clone();
    }
    let made = match creator {
        Some(creator) => creator.rpc.call("claudecode.create", params).await?,
        None => world.call("claudecode.create", params).await?,
    };
    let id = text(&made["id"]);
    let given = world.call("loopback.configure", json!({"session_id": id})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    let token = header.trim_start_matches("Bearer ").to_owned();
    let rpc = Rpc::new(world.hub.url(), &token);
    Ok(Member { id, token, rpc })
}

/// Requests a permit for a command. Returns the approval, and a handle to the decision.
async fn asks(
    world: &World,
    member: &Member,
    command: &str,
) -> anyhow::Result<(Value, JoinHandle<Result<Value, RpcError>>)> {
    let rpc = Rpc::new(world.hub.url(), &member.token);
    let call = json!({"tool_name": "Bash", "input": {"command": command}, "tool_use_id": format!("toolu_{command}")});
    let told = tokio::spawn(async move { rpc.call("loopback.permit", call).await });
    let found = async {
        loop {
            let pending = world.call("loopback.pending", json!({"session_id": member.id})).await?;
            let mut open = pending["approvals"].as_array().into_iter().flatten();
            if let Some(approval) = open.find(|approval| approval["input"]["command"] == command) {
                return anyhow::Ok(approval.clone());
            }
            tokio::task::yield_now().await;
        }
    };
    Ok((timeout(LIMIT, found).await??, told))
}

fn of(member: &Member) -> Value {
    json!({"kind": "session", "id": member.id})
}

fn kind(error: &RpcError) -> &str {
    error.data["type"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_nearest_ancestor_with_the_scope_decides_and_only_within_its_scope() -> anyhow::Result<()> {
    let world = scripted().await?;
    let lists = json!({"approve_scope": ["Bash(ls:*)"]});
    let grandparent = member(&world, None, "grandparent", lists).await?;
    let parent = member(&world, Some(&grandparent), "parent", json!({})).await?;
    let child = member(&world, Some(&parent), "child", json!({})).await?;

    let (list, told) = asks(&world, &child, "ls -l").await?;
    assert_eq!(list["asked_of"], of(&grandparent), "its parent may allow nothing: {list}");
    let (remove, removes) = asks(&world, &child, "rm -r x").await?;
    assert_eq!(remove["asked_of"], json!({"kind": "operator"}), "{remove}");

    let allow = |approval: &Value| json!({"approval_id": approval["id"], "approve": true});
    for (decider, approval) in [(&parent, &list), (&parent, &remove), (&grandparent, &remove)] {
        let refused = decider.rpc.call("loopback.respond", allow(approval)).await.expect_err("beyond it");
        assert_eq!(kind(&refused), "beyond_scope", "{refused}");
    }
    let edited =
        json!({"approval_id": list["id"], "approve": true, "updated_input": {"command": "ls; rm -r x"}});
    let refused = grandparent.rpc.call("loopback.respond", edited).await.expect_err("beyond it");
    assert_eq!(kind(&refused), "beyond_scope", "{refused}");
    grandparent.rpc.call("loopback.respond", allow(&list)).await?;
    assert_eq!(told.await??["behavior"], "allow");
    // Any ancestor may deny.
    parent.rpc.call("loopback.respond", json!({"approval_id": remove["id"], "approve": false})).await?;
    assert_eq!(removes.await??["behavior"], "deny");
    Ok(())
}

#[tokio::test]
async fn a_session_grants_scopes_only_within_its_own() -> anyhow::Result<()> {
    let world = scripted().await?;
    let params = json!({"name": "none", "working_dir": world.work, "hub_tools": true});
    let made = world.call("claudecode.create", params).await?;
    assert_eq!(made["may_decide"], json!([]), "{made}");
    assert!(text(&made["hint"]).contains("approve_scope"), "{made}");

    let some =
        member(&world, None, "some", json!({"approve_scope": ["Bash(npm:*)", "Edit(src/**)"]})).await?;
    for (scope, may) in [
        (json!(["Bash(npm run test:*)"]), true),
        (json!(["Edit(src/inner/**)"]), true),
        (json!(["Bash"]), false),
        (json!(["Edit(**)"]), false),
        (json!(["Bash(npm:*)", "Bash(rm:*)"]), false),
        (json!(["*"]), false),
    ] {
        let name = format!("below-{}", scope.to_string().len());
        let params =
            json!({"name": name, "working_dir": world.work, "hub_tools": true, "approve_scope": scope});
        let made = some.rpc.call("claudecode.create", params).await;
        match (may, made) {
            (true, Ok(_)) => {}
            (false, Err(error)) => assert_eq!(kind(&error), "forbidden", "{scope}: {error}"),
            (_, made) => anyhow::bail!("{scope}: {made:?}"),
        }
    }
    let without = json!({"name": "x", "working_dir": world.work, "approve_scope": ["Bash"]});
    assert_eq!(world.refused("claudecode.create", without).await?.data["field"], "approve_scope");
    let bad = json!({"name": "x", "working_dir": world.work, "hub_tools": true, "approve_scope": ["Bash", "Edit("]});
    assert_eq!(world.refused("claudecode.create", bad).await?.data["field"], "approve_scope[1]");
    Ok(())
}

#[tokio::test]
async fn an_approval_is_escalated_with_an_opinion_up_to_the_operator() -> anyhow::Result<()> {
    let world = scripted().await?;
    let all = json!({"approve_scope": ["*"]});
    let grandparent = member(&world, None, "grandparent", all.clone()).await?;
    let parent = member(&world, Some(&grandparent), "parent", all).await?;
    let child = member(&world, Some(&parent), "child", json!({})).await?;
    let cursor = grandparent.rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
    let (approval, told) = asks(&world, &child, "git push").await?;
    assert_eq!(approval["asked_of"], of(&parent));
    let id = &approval["id"];
    assert_eq!(
        kind(&child.rpc.call("loopback.escalate", json!({"approval_id": id})).await.expect_err("its own")),
        "approval_not_found"
    );

    let passed =
        parent.rpc.call("loopback.escalate", json!({"approval_id": id, "opinion": "looks fine"})).await?;
    assert_eq!(passed["asked_of"], of(&grandparent), "{passed}");
    let news = grandparent.rpc.call("loopback.wait", json!({"cursor": cursor})).await?;
    assert_eq!(news["approvals"][0]["id"], *id, "{news}");
    assert_eq!(news["approvals"][0]["passed"][0]["opinion"], "looks fine", "{news}");
    assert_eq!(
        parent.rpc.call("loopback.wait", json!({})).await?["approvals"],
        json!([]),
        "it is no longer the addressee"
    );

    let operators = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    grandparent.rpc.call("loopback.escalate", json!({"approval_id": id})).await?;
    let news = world.call("loopback.wait", json!({"cursor": operators})).await?;
    assert_eq!(news["approvals"][0]["passed"].as_array().map(Vec::len), Some(2), "{news}");
    assert_eq!(escalation_error(&world, id).await?, "forbidden", "the operator has no ancestor");
    // A session that escalated an approval may still decide it first.
    parent.rpc.call("loopback.respond", json!({"approval_id": id, "approve": true})).await?;
    assert_eq!(told.await??["behavior"], "allow");
    let late = grandparent.rpc.call("loopback.escalate", json!({"approval_id": id})).await?;
    assert_eq!(late["type"], "already_resolved", "{late}");
    Ok(())
}

#[tokio::test]
async fn the_operator_and_a_deciding_token_can_escalate_an_agents_approval() -> anyhow::Result<()> {
    let world = scripted().await?;
    let all = json!({"approve_scope": ["*"]});
    let grandparent = member(&world, None, "grandparent", all.clone()).await?;
    let parent = member(&world, Some(&grandparent), "parent", all).await?;
    let child = member(&world, Some(&parent), "child", json!({})).await?;
    grandparent.rpc.call("loopback.wait", json!({})).await?;
    let (approval, told) = asks(&world, &child, "git push").await?;
    assert_eq!(approval["asked_of"], of(&parent));
    let id = &approval["id"];

    let opinion = json!({"approval_id": id, "opinion": "not for the parent"});
    let passed = world.call("loopback.escalate", opinion).await?;
    assert_eq!(passed["asked_of"], of(&grandparent), "{passed}");
    let shown = grandparent.rpc.call("loopback.wait", json!({})).await?["approvals"][0].clone();
    let went = &shown["passed"][0];
    assert_eq!((&went["from"], &went["why"]), (&of(&parent), &json!("escalated")), "{shown}");
    assert_eq!(
        (&went["by"], &went["opinion"]),
        (&json!({"kind": "operator"}), &json!("not for the parent")),
        "{shown}"
    );
    let still = parent.rpc.call("loopback.wait", json!({})).await?;
    assert_eq!(still["approvals"][0]["id"], *id, "it did not escalate the approval itself: {still}");

    let token = |right: &str| world.call("token.new", json!({"name": right, "right": right}));
    let [reads, decides] = [token("read").await?, token("decide").await?]
        .map(|made| Rpc::new(world.hub.url(), &text(&made["token"])));
    let refused = reads.call("loopback.escalate", json!({"approval_id": id})).await.expect_err("it reads");
    assert_eq!(kind(&refused), "forbidden", "{refused}");
    let passed = decides.call("loopback.escalate", json!({"approval_id": id})).await?;
    assert_eq!(passed["asked_of"], json!({"kind": "operator"}), "{passed}");
    let refused = decides.call("loopback.escalate", json!({"approval_id": id})).await.expect_err("the end");
    assert!(refused.message.contains("the operator already has this approval"), "{refused}");
    assert_eq!(escalation_error(&world, id).await?, "forbidden", "the operator has no parent");

    world.call("loopback.respond", json!({"approval_id": id, "approve": false})).await?;
    assert_eq!(told.await??["behavior"], "deny");
    let late = world.call("loopback.escalate", json!({"approval_id": id})).await?;
    assert_eq!(late["type"], "already_resolved", "{late}");
    Ok(())
}

async fn escalation_error(world: &World, id: &Value) -> anyhow::Result<String> {
    let refused = world.refused("loopback.escalate", json!({"approval_id": id})).await?;
    Ok(refused.kind.unwrap_or_default())
}

#[tokio::test]
async fn an_extended_deadline_replaces_the_old_one() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let child = member(&world, None, "child", json!({"approval_timeout_secs": 2})).await?;
    let (approval, _) = asks(&world, &child, "make").await?;
    let extend = |secs: u64| json!({"approval_id": approval["id"], "secs": secs});
    let moved = world.call("loopback.extend", extend(3600)).await?;
    assert!(moved["expires_at"].as_u64() > approval["expires_at"].as_u64(), "{moved}");
    // The old deadline passes, with a hub and without one.
    let (short, told) = asks(&world, &child, "true").await?;
    assert_eq!(timeout(LIMIT, told).await???["behavior"], "deny", "{short}");
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    let get = json!({"approval_id": approval["id"]});
    assert_eq!(world.call("loopback.get", get.clone()).await?["approval"]["status"], "pending");
    let cursor = world.call("loopback.wait", json!({})).await?["cursor"].clone();
    world.call("loopback.extend", extend(1)).await?;
    let news = world.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
    assert_eq!(news["notices"][0]["status"], "expired", "{news}");
    assert_eq!(world.call("loopback.extend", extend(5)).await?["type"], "already_resolved");
    assert_eq!(world.refused("loopback.extend", extend(0)).await?.data["field"], "secs");
    Ok(())
}
