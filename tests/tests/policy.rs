//! Rules: how they decide at the gate for real and scripted agents, who may add them, and which open approvals they
//! resolve. An edited input cannot bypass them.

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, over, script, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::{Door, Rpc};
use serde_json::{Value, json};

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// The commands that ran, in order.
fn ran(world: &World) -> Vec<String> {
    world.ran().iter().map(|call| text(&call["input"]["command"])).collect()
}

fn kind(error: &plexus_testkit::rpc::CallError) -> &str {
    error.kind.as_deref().unwrap_or_default()
}

/// A token of a session.
async fn token_of(world: &World, session: &str) -> anyhow::Result<String> {
    let given = world.call("loopback.configure", json!({"session_id": session})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    Ok(header.trim_start_matches("Bearer ").to_owned())
}

async fn rules_decide_before_an_approval_is_created(world: World) -> anyhow::Result<()> {
    let rules = json!([
        {"rule": "Bash(touch allowed.txt)", "effect": "allow"},
        {"rule": "Bash(touch denied.txt)", "effect": "deny"},
        {"rule": "Read(secret.txt)", "effect": "deny"},
    ]);
    std::fs::write(world.file("secret.txt"), "nobody is to read this\n")?;
    let steps = vec![
        Step::tool("Bash", json!({"command": "touch allowed.txt", "description": "one"})),
        Step::tool("Bash", json!({"command": "touch denied.txt", "description": "two"})),
        Step::tool("Read", json!({"file_path": world.file("secret.txt")})),
        Step::tool(
            "Bash",
            json!({"command": "touch allowed.txt && touch other.txt", "description": "three"}),
        ),
        Step::text("done"),
    ];
    world.model.script("RULED", steps);
    let session = world.create("ruled", json!({"rules": rules})).await?;
    world.chat(&session, "RULED: go").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["input"]["command"], "touch allowed.txt && touch other.txt", "{approval}");
    world.respond(&approval, json!({"approve": false})).await?;
    let ended = world.ended(&session).await?;
    let results = events(&ended, "tool_result");
    assert_eq!(results.len(), 4, "{ended}");
    assert!(world.file("allowed.txt").exists() && !world.file("denied.txt").exists());
    assert!(!world.file("other.txt").exists());
    assert!(!results.iter().any(|result| result.to_string().contains("nobody is to read this")), "{ended}");
    let said = results.iter().filter(|result| result.to_string().contains("denied by rule")).count();
    assert_eq!(said, 2, "the result names the rule: {ended}");
    Ok(())
}

over!(channels: rules_decide_before_an_approval_is_created);

#[tokio::test]
async fn a_remembered_answer_resolves_open_approvals_and_later_calls() -> anyhow::Result<()> {
    let world = scripted().await?;
    let mut sessions = Vec::new();
    for name in ["one", "two", "other"] {
        let command = if name == "other" { "rm -r all" } else { "npm run test unit" };
        let prompt = script(&json!([bash(command), bash("npm run test all"), bash("npm publish")]));
        sessions.push(world.create(name, json!({"prompt": prompt})).await?);
    }
    let asked = world.asked(&sessions[0]).await?.1;
    for session in &sessions[1..] {
        world.asked(session).await?;
    }
    // The rule is for the requesting session only. The other approvals stay open.
    let remember = json!({"rule": "Bash(npm run test:*)"});
    let answer = json!({"approval_id": asked["id"], "approve": true, "remember": remember});
    let answered = world.call("loopback.respond", answer).await?;
    assert_eq!(answered, json!({"type": "ok", "approval_id": asked["id"]}));
    let (_, next) = world.asked(&sessions[0]).await?;
    assert_eq!(next["input"]["command"], "npm publish", "the rule allowed the call in between");
    // These rules are for every session. They resolve open approvals and decide later calls.
    let rules = json!([{"rule": "Bash(npm run test:*)", "effect": "allow"}, {"rule": "Bash(rm:*)", "effect": "deny"}]);
    let added = world.call("policy.add", json!({"rules": rules})).await?;
    assert_eq!(added["settled"].as_array().map(Vec::len), Some(2), "{added}");
    for session in &sessions[1..] {
        let (_, next) = world.asked(session).await?;
        assert_eq!(next["input"]["command"], "npm publish");
    }
    assert!(!ran(&world).iter().any(|command| command.starts_with("rm")), "{:?}", ran(&world));
    assert_eq!(ran(&world).iter().filter(|command| command.starts_with("npm run test")).count(), 5);
    let first = world.call("loopback.get", json!({"approval_id": added["settled"][0]})).await?;
    assert_eq!(first["approval"]["decision"]["right"], "rule", "{first}");
    assert!(first["approval"]["decision"]["rule"].is_u64(), "{first}");
    Ok(())
}

