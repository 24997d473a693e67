//! The user's Claude Code settings: children get the listed settings, as they were when the hub or the operator last accepted them.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, script, text};
use plexus_testkit::executable;
use plexus_testkit::model::Step;
use serde_json::{Value, json};

use super::{bash, get};

over!(clis: a_child_gets_only_the_listed_settings_of_the_user);

fn write(world: &World, settings: &Value) -> anyhow::Result<()> {
    std::fs::create_dir_all(world.home.join(".claude"))?;
    Ok(std::fs::write(world.home.join(".claude/settings.json"), settings.to_string())?)
}

async fn accept(world: &World) -> anyhow::Result<Value> {
    world.call("claudecode.user_settings", json!({"accept": true})).await
}

async fn a_child_gets_only_the_listed_settings_of_the_user(world: World) -> anyhow::Result<()> {
    let helper = world.home.join("key.sh");
    executable::write(&helper, "#!/bin/sh\necho THE-USERS-KEY\n")?;
    let ran = format!("touch '{}'", world.file("hook-ran").display());
    let hook = json!([{"matcher": "*", "hooks": [{"type": "command", "command": ran}]}]);
    write(
        &world,
        &json!({
            "model": "the-users-model",
            "apiKeyHelper": helper,
            "env": {"ANTHROPIC_CUSTOM_HEADERS": "X-From-User: yes", "THE_USERS_OTHER": "1"},
            "permissions": {"allow": ["Bash"], "deny": ["Bash(touch denied.txt)", "Read(./.env)"], "defaultMode": "acceptEdits"},
            "hooks": {"SessionStart": hook, "PreToolUse": hook},
            "statusLine": {"type": "command", "command": ran},
        }),
    )?;
    let shown = accept(&world).await?;
    let loads = json!(["model", "apiKeyHelper", "env.ANTHROPIC_CUSTOM_HEADERS", "permissions.deny"]);
    assert_eq!((&shown["loads"], &shown["changed"]), (&loads, &json!([])), "{shown:#}");
    assert!(!shown.to_string().contains("X-From-User"), "{shown}");

    std::fs::write(world.file(".env"), "THE-SECRET-IN-ENV")?;
    let steps = vec![
        bash("touch denied.txt"),
        Step::tool("Read", json!({"file_path": world.file(".env")})),
        bash("echo ${THE_USERS_OTHER:-unset} > other.txt"),
        Step::text("Done."),
    ];
    world.model.script("USER", steps);
    // With `-p`, a key in the environment overrides the helper.
    let session = world.create("users", json!({"env": {"ANTHROPIC_API_KEY": ""}})).await?;
    world.chat(&session, "USER").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(
        text(&approval["input"]["command"]).starts_with("echo"),
        "calls that the user's settings allow still need approval"
    );
    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(!world.file("denied.txt").exists() && !world.file("hook-ran").exists());
    assert!(!events(&poll, "tool_result")[1].to_string().contains("THE-SECRET-IN-ENV"), "{poll:#}");
    assert_eq!(std::fs::read_to_string(world.file("other.txt"))?.trim(), "unset");

    let mut requests = world.model.requests();
    requests.retain(|request| request.marker.as_deref() == Some("USER"));
    let first = requests.first().context("a request")?;
    assert_eq!(first.body["model"], "the-users-model");
    assert_eq!(first.headers.get("x-from-user").map(String::as_str), Some("yes"));
    let keys = format!("{:?} {:?}", first.headers.get("x-api-key"), first.headers.get("authorization"));
    assert!(keys.contains("THE-USERS-KEY"), "{keys}");
    assert_eq!(get(&world, &session).await?["loads"], json!({"user_settings": loads}));
    Ok(())
}

async fn scripted(config: &str) -> anyhow::Result<World> {
    let setup = Setup::scripted().with_config(config);
    setup.world("loading").await?.context("the scripted agent is always available")
}

/// The settings that the latest run of a session was started with.
fn launched_with(world: &World, session: &str, run: u32) -> anyhow::Result<Value> {
    let launch: Value =
        serde_json::from_slice(&std::fs::read(world.run_dir(session, run).join("launch.json"))?)?;
    let args: Vec<String> = serde_json::from_value(launch["args"].clone())?;
    let at = args.iter().position(|arg| arg == "--settings").context("settings")?;
    Ok(serde_json::from_str(&args[at + 1])?)
}

