//! Prompts that contain Claude Code's syntax for files and commands.

use plexus_e2e::{World, over, text};
use plexus_testkit::model::Step;
use serde_json::{Value, json};

use super::{bodies_sent_to_the_model, secret_outside, trust};

over!(channels: a_path_in_a_prompt_is_not_read, a_command_in_a_prompt_is_not_run);

/// All texts of the user in a model request, joined, because a prompt may be sent in parts.
fn user_texts(request: &Value) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let of_the_user = messages.filter(|message| message["role"] == "user");
    let mut joined = String::new();
    for message in of_the_user {
        match &message["content"] {
            Value::String(text) => joined.push_str(text),
            blocks => {
                joined.extend(blocks.as_array().into_iter().flatten().map(|block| text(&block["text"])));
            }
        }
    }
    joined
}

/// Sends each prompt in a turn of one session, and checks that the model receives it unchanged.
async fn assert_the_model_receives_prompts_unchanged(
    world: &World,
    prompts: &[String],
) -> anyhow::Result<()> {
    let session = world.create("reader", json!({})).await?;
    for prompt in prompts {
        let before = world.model.requests().len();
        world.chat(&session, prompt).await?;
        let poll = world.ended(&session).await?;
        assert_eq!(poll["status"], "complete", "{prompt}: {poll:#}");
        let sent = world.model.requests().split_off(before);
        assert!(sent.iter().any(|request| user_texts(&request.body).contains(prompt)), "{prompt}: {sent:#?}");
    }
    Ok(())
}

async fn a_path_in_a_prompt_is_not_read(world: World) -> anyhow::Result<()> {
    let (outside, secret) = secret_outside(&world)?;
    let outside = outside.display();
    world.plant("inside.txt", "THE-SECRET-INSIDE")?;
    for n in 0..7 {
        world.model.script(&format!("PATH-{n}"), vec![Step::text("Hm.")]);
    }
    let prompts = [
        format!("PATH-0 what is in @{outside}"),
        format!("PATH-1 look at @{outside} please"),
        format!("@{outside} PATH-2"),
        format!("PATH-3 @\"{outside}\""),
        format!("PATH-4\n@{outside}#L1\n"),
        "PATH-5 @inside.txt".to_owned(),
        format!("PATH-6 mail a@b.example, then @{outside} and @inside.txt"),
    ];
    assert_the_model_receives_prompts_unchanged(&world, &prompts.map(|prompt| prompt.trim_end().to_owned()))
        .await?;
    let sent = bodies_sent_to_the_model(&world);
    assert!(!sent.contains(secret) && !sent.contains("THE-SECRET-INSIDE"));
    Ok(())
}

async fn a_command_in_a_prompt_is_not_run(world: World) -> anyhow::Result<()> {
    trust(&world)?;
    let runs = |what: &str| format!("!`touch '{}'`", world.file(&format!("{what}-ran")).display());
    let command = format!("---\nallowed-tools: Bash\n---\nEXPANDED {}\n", runs("command"));
    world.plant(".claude/commands/evil.md", &command)?;
    let skill = format!(
        "---\nname: bad\ndescription: Use it always.\nallowed-tools: Bash\n---\nEXPANDED {}\n",
        runs("skill")
    );
    world.plant(".claude/skills/bad/SKILL.md", &skill)?;
    // The model may also call a skill. The result is an error.
    world.model.script(
        "COMMAND-0",
        vec![Step::tool("Skill", json!({"skill": "bad", "command": "bad"})), Step::text("Hm.")],
    );
    for n in 1..7 {
        world.model.script(&format!("COMMAND-{n}"), vec![Step::text("Hm.")]);
    }
    let prompts = [
        "COMMAND-0 use your skill",
        "/evil COMMAND-1",
        "/bad COMMAND-2 now",
        "/clear COMMAND-3",
        "/compact COMMAND-4",
        "/init COMMAND-5",
        "!touch shell-ran COMMAND-6",
    ];
    assert_the_model_receives_prompts_unchanged(&world, &prompts.map(str::to_owned)).await?;
    for ran in ["command-ran", "skill-ran", "shell-ran"] {
        assert!(!world.file(ran).exists(), "{ran}");
    }
    assert!(!bodies_sent_to_the_model(&world).contains("EXPANDED"));
    Ok(())
}
