//! Methods for the console: the audit log read backwards, a preview of a rule, the context of an approval, and decisions about
//! similar calls.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, script, text};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

async fn scripted() -> anyhow::Result<World> {
    Setup::scripted().world("scripted").await?.context("the scripted agent is always available")
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// A session with an open approval for this command.
async fn asking(world: &World, name: &str, command: &str) -> anyhow::Result<(String, Value)> {
    let session = world.create(name, json!({"prompt": script(&json!([bash(command)]))})).await?;
    let (_, approval) = world.asked(&session).await?;
    Ok((session, approval))
}

/// A client with a token of a session.
pub(crate) async fn client_of(world: &World, session: &str) -> anyhow::Result<Rpc> {
    let given = world.call("loopback.configure", json!({"session_id": session})).await?;
    let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    Ok(Rpc::new(world.hub.url(), header.trim_start_matches("Bearer ")))
}

#[tokio::test]
async fn the_audit_log_is_read_backwards() -> anyhow::Result<()> {
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

#[tokio::test]
async fn a_preview_lists_the_approvals_that_a_rule_resolves_and_changes_nothing() -> anyhow::Result<()> {
    let world = scripted().await?;
    let top = world.create("top", json!({"hub_tools": true, "approve_scope": ["Bash(npm:*)"]})).await?;
    let mut asked = Vec::new();
    let parent = client_of(&world, &top).await?;
    for (name, command) in
        [("one", "npm run test"), ("two", "npm run test all"), ("three", "npm publish"), ("four", "rm -r x")]
    {
        let prompt = script(&json!([bash(command)]));
        let made = json!({"name": name, "working_dir": world.work, "prompt": prompt});
        let session = text(&parent.call("claudecode.create", made).await?["id"]);
        asked.push(world.asked(&session).await?.1["id"].clone());
    }
    let previewed = |rule: &str, more: Value| {
        let mut params = json!({"approval_id": asked[0], "rule": rule});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        params
    };
    let rule = "Bash(npm run test:*)";
    // A rule for the requesting session resolves no other approval. A rule for the whole tree does.
    let own = world.call("policy.preview", previewed(rule, json!({}))).await?;
    assert_eq!(own, json!({"type": "ok", "rule": rule, "covers": true, "settles": []}));
    let wide = json!({"session_id": top});
    let all = world.call("policy.preview", previewed(rule, wide.clone())).await?;
    assert_eq!(all, json!({"type": "ok", "rule": rule, "covers": true, "settles": [asked[1]]}));
    let beside = world.call("policy.preview", previewed("Bash(npm publish)", wide.clone())).await?;
    assert_eq!((&beside["covers"], &beside["settles"]), (&json!(false), &json!([asked[2]])));
    let denying = json!({"session_id": top, "effect": "deny"});
    let denied = world.call("policy.preview", previewed("Bash(npm run:*)", denying)).await?;
    assert_eq!((&denied["covers"], &denied["settles"]), (&json!(true), &json!([asked[1]])));
    let path = world.call("policy.preview", previewed("Edit(src/**)", json!({}))).await?;
    assert!(text(&path["rule"]).contains(&format!("{}/src", world.work.display())), "{path}");

    let unread = world.refused("policy.preview", previewed("Bash(npm", json!({}))).await?;
    assert_eq!((unread.kind.as_deref(), &unread.data["field"]), (Some("invalid_params"), &json!("rule")));
    assert!(unread.data["at"].is_u64(), "{unread}");
    let phone = world.call("token.new", json!({"name": "phone", "right": "decide"})).await?;
    let phone = Rpc::new(world.hub.url(), &text(&phone["token"]));
    let refused = phone.call("policy.preview", previewed(rule, json!({}))).await.expect_err("makes no rules");
    assert_eq!(refused.data["type"], "forbidden");
    // A session previews a rule within its scope, and gets an error beyond it.
    let mine = parent.call("policy.preview", previewed(rule, json!({}))).await?;
    assert_eq!(mine["covers"], true, "{mine}");
    let refused = parent.call("policy.preview", previewed("Bash", json!({}))).await.expect_err("beyond it");
    assert_eq!((&refused.data["type"], &refused.data["field"]), (&json!("beyond_scope"), &json!("rule")));

    assert_eq!(world.call("policy.list", json!({})).await?["rules"], json!([]), "nothing was created");
    assert_eq!(
        world.call("loopback.pending", json!({})).await?["approvals"].as_array().map(Vec::len),
        Some(4)
    );
    let remember = json!({"rule": rule, "session_id": top});
    let answer = json!({"approval_id": asked[0], "approve": true, "remember": remember});
    let answered = world.call("loopback.respond", answer).await?;
    assert_eq!(answered["settled"], all["settles"], "the text is unchanged");
    let late = world.call("policy.preview", previewed(rule, wide)).await?;
    let ended = json!({"type": "already_resolved", "approval_id": asked[0], "status": "allowed"});
    assert_eq!(late, ended);
    Ok(())
}

#[tokio::test]
async fn an_approval_shows_the_prompt_and_decisions_about_similar_calls() -> anyhow::Result<()> {
    let world = scripted().await?;
    for (name, command, answer) in [
        ("push", "git push origin main", json!({"approve": false, "message": "not on a Friday"})),
        ("same", "git push", json!({"approve": true})),
        ("edited", "git push -f", json!({"approve": true, "updated_input": {"command": "git push"}})),
        ("other", "git status", json!({"approve": true})),
    ] {
        let (session, approval) = asking(&world, name, command).await?;
        world.respond(&approval, answer).await?;
        world.ended(&session).await?;
    }
    let top = world.create("top", json!({"hub_tools": true})).await?;
    let parent = client_of(&world, &top).await?;
    let prompt = script(&json!([bash("git push")]));
    let made = json!({"name": "below", "working_dir": world.work, "prompt": prompt, "hub_tools": true});
    let below = text(&parent.call("claudecode.create", made).await?["id"]);
    let (_, approval) = world.asked(&below).await?;
    let (plain, full) =
        (json!({"approval_id": approval["id"]}), json!({"approval_id": approval["id"], "context": true}));
    let got = world.call("loopback.get", plain).await?;
    assert!(got["purpose"].is_null() && got["like"].is_null(), "only if it is configured: {got}");

    let got = world.call("loopback.get", full.clone()).await?;
    let path = json!([{"id": top, "name": "top"}, {"id": below, "name": "below"}]);
    assert_eq!(got["purpose"], json!({"path": path, "turn": 1, "prompt": prompt}));
    let like: Vec<Value> = got["like"].as_array().context("a list")?.clone();
    let seen: Vec<Value> =
        like.iter().map(|one| json!([one["status"], one["same"], one["summary"], one["edited"]])).collect();
    let expected = [
        json!(["allowed", false, "git push -f", true]),
        json!(["allowed", true, "git push", null]),
        json!(["denied", false, "git push origin main", null]),
    ];
    assert_eq!(seen, expected, "newest first, and only similar calls");
    assert_eq!(
        (&like[2]["message"], &like[2]["by"]),
        (&json!("not on a Friday"), &json!({"kind": "operator"}))
    );

    // A deciding token sees the same. A session sees only its own tree.
    let phone = world.call("token.new", json!({"name": "phone", "right": "decide"})).await?;
    let phone = Rpc::new(world.hub.url(), &text(&phone["token"])).call("loopback.get", full.clone()).await?;
    assert_eq!((&phone["purpose"], &phone["like"]), (&got["purpose"], &got["like"]));
    let mother = parent.call("loopback.get", full.clone()).await?;
    assert_eq!(
        (&mother["purpose"]["path"], &mother["like"]),
        (&path, &json!([])),
        "strangers' calls are not shown"
    );
    let itself = client_of(&world, &below).await?.call("loopback.get", full).await?;
    assert_eq!(itself["purpose"]["path"], json!([{"id": below, "name": "below"}]));
    assert_eq!(itself["like"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_long_prompt_is_truncated_and_decisions_by_rules_are_similar_too() -> anyhow::Result<()> {
    let world = scripted().await?;
    let rules = json!([{"rule": "Bash(make test)", "effect": "deny"}]);
    let session = world.create("ruled", json!({"rules": rules})).await?;
    let words = json!({"say": "x".repeat(9_000)});
    let prompt = script(&json!([bash("make test"), bash("make all"), words]));
    world.chat(&session, &prompt).await?;
    let (_, approval) = world.asked(&session).await?;
    let got = world.call("loopback.get", json!({"approval_id": approval["id"], "context": true})).await?;
    let shown = text(&got["purpose"]["prompt"]);
    assert!(
        got["purpose"]["truncated"] == true && shown.len() == 8192 && prompt.starts_with(&shown),
        "{got}"
    );
    assert_eq!(got["like"], json!([]), "another command is not similar");
    world.respond(&approval, json!({"approve": false})).await?;
    world.ended(&session).await?;
    world.chat(&session, &script(&json!([bash("make test --fast")]))).await?;
    let (_, approval) = world.asked(&session).await?;
    let got = world.call("loopback.get", json!({"approval_id": approval["id"], "context": true})).await?;
    let like = &got["like"][0];
    assert_eq!((&like["status"], &like["by"]), (&json!("denied"), &json!({"kind": "hub"})), "{got}");
    assert!(text(&like["message"]).contains("rule 1"), "{got}");
    Ok(())
}

#[tokio::test]
async fn people_get_the_file_of_an_edit_and_agents_do_not() -> anyhow::Result<()> {
    let world = scripted().await?;
    let top = world.create("top", json!({"hub_tools": true, "approve_scope": ["*"]})).await?;
    let parent = client_of(&world, &top).await?;
    let phone = world.call("token.new", json!({"name": "phone", "right": "decide"})).await?;
    let phone = Rpc::new(world.hub.url(), &text(&phone["token"]));
    std::fs::write(world.work.join("old.txt"), "old\n")?;
    std::fs::write(world.work.join("binary"), [0xff, 0xfe])?;
    std::os::unix::fs::symlink(world.hub.data_dir().join("operator.token"), world.work.join("link"))?;
    for (name, state) in
        [("old.txt", "text"), ("new.txt", "missing"), ("binary", "unavailable"), ("link", "missing")]
    {
        let path = world.work.join(name);
        let write = json!({"tool": "Write", "input": {"file_path": path, "content": "new\n"}});
        let session = name.replace('.', "-");
        let made = json!({"name": session, "working_dir": world.work, "prompt": script(&json!([write]))});
        let session = text(&parent.call("claudecode.create", made).await?["id"]);
        let asked = json!({"approval_id": world.asked(&session).await?.1["id"], "context": true});
        let file = world.call("loopback.get", asked.clone()).await?["file"].clone();
        assert_eq!((&file["state"], &file["path"]), (&json!(state), &json!(path)), "{file}");
        if state == "text" {
            assert_eq!(file["text"], "old\n");
        }
        assert_eq!(phone.call("loopback.get", asked.clone()).await?["file"], file);
        let seen = parent.call("loopback.get", asked).await?;
        assert_eq!((&seen["file"], seen["purpose"].is_object()), (&Value::Null, true), "{seen}");
    }
    Ok(())
}