#[tokio::test]
async fn no_caller_can_allow_a_denied_call_even_with_an_edited_input() -> anyhow::Result<()> {
    let world = scripted().await?;
    let prompt = script(&json!([bash("git status")]));
    let rules = json!([{"rule": "Bash(git push:*)", "effect": "deny"}]);
    let session = world.create("one", json!({"prompt": prompt, "rules": rules})).await?;
    let (_, approval) = world.asked(&session).await?;
    let edited = json!({"approval_id": approval["id"], "approve": true,
                        "updated_input": {"command": "git status; git push -f"}});
    let refused = world.refused("loopback.respond", edited).await?;
    assert_eq!(kind(&refused), "denied_by_rule", "{refused}");
    let late = json!({"session_id": session, "rules": [{"rule": "Bash(git:*)", "effect": "deny"}]});
    let added = world.call("policy.add", late).await?;
    assert_eq!(added["settled"], json!([approval["id"]]));
    let ended = world.ended(&session).await?;
    assert!(ran(&world).is_empty(), "{ended}");
    Ok(())
}

#[tokio::test]
async fn rules_are_inherited_and_a_session_can_only_narrow_them() -> anyhow::Result<()> {
    let world = scripted().await?;
    let rules =
        json!([{"rule": "Bash(make:*)", "effect": "allow"}, {"rule": "Bash(make clean)", "effect": "deny"}]);
    let parent = world.create("parent", json!({"hub_tools": true, "rules": rules})).await?;
    let door = Rpc::new(world.hub.url(), &token_of(&world, &parent).await?);
    let wider = json!([{"rule": "Bash", "effect": "allow"}, {"rule": "Bash(make lint)", "effect": "ask"}]);
    let params = json!({"name": "child", "working_dir": world.work, "rules": wider});
    let child = text(&door.call("claudecode.create", params).await?["id"]);
    for (command, outcome) in [
        ("make", "allow"),
        ("make test", "allow"),
        ("make clean", "deny"),
        ("make lint", "ask"),
        ("curl evil.example", "own_course"),
        ("make; curl evil.example", "own_course"),
        ("$(echo make) clean", "ask"),
    ] {
        let call = json!({"session_id": child, "tool_name": "Bash", "input": {"command": command}});
        let tested = door.call("policy.test", call).await?;
        assert_eq!(tested["outcome"], outcome, "{command}: {tested}");
        assert_eq!(outcome == "own_course", tested["rules"] == json!([]), "{tested}");
    }
    // A session can revoke only its own rules, and cannot add rules for every session.
    let listed = door.call("policy.list", json!({"session_id": child})).await?;
    let rules = listed["rules"].as_array().context("a list")?.clone();
    assert_eq!(rules.len(), 4, "{listed}");
    let (mut forbidden, mut revoked) = (0, 0);
    for rule in &rules {
        match door.call("policy.revoke", json!({"number": rule["number"]})).await {
            Ok(_) => revoked += 1,
            Err(error) => {
                assert_eq!(error.data["type"], "rule_not_found");
                forbidden += 1;
            }
        }
    }
    assert_eq!((forbidden, revoked), (2, 2));
    let everyone = json!({"rules": [{"rule": "Bash", "effect": "deny"}]});
    assert_eq!(door.call("policy.add", everyone).await.expect_err("not for all").data["type"], "forbidden");
    Ok(())
}

