//! `plexus run` at a real terminal with a real Claude Code: live text, an approval answered by typing, and an input edited while a
//! process of an agent looks for the draft.

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
    assert!(!world.file("made").exists(), "it ran before it was answered");
    run.press("y\n")?;
    run.expect("touch other").await?;
    run.expect("Allow it?").await?;
    run.press("e\n")?;
    run.expect("+ touch changed").await?;
    run.expect("Allow it with this input? y, or n to cancel the edit: ").await?;
    assert!(!world.file("changed").exists(), "an edit alone answers nothing");
    run.press("y\n")?;
    run.expect("Allowed: Bash touch changed (edited, a)").await?;
    run.expect("* complete").await?;
    assert_eq!(run.end().await?, 0, "{}", run.shown());
    assert_eq!(
        run.shown().matches("That is all.\r\n").count(),
        1,
        "the text is a line once; only the status line has it, too: {}",
        run.shown()
    );
    assert!(world.file("made").exists() && world.file("changed").exists() && !world.file("other").exists());
    Ok(())
}

/// A retry and a rejected login of a real Claude Code, as `plexus run` shows them.
async fn model_errors_are_explained(version: &'static str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("model_errors_are_explained").await? else { return Ok(()) };
    world.model.script("BUSY-MODEL", vec![Step::failing(1, 529, 1, Step::text("at last"))]);
    world.model.script("NO-LOGIN", vec![Step::error(401, "authentication_error", "invalid x-api-key")]);
    let mut env = clean_env(&world.home, &world.model.url());
    env.push(("TERM".to_owned(), "xterm".to_owned()));
    env.push(("PLEXUS_DATA_DIR".to_owned(), world.hub.data_dir().display().to_string()));
    let plexus = binaries::plexus()?;
    let mut busy = Pty::start(&plexus, &["run", "--name", "a", "BUSY-MODEL"], &world.work, &env)?;
    busy.expect("! The model is overloaded (HTTP 529). Retry 1 of ").await?;
    busy.expect(" in ").await?;
    busy.expect("at last").await?;
    assert_eq!(busy.end().await?, 0, "{}", busy.shown());
    let mut rejected = Pty::start(&plexus, &["run", "--name", "b", "NO-LOGIN"], &world.work, &env)?;
    rejected.expect("! Run `claude` and log in with /login").await?;
    assert_eq!(rejected.end().await?, 1, "{}", rejected.shown());
    Ok(())
}

#[tokio::test]
async fn model_errors_are_explained_cli_197() -> anyhow::Result<()> {
    model_errors_are_explained("2.1.197").await
}

#[tokio::test]
async fn model_errors_are_explained_cli_325() -> anyhow::Result<()> {
    model_errors_are_explained("2.1.325").await
}

/// A file of the prompt, commands typed in `plexus attach`, and words that only look like commands.
async fn files_and_commands_at_the_terminal(version: &'static str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("files_and_commands_at_the_terminal").await? else { return Ok(()) };
    world.model.script("SEE-IT", (0..8).map(|_| Step::text("<summary>Seen.</summary>")).collect());
    std::fs::write(world.file("shot.png"), b"\x89PNG\r\n\x1a\nrest")?;
    let mut env = clean_env(&world.home, &world.model.url());
    env.push(("TERM".to_owned(), "xterm".to_owned()));
    env.push(("PLEXUS_DATA_DIR".to_owned(), world.hub.data_dir().display().to_string()));
    let plexus = binaries::plexus()?;
    let mut missing = Pty::start(&plexus, &["run", "--image", "none.png", "SEE-IT"], &world.work, &env)?;
    missing.expect("cannot attach none.png: the file does not exist").await?;
    assert_eq!(missing.end().await?, 2, "{}", missing.shown());
    let mut run =
        Pty::start(&plexus, &["run", "--name", "a", "--attach", "shot.png", "SEE-IT"], &world.work, &env)?;
    run.expect("+ shot.png (image/png, 12 bytes)").await?;
    run.expect("* complete").await?;
    assert_eq!(run.end().await?, 0, "{}", run.shown());
    let mut attached = Pty::start(&plexus, &["attach", "a"], &world.work, &env)?;
    attached.expect("a> ").await?;
    attached.press("/help\n")?;
    attached.expect("/help is not a command here").await?;
    attached.press("/attach none.png\n")?;
    attached.expect("the file does not exist").await?;
    attached.press("/attach shot.png\n")?;
    attached.expect("attached to your next line").await?;
    attached.press("again in /etc/hosts\n")?;
    attached.expect("+ shot.png (image/png, 12 bytes)").await?;
    attached.expect("* complete").await?;
    attached.press("once more\n")?;
    attached.expect("* complete").await?;
    attached.press("/compact keep it\n")?;
    attached.expect("The conversation was compacted").await?;
    attached.expect("* complete").await?;
    attached.press(CTRL_D)?;
    assert_eq!(attached.end().await?, 0, "{}", attached.shown());
    let requests = world.model.requests_for("SEE-IT");
    let sent: String = requests.iter().map(|request| request["messages"].to_string()).collect();
    assert!(sent.contains("again in /etc/hosts") && sent.contains("keep it") && !sent.contains("/help"));
    Ok(())
}

#[tokio::test]
async fn files_and_commands_at_the_terminal_cli_197() -> anyhow::Result<()> {
    files_and_commands_at_the_terminal("2.1.197").await
}

#[tokio::test]
async fn files_and_commands_at_the_terminal_cli_325() -> anyhow::Result<()> {
    files_and_commands_at_the_terminal("2.1.325").await
}

