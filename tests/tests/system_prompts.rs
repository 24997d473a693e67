//! System prompts with real CLIs: what the model receives as its system prompt, also after the process was replaced.

use plexus_e2e::{World, over};
use plexus_testkit::clean_env;
use plexus_testkit::model::Step;
use serde_json::{Value, json};

over!(clis:
    an_appended_system_prompt_follows_claude_codes_own,
    an_appended_system_prompt_follows_a_replaced_one,
    an_appended_system_prompt_reaches_an_adopted_conversation
);

/// Words of Claude Code's own system prompt.
const OWN: &str = "authorized security testing";
const APPENDED: &str = "--APPENDED: answer in \"German\", größer";

/// The system prompt of the last model request for this marker.
async fn system_prompt(world: &World, session: &str, marker: &str) -> anyhow::Result<String> {
    world.chat(session, marker).await?;
    let ended = world.ended(session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let request = world.model.requests_for(marker).pop().unwrap_or_default();
    let blocks = request["system"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    Ok(texts.join("\n"))
}

async fn an_appended_system_prompt_follows_claude_codes_own(mut world: World) -> anyhow::Result<()> {
    for marker in ["FIRST", "SECOND", "THIRD"] {
        world.model.script(marker, vec![Step::text("Ja.")]);
    }
    let session = world.create("appended", json!({"append_system_prompt": APPENDED})).await?;
    let expect = |prompt: &str| {
        let (own, appended) = (prompt.find(OWN), prompt.find(APPENDED));
        assert!(own.is_some() && appended.is_some() && own < appended, "{prompt}");
    };
    expect(&system_prompt(&world, &session, "FIRST").await?);
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    expect(&system_prompt(&world, &session, "SECOND").await?);
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    world.hub.kill9().await?;
    world.hub.restart().await?;
    expect(&system_prompt(&world, &session, "THIRD").await?);
    Ok(())
}

async fn an_appended_system_prompt_follows_a_replaced_one(world: World) -> anyhow::Result<()> {
    world.model.script("BOTH", vec![Step::text("Ja.")]);
    let prompts = json!({"system_prompt": "REPLACED", "append_system_prompt": APPENDED});
    let session = world.create("both", prompts).await?;
    let prompt = system_prompt(&world, &session, "BOTH").await?;
    assert!(!prompt.contains(OWN), "{prompt}");
    let (replaced, appended) = (prompt.find("REPLACED"), prompt.find(APPENDED));
    assert!(replaced.is_some() && appended.is_some() && replaced < appended, "{prompt}");
    Ok(())
}

/// 2.1.325 records the system prompt in the transcript and uses the recorded one when it resumes.
async fn an_appended_system_prompt_reaches_an_adopted_conversation(world: World) -> anyhow::Result<()> {
    for marker in ["BARE", "ADOPTED", "RESUMED"] {
        world.model.script(marker, vec![Step::text("Ja.")]);
    }
    let claude = plexus_testkit::claude(world.setup.cli.unwrap_or_default()).unwrap_or_default();
    let mut command = tokio::process::Command::new(claude);
    command.args(["-p", "BARE", "--output-format", "json"]).stdin(std::process::Stdio::null());
    command.env_clear().envs(clean_env(&world.home, &world.model.url())).current_dir(&world.work);
    let result: Value = serde_json::from_slice(&command.output().await?.stdout)?;
    let params = json!({"resume": result["session_id"], "append_system_prompt": APPENDED});
    let session = world.create("adopted", params).await?;
    for marker in ["ADOPTED", "RESUMED"] {
        let prompt = system_prompt(&world, &session, marker).await?;
        assert!(prompt.contains(OWN) && prompt.contains(APPENDED), "{marker}: {prompt}");
        world.call("claudecode.stop", json!({"session_id": session})).await?;
    }
    Ok(())
}