#[tokio::test]
async fn rules_survive_a_kill_of_the_hub_and_can_be_revoked() -> anyhow::Result<()> {
    let mut world = scripted().await?;
    let session = world.create("one", json!({})).await?;
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs() + 3600;
    let rules = json!([{"rule": "Bash(ls)", "effect": "allow", "expires_at": soon}, {"rule": "WebFetch", "effect": "deny"}]);
    let added = world.call("policy.add", json!({"session_id": session, "rules": rules})).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    let ls = json!({"session_id": session, "tool_name": "Bash", "input": {"command": "ls"}});
    assert_eq!(world.call("policy.test", ls.clone()).await?["outcome"], "allow");
    let number = &added["rules"][0]["number"];
    world.call("policy.revoke", json!({"number": number})).await?;
    assert_eq!(world.call("policy.test", ls).await?["outcome"], "own_course");
    assert_eq!(kind(&world.refused("policy.revoke", json!({"number": number})).await?), "rule_not_found");
    assert_eq!(world.call("policy.list", json!({})).await?["rules"].as_array().map(Vec::len), Some(1));
    Ok(())
}

#[tokio::test]
async fn an_invalid_rule_is_refused_with_the_position_of_the_error() -> anyhow::Result<()> {
    let world = scripted().await?;
    for (rule, effect, at) in [
        ("Bash(", "allow", 5),
        ("", "deny", 0),
        ("mcp__*", "allow", 5),
        ("WebFetch(example.com)", "allow", 9),
    ] {
        let params = json!({"name": "x", "working_dir": world.work, "rules": [{"rule": "Bash", "effect": "ask"}, {"rule": rule, "effect": effect}]});
        let refused = world.refused("claudecode.create", params).await?;
        assert_eq!(
            (kind(&refused), &refused.data["field"], &refused.data["at"]),
            ("invalid_params", &json!("rules[1]"), &json!(at)),
            "{rule}: {refused}"
        );
    }
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    let past = json!({"rules": [{"rule": "Bash", "effect": "allow", "expires_at": 1}]});
    assert_eq!(world.refused("policy.add", past).await?.data["field"], "rules[0]");
    Ok(())
}

#[tokio::test]
async fn a_rule_resolves_its_approvals_even_if_the_hub_is_killed() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("kill");
    let mut setup = Setup::scripted();
    setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), file.display().to_string()));
    let mut world = setup.world("scripted").await?.context("the scripted agent is always available")?;
    let prompt = script(&json!([bash("make all")]));
    let one = world.create("one", json!({"prompt": prompt})).await?;
    let two = world.create("two", json!({"prompt": prompt})).await?;
    let (_, asked) = world.asked(&one).await?;
    world.asked(&two).await?;
    std::fs::write(&file, "respond: stored")?;
    let remember = json!({"rule": "Bash(make:*)", "session_id": two});
    let answer = json!({"approval_id": asked["id"], "approve": true, "remember": remember});
    assert!(world.door.call("loopback.respond", answer).await.is_err() && !file.exists(), "it died there");
    world.hub.wait().await?;
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    for session in [&one, &two] {
        assert_eq!(world.ended(session).await?["status"], "complete");
    }
    assert_eq!(ran(&world), ["make all", "make all"]);
    Ok(())
}

#[tokio::test]
async fn a_deciding_token_cannot_add_rules() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("one", json!({"prompt": script(&json!([bash("make")]))})).await?;
    let (_, asked) = world.asked(&session).await?;
    let made = world.call("token.new", json!({"name": "phone", "right": "decide"})).await?;
    let phone = Rpc::new(world.hub.url(), &text(&made["token"]));
    let answer = json!({"approval_id": asked["id"], "approve": true, "remember": {"rule": "Bash"}});
    assert_eq!(phone.call("loopback.respond", answer).await.expect_err("no rules").data["field"], "remember");
    assert!(ran(&world).is_empty());
    phone.call("loopback.respond", json!({"approval_id": asked["id"], "approve": true})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

/// Claude Code requires permission for a protected path even if the gate allowed the call. Neither a later rule nor a
/// restart may resolve that approval.
async fn no_rule_resolves_an_approval_of_the_safety_check(mut world: World) -> anyhow::Result<()> {
    let settings = world.file(".claude/settings.json");
    let write = json!({"file_path": settings, "content": "{}"});
    world.model.script("PROTECTED", vec![Step::tool("Write", write), Step::text("done")]);
    let rules = json!([{"rule": "Edit", "effect": "allow"}]);
    let session = world.create("protected", json!({"rules": rules})).await?;
    world.chat(&session, "PROTECTED: go").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["beyond_rules"], true, "{approval}");
    let again = json!({"session_id": session, "rules": [{"rule": "*", "effect": "allow"}]});
    assert_eq!(world.call("policy.add", again).await?["settled"], json!([]));
    world.hub.kill9().await?;
    world.hub.restart().await?;
    world.door = Box::new(Rpc::new(world.hub.url(), &world.hub.token()?));
    // Adding any rule checks the open approvals again. After that the recovery is also finished.
    let other = json!({"rules": [{"rule": "WebSearch", "effect": "ask"}]});
    assert_eq!(world.call("policy.add", other).await?["settled"], json!([]));
    let get = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert_eq!(get["approval"]["status"], "pending", "{get}");
    world.respond(&approval, json!({"approve": false})).await?;
    world.ended(&session).await?;
    assert!(!settings.exists());
    Ok(())
}

