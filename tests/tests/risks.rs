//! The risk marks of an approval and the agent's own reason, with real children. The table of all marks is a test of `plexus-policy`.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, over, script, text};
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::rpc::{Door as _, McpClient};
use serde_json::{Value, json};

over!(every_channel:
    a_force_push_is_marked_and_the_agents_reason_is_shown,
    a_subagents_call_is_never_explained_by_the_text_of_its_lead,
);
over!(versions: a_read_of_credentials_is_marked);

fn bash(said: &str, command: &str) -> Step {
    let input = json!({"command": command, "description": "a step"});
    Step::text_and_tools(said, vec![Tool::new("Bash", input)])
}

fn kinds(approval: &Value) -> Vec<String> {
    approval["risks"].as_array().into_iter().flatten().map(|mark| text(&mark["kind"])).collect()
}

async fn context(world: &World, approval: &Value) -> anyhow::Result<Value> {
    let got = world.call("loopback.get", json!({"approval_id": approval["id"], "context": true})).await?;
    Ok(got["approval"].clone())
}

async fn a_force_push_is_marked_and_the_agents_reason_is_shown(world: World) -> anyhow::Result<()> {
    let said = "The remote has diverged. I overwrite it, because my branch is newer.";
    let steps = vec![
        bash(said, "git push --force origin main"),
        Step::tool("Bash", json!({"command": "git push", "description": "another try"})),
        Step::text("Done."),
    ];
    world.model.script("PUSH-IT", steps);
    let session = world.create("pusher", json!({})).await?;
    world.chat(&session, "PUSH-IT").await?;
    let (_, approval) = world.asked(&session).await?;
    let mark = json!({"kind": "force_push", "reason": "`git push --force origin main` overwrites the remote branch"});
    let listed = world.call("loopback.pending", json!({})).await?["approvals"][0].clone();
    for seen in [&approval, &listed, &context(&world, &approval).await?] {
        assert_eq!((&seen["risks"], &seen["said"]), (&json!([mark]), &json!(said)), "{seen:#}");
    }
    world.respond(&approval, json!({"approve": false, "message": "never force"})).await?;

    // The next push is harmless by itself, and similar to the one that was denied.
    let (_, second) = world.asked(&session).await?;
    assert_eq!((&second["risks"], &second["said"]), (&json!([]), &json!(said)), "{second:#}");
    let second = context(&world, &second).await?;
    let [mark] = second["risks"].as_array().context("marks")?.as_slice() else {
        panic!("one mark: {second:#}")
    };
    assert_eq!(mark["kind"], "denied_before");
    assert_eq!(mark["reason"], "a similar call was denied before: `git push --force origin main`");
    assert_eq!(
        (&mark["denial"]["by"]["kind"], &mark["denial"]["message"]),
        (&json!("operator"), &json!("never force"))
    );
    assert!(mark["denial"]["at"].as_u64().is_some_and(|at| at > 0));
    world.respond(&second, json!({"approve": false})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

async fn a_subagents_call_is_never_explained_by_the_text_of_its_lead(world: World) -> anyhow::Result<()> {
    let task = json!({
        "description": "helper", "prompt": "SUB-TASK: make it", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let lead = Step::text_and_tools("I delegate this.", vec![Tool::new("Agent", task)]);
    world.model.script("LEAD", vec![lead, Step::text("Led.")]);
    world.model.script("SUB-TASK", vec![bash("I clean up first.", "rm -rf build"), Step::text("Sub done.")]);
    let session = world.create("lead", json!({})).await?;
    world.chat(&session, "LEAD the way").await?;
    loop {
        let (_, approval) = world.asked(&session).await?;
        if approval["tool_name"] == "Bash" {
            // Claude Code does not report what a sub-agent writes, unless it is asked to.
            assert_eq!(
                (&approval["said"], kinds(&approval)),
                (&Value::Null, vec!["recursive_delete".to_owned()])
            );
            world.allow(&approval).await?;
            break;
        }
        assert_eq!(approval["said"], "I delegate this.", "{approval:#}");
        world.allow(&approval).await?;
    }
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

async fn a_read_of_credentials_is_marked(world: World) -> anyhow::Result<()> {
    world.plant(".env", "KEY=1\n")?;
    let path = world.file(".env");
    world.model.script(
        "READ-IT",
        vec![
            Step::text_and_tools("I need the key.", vec![Tool::new("Read", json!({"file_path": path}))]),
            Step::text("Done."),
        ],
    );
    let session = world.create("reader", json!({"policy": "ask_all"})).await?;
    world.chat(&session, "READ-IT").await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(
        (kinds(&approval), &approval["said"]),
        (vec!["credentials".to_owned()], &json!("I need the key.")),
        "{approval:#}"
    );
    assert!(text(&approval["risks"][0]["reason"]).contains("usually holds secrets"), "{approval:#}");
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete", "a mark denies nothing");
    Ok(())
}

#[tokio::test]
async fn an_agent_gets_the_marks_only_on_request() -> anyhow::Result<()> {
    let world = Setup::scripted()
        .world("marks for agents")
        .await?
        .context("the scripted agent is always available")?;
    let parent = McpClient::connect(world.hub.url(), &world.hub.token()?).await?;
    let steps = json!([{"tool": "Bash", "input": {"command": "rm -rf build"}}]);
    parent
        .call(
            "claudecode.create",
            json!({"name": "child", "working_dir": world.work, "prompt": script(&steps)}),
        )
        .await?;
    let news = parent.call("loopback.wait", json!({"cursor": 0, "timeout_ms": 60_000})).await?;
    let approval = &news["approvals"][0];
    assert_eq!((&approval["risks"], &approval["said"]), (&Value::Null, &Value::Null), "{news}");
    assert_eq!((&approval["digest"], &approval["input"]["command"]), (&Value::Null, &json!("rm -rf build")));
    let got = parent.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert!(got["approval"]["digest"].is_string(), "{got}");
    assert_eq!(kinds(&got["approval"]), ["recursive_delete"], "{got}");
    Ok(())
}
