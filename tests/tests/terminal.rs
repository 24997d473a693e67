//! `plexus run` at a real terminal with a real Claude Code: texts as they come, a question answered by typing, and an input
//! changed in an editor.

use plexus_e2e::{Channel, DoorKind, Setup, script, until};
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::pty::{CTRL_D, Pty};
use plexus_testkit::rpc::Door as _;
use plexus_testkit::{binaries, clean_env};
use serde_json::json;

async fn at_the_terminal(version: &'static str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("at_the_terminal").await? else { return Ok(()) };
    let steps = vec![
        Step::text_and_tools(
            "I will make a file.",
            vec![Tool::new("Bash", json!({"command": "touch made", "description": "Make a file"}))],
        ),
        Step::tool("Bash", json!({"command": "touch other", "description": "Make another"})),
        Step::text("That is all."),
    ];
    world.model.script("MAKE-FILES", steps);
    let mut env = clean_env(&world.home, &world.model.url());
    env.push(("TERM".to_owned(), "xterm".to_owned()));
    env.push(("EDITOR".to_owned(), "sed -i s/other/changed/".to_owned()));
    env.push(("PLEXUS_DATA_DIR".to_owned(), world.hub.data_dir().display().to_string()));
    let mut run = Pty::start(&binaries::plexus()?, &["run", "--name", "a", "MAKE-FILES"], &world.work, &env)?;
    run.expect("I will make a file.").await?;
    run.expect("touch made").await?;
    run.expect("Allow it?").await?;
    assert!(!world.file("made").exists(), "not before it is answered");
    run.press("y\n")?;
    run.expect("touch other").await?;
    run.expect("Allow it?").await?;
    run.press("e\n")?;
    run.expect("* complete").await?;
    assert_eq!(run.end().await?, 0, "{}", run.shown());
    assert_eq!(run.shown().matches("That is all.").count(), 1, "in pieces, not once more: {}", run.shown());
    assert!(world.file("made").exists() && world.file("changed").exists() && !world.file("other").exists());
    Ok(())
}

#[tokio::test]
async fn a_person_answers_at_the_terminal_cli_197() -> anyhow::Result<()> {
    at_the_terminal("2.1.197").await
}

#[tokio::test]
async fn a_person_answers_at_the_terminal_cli_325() -> anyhow::Result<()> {
    at_the_terminal("2.1.325").await
}

/// A question of a session below, once it has come up to the operator, is asked of whoever is attached above.
#[tokio::test]
async fn whoever_is_attached_answers_for_those_below() -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().world("below").await? else { return Ok(()) };
    let waits = script(&json!([{"wait_file": world.file("go")}]));
    let boss = world.create("boss", json!({"hub_tools": true, "prompt": waits})).await?;
    let env = [
        ("HOME", world.home.display().to_string()),
        ("PATH", std::env::var("PATH")?),
        ("PLEXUS_DATA_DIR", world.hub.data_dir().display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let mut attached = Pty::start(&binaries::plexus()?, &["attach", "boss"], &world.work, &env)?;
    attached.expect("[running").await?;
    let door = world.door_of(&boss).await?;
    let asks = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}]));
    door.call("claudecode.create", json!({"name": "kid", "working_dir": world.work, "prompt": asks})).await?;
    attached.expect("kid asks to use Bash").await?;
    attached.expect("Allow it?").await?;
    attached.press("y\n")?;
    until("the call of the one below runs", || world.file("made").exists()).await?;
    std::fs::write(world.file("go"), "")?;
    attached.expect("* complete").await?;
    attached.expect("boss> ").await?;
    attached.press(CTRL_D)?;
    assert_eq!(attached.end().await?, 0, "{}", attached.shown());
    Ok(())
}

/// What is over is shown as such: whoever attaches and types at once begins the next turn, and nothing is taken for a word to the one before.
#[tokio::test]
async fn a_line_typed_before_the_prompt_is_there_begins_the_next_turn() -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().world("typed_ahead").await? else { return Ok(()) };
    let said = script(&json!([{"say": "The first."}]));
    let session = world.create("early", json!({"prompt": said})).await?;
    world.ended(&session).await?;
    let env = [
        ("HOME", world.home.display().to_string()),
        ("PATH", std::env::var("PATH")?),
        ("PLEXUS_DATA_DIR", world.hub.data_dir().display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let mut attached = Pty::start(&binaries::plexus()?, &["attach", "early"], &world.work, &env)?;
    attached.press(&format!("{}\n", script(&json!([{"say": "The second."}]))))?;
    attached.expect("The first.").await?;
    attached.expect("* complete").await?;
    attached.expect("The second.").await?;
    attached.expect("* complete").await?;
    attached.expect("early> ").await?;
    assert!(!attached.shown().contains("no_turn"), "{}", attached.shown());
    attached.press(CTRL_D)?;
    assert_eq!(attached.end().await?, 0, "{}", attached.shown());
    Ok(())
}