#[tokio::test]
async fn no_rule_resolves_an_approval_of_the_safety_check_197() -> anyhow::Result<()> {
    safety_check_on_both_channels("2.1.197", "no_rule_resolves_an_approval_of_the_safety_check_197").await
}

#[tokio::test]
async fn no_rule_resolves_an_approval_of_the_safety_check_325() -> anyhow::Result<()> {
    safety_check_on_both_channels("2.1.325", "no_rule_resolves_an_approval_of_the_safety_check_325").await
}

/// Runs the test on both channels. Over MCP, Claude Code does not give a reason for its request.
async fn safety_check_on_both_channels(version: &'static str, test: &str) -> anyhow::Result<()> {
    for channel in [Channel::Control, Channel::Relay] {
        if let Some(world) = Setup::cli(version, channel, DoorKind::Rpc).world(test).await? {
            no_rule_resolves_an_approval_of_the_safety_check(world).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_session_adds_rules_for_its_descendants_within_its_scope() -> anyhow::Result<()> {
    let world = scripted().await?;
    let scope = json!(["Bash(npm:*)"]);
    let here = script(&json!([{"say": "here"}]));
    let more = json!({"hub_tools": true, "approve_scope": scope, "prompt": here});
    let parent = world.create("parent", more).await?;
    world.ended(&parent).await?;
    let door = world.door_of(&parent).await?;
    let made = door.call("claudecode.create", json!({"name": "child", "working_dir": world.work})).await?;
    let child = text(&made["id"]);
    world.chat(&child, &script(&json!([bash("npm test"), bash("npm run x"), bash("rm y")]))).await?;
    let (_, asked) = world.asked(&child).await?;
    let answer =
        |rule: &str| json!({"approval_id": asked["id"], "approve": true, "remember": {"rule": rule}});
    for wider in ["Bash", "Bash(rm:*)", "*", "Bash(n:*)"] {
        let refused = door.call("loopback.respond", answer(wider)).await.expect_err("wider than its scope");
        assert_eq!(refused.kind.as_deref(), Some("beyond_scope"), "{wider}: {refused}");
    }
    door.call("loopback.respond", answer("Bash(npm:*)")).await?;
    // The rule allows the second call. The third needs approval, and goes to a decider that may allow it.
    let asked = until_asked(&world, &child, "rm y").await?;
    assert_eq!(asked["asked_of"], json!({"kind": "operator"}), "{asked}");
    assert_eq!(ran(&world), ["npm test", "npm run x"]);
    let rules = world.call("policy.list", json!({"session_id": child})).await?;
    assert_eq!(rules["rules"][0]["counts"], "within_scope", "{rules}");
    // The rule applies to descendants only. The session that added it still needs approval.
    world.chat(&parent, &script(&json!([bash("npm test")]))).await?;
    assert_eq!(world.asked(&parent).await?.1["input"]["command"], "npm test");
    Ok(())
}

async fn until_asked(world: &World, session: &str, command: &str) -> anyhow::Result<Value> {
    loop {
        let (_, asked) = world.asked(session).await?;
        if asked["input"]["command"] == command {
            return Ok(asked);
        }
    }
}