#[tokio::test]
async fn a_person_answers_at_the_terminal_cli_197() -> anyhow::Result<()> {
    at_the_terminal("2.1.197").await
}

#[tokio::test]
async fn a_person_answers_at_the_terminal_cli_325() -> anyhow::Result<()> {
    at_the_terminal("2.1.325").await
}

/// An approval of a descendant that was escalated to the operator is shown to a person who is attached to the ancestor.
#[tokio::test]
async fn an_attached_person_answers_approvals_of_descendants() -> anyhow::Result<()> {
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
    // The session runs before its process has its config.
    until("the first run has a token", || world.token_of(&boss).is_ok()).await?;
    let door = world.door_of(&boss).await?;
    let asks = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}]));
    door.call("claudecode.create", json!({"name": "kid", "working_dir": world.work, "prompt": asks})).await?;
    attached.expect("kid wants to use Bash").await?;
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

/// A person who attaches to a session after its turn and types at once starts the next turn. The line is not sent to the previous turn.
#[tokio::test]
async fn a_line_typed_before_the_prompt_appears_starts_the_next_turn() -> anyhow::Result<()> {
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

/// A background process of an agent looks for the draft of an open editor and rewrites what it finds. The editor exits without saving. The rewritten
/// input must not run, and no answer is sent.
async fn draft_cannot_be_rewritten(version: &'static str) -> anyhow::Result<()> {
    let setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
    let Some(world) = setup.world("draft_cannot_be_rewritten").await? else { return Ok(()) };
    let session = world.create("thief", json!({})).await?;
    let wall = world.call("claudecode.get", json!({"session_id": session})).await?["session"]["wall"].clone();
    if wall == "none" {
        plexus_testkit::skip(
            &format!("draft_cannot_be_rewritten {version}"),
            "this system grants no sandbox",
        );
        return Ok(());
    }
    std::fs::write(world.file("rewrite_draft.sh"), include_str!("attack_scripts/rewrite_draft.sh"))?;
    // The draft of another test belongs to another hub. The sandbox of this hub does not hide it.
    let wanted = format!("touch WANTED # {}", world.hub.data_dir().display());
    std::fs::write(world.file("wanted"), &wanted)?;
    let rewrite =
        format!("DATA='{}' nohup sh rewrite_draft.sh > rewritten 2>&1 &", world.hub.data_dir().display());
    let bash = |command: &str| Step::tool("Bash", json!({"command": command, "description": "a step"}));
    world.model.script("REWRITE", vec![bash(&rewrite), bash(&wanted), Step::text("Well.")]);
    world.chat(&session, "REWRITE drafts").await?;
    let (_, approval) = world.asked(&session).await?;
    world.allow(&approval).await?;
    until("the script runs", || world.file("searching").exists()).await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["input"]["command"], json!(wanted));

    // The editor stays open until the script has searched everywhere once more, and does not change the draft.
    let editor = world.file("editor.sh");
    std::fs::write(
        &editor,
        "touch opened; cp \"$1\" seen-by-editor; until [ -e swept ]; do sleep 0.05; done\n",
    )?;
    let mut env = clean_env(&world.home, &world.model.url());
    env.push(("TERM".to_owned(), "xterm".to_owned()));
    env.push(("EDITOR".to_owned(), format!("sh {}", editor.display())));
    env.push(("PLEXUS_DATA_DIR".to_owned(), world.hub.data_dir().display().to_string()));
    let id = plexus_e2e::text(&approval["id"]);
    let mut run = Pty::start(&binaries::plexus()?, &["approve", &id, "--edit"], &world.work, &env)?;
    let code = run.end().await?;
    assert!(world.file("seen-by-editor").exists() && world.file("swept").exists());
    if code == 0 {
        world.ended(&session).await?;
    }
    let rewritten = std::fs::read_to_string(world.file("rewritten"))?;
    assert!(!world.file("STOLEN").exists(), "the rewritten draft ran: {rewritten}");
    assert_eq!(rewritten.matches("rewrote").count(), 0, "{rewritten}");
    assert_eq!(code, 130, "{}", run.shown());
    assert!(run.shown().contains("nothing was answered; the approval stays open"), "{}", run.shown());
    let found = world.call("loopback.get", json!({"approval_id": id})).await?;
    assert_eq!(found["approval"]["status"], "pending", "{found:#}");
    let drafts = std::fs::read_dir(world.hub.data_dir().join("drafts"))?.count();
    assert_eq!(drafts, 1, "the draft is gone, its lock stays");

    // For comparison: an editor that changes the draft.
    let last = env.len() - 2;
    env[last].1 = "sed -i s/WANTED/CHANGED/".to_owned();
    let mut run = Pty::start(&binaries::plexus()?, &["approve", &id, "--edit"], &world.work, &env)?;
    run.expect("+ touch CHANGED").await?;
    run.expect("Allow it with this input? y allows, n leaves it open: ").await?;
    run.press("y\n")?;
    run.expect("Allowed: Bash touch CHANGED").await?;
    assert_eq!(run.end().await?, 0, "{}", run.shown());
    world.ended(&session).await?;
    assert!(
        world.file("CHANGED").exists() && !world.file("WANTED").exists() && !world.file("STOLEN").exists()
    );
    std::fs::write(world.file("done"), "")?;
    Ok(())
}

#[tokio::test]
async fn a_childs_process_cannot_rewrite_a_draft_cli_197() -> anyhow::Result<()> {
    draft_cannot_be_rewritten("2.1.197").await
}

#[tokio::test]
async fn a_childs_process_cannot_rewrite_a_draft_cli_325() -> anyhow::Result<()> {
    draft_cannot_be_rewritten("2.1.325").await
}