async fn turn(world: &World, session: &str) -> anyhow::Result<Value> {
    world.chat(session, &script(&json!([{"say": "here"}]))).await?;
    world.ended(session).await
}

#[tokio::test]
async fn changed_settings_apply_only_as_denials_until_they_are_accepted() -> anyhow::Result<()> {
    let mut world = scripted("").await?;
    write(&world, &json!({"apiKeyHelper": "the-users", "permissions": {"deny": ["Bash(rm:*)"]}}))?;
    accept(&world).await?;
    let session = world.create("writer", json!({})).await?;
    turn(&world, &session).await?;
    assert_eq!(launched_with(&world, &session, 1)?["apiKeyHelper"], "the-users");

    write(&world, &json!({"apiKeyHelper": "somebody-elses", "permissions": {"deny": ["WebFetch"]}}))?;
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    turn(&world, &session).await?;
    assert_eq!(launched_with(&world, &session, 2)?["apiKeyHelper"], "the-users");
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    turn(&world, &session).await?;
    let settings = launched_with(&world, &session, 3)?;
    assert_eq!(
        (&settings["apiKeyHelper"], &settings["disableAllHooks"]),
        (&json!("the-users"), &json!(true))
    );
    let shown = world.call("claudecode.user_settings", json!({})).await?;
    assert_eq!(shown["changed"], json!(["apiKeyHelper", "permissions.deny"]), "{shown:#}");
    let says = async |tool: &str, input: Value| -> anyhow::Result<String> {
        let call = json!({"session_id": session, "tool_name": tool, "input": input});
        Ok(text(&world.call("policy.test", call).await?["outcome"]))
    };
    let (rm, fetch) = (json!({"command": "rm -r x"}), json!({"url": "https://a.example/"}));
    assert_eq!(says("Bash", rm.clone()).await?, "deny", "the denial still applies");
    assert_eq!(says("WebFetch", fetch.clone()).await?, "deny", "other denials still apply");
    accept(&world).await?;
    assert_ne!(says("Bash", rm).await?, "deny", "the operator has the last word");
    assert_eq!(says("WebFetch", fetch).await?, "deny");
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    turn(&world, &session).await?;
    assert_eq!(launched_with(&world, &session, 4)?["apiKeyHelper"], "somebody-elses");
    Ok(())
}

#[tokio::test]
async fn unreadable_settings_start_no_child_and_allow_nothing() -> anyhow::Result<()> {
    let mut world = scripted("").await?;
    let step = json!({"tool": "Bash", "input": {"command": "touch made.txt"}});
    let prompt = script(&json!([{"say": "up"}, {"wait_file": world.file("go")}, step, {"say": "done"}]));
    let running = world.create("running", json!({"policy": "allow_all", "prompt": prompt})).await?;
    world.poll_until(&running, |poll| !events(poll, "content").is_empty()).await?;
    let session = world.create("held", json!({})).await?;
    write(&world, &json!({"permissions": {"deny": ["Bash(rm:*)", "Bash("]}}))?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    let poll = turn(&world, &session).await?;
    let error = events(&poll, "error")[0].clone();
    assert_eq!(
        (&poll["status"], &error["reason"]),
        (&json!("failed"), &json!("bad_user_settings")),
        "{poll:#}"
    );
    let message = text(&error["message"]);
    assert!(message.contains("settings.json") && message.contains("`permissions.deny[1]`"), "{message}");
    std::fs::write(world.file("go"), "")?;
    world.ended(&running).await?;
    assert!(world.ran().is_empty(), "a call of an agent that runs is denied: {:?}", world.ran());
    for params in [json!({}), json!({"accept": true})] {
        let refused = world.refused("claudecode.user_settings", params).await?;
        assert_eq!(refused.kind.as_deref(), Some("bad_user_settings"), "{refused}");
    }
    write(&world, &json!({"permissions": {"deny": ["Bash(rm:*)"]}}))?;
    accept(&world).await?;
    assert_eq!(turn(&world, &session).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn the_users_settings_are_not_read_if_they_are_disabled() -> anyhow::Result<()> {
    let mut world = scripted("user_settings = false").await?;
    std::fs::create_dir_all(world.home.join(".claude"))?;
    std::fs::write(world.home.join(".claude/settings.json"), "{")?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    let shown = accept(&world).await?;
    assert_eq!(shown, json!({"type": "ok", "loads": [], "deny": [], "changed": []}));
    let session = world.create("plain", json!({})).await?;
    assert_eq!(turn(&world, &session).await?["status"], "complete");
    Ok(())
}
