//! `plexus run` at a real terminal with a real Claude Code: texts as they come, a question answered by typing, and an input
//! changed in an editor.

use plexus_e2e::{Channel, DoorKind, Setup};
use plexus_testkit::model::{Step, Tool};
use plexus_testkit::pty::Pty;
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
