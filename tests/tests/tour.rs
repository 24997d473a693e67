//! The tour: the test types the commands of `docs/tour.md` in a real shell at a real terminal, with a real Claude Code and the scripted
//! model, and checks that the output is as the page shows.

use anyhow::Context as _;
use plexus_testkit::model::{ScriptedModel, Step};
use plexus_testkit::pty::{CTRL_D, Pty};
use plexus_testkit::{binaries, clean_env, require_claude};
use serde_json::json;

/// Types the tour, line by line.
async fn walk(version: &'static str) -> anyhow::Result<()> {
    let Some(claude) = require_claude(version, "the_tour") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let [home, work, data] = ["home", "work", "data"].map(|name| dir.path().join(name));
    for folder in [&home, &work] {
        std::fs::create_dir(folder)?;
    }
    let model = ScriptedModel::start().await?;
    let bash = |command: &str| Step::tool("Bash", json!({"command": command, "description": "a step"}));
    let next = |request: &serde_json::Value| {
        // The fork does not contain the later prompts of the original.
        let asked = request["messages"].to_string();
        let command = match (asked.contains("Write a line into it"), asked.contains("Now remove it")) {
            (true, false) => "echo a line >> hello.txt",
            (false, true) => "rm hello.txt",
            _ => "exit 1",
        };
        Step::tool("Bash", json!({"command": command, "description": "a step"}))
    };
    let steps = vec![bash("touch hello.txt"), Step::text("Made."), Step::from_fn(next), Step::text("Well.")];
    model.script("Make a file called hello.txt", steps);

    let path =
        format!("{}:{}", binaries::plexus()?.parent().context("a folder")?.display(), std::env::var("PATH")?);
    let mut env = clean_env(&home, &model.url());
    env.retain(|(name, _)| name != "PATH");
    let more = [
        ("PATH", path),
        ("TERM", "xterm".to_owned()),
        ("PS1", "tour# ".to_owned()),
        ("PLEXUS_DATA_DIR", data.display().to_string()),
        ("PLEXUS_LISTEN", "127.0.0.1:0".to_owned()),
        ("PLEXUS_CLAUDE", claude.display().to_string()),
    ];
    env.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let mut shell = Pty::start("/bin/bash".as_ref(), &["--norc", "--noprofile"], &work, &env)?;
    shell.expect("tour# ").await?;
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tour.md");
    let page = std::fs::read_to_string(page)?;
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    for block in blocks {
        let mut typed = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                if std::mem::replace(&mut typed, true) {
                    shell.expect("tour# ").await.with_context(|| format!("before {command}"))?;
                }
                shell.press(&format!("{command}\n"))?;
                shell.expect("\n").await?;
            } else if let Some(answer) = line.strip_prefix("Allow it? ") {
                shell.expect("Allow it?").await?;
                shell.press(&format!("{answer}\n"))?;
            } else if let Some((prompt, said)) = line.split_once("> ") {
                shell.expect(&format!("{prompt}> ")).await?;
                shell.press(if said == "^D" { CTRL_D.to_owned() } else { format!("{said}\n") }.as_str())?;
            } else if line != "…" {
                shell.expect(line).await.with_context(|| format!("in\n{block}"))?;
            }
        }
        shell.expect("tour# ").await.with_context(|| format!("after\n{block}"))?;
    }
    assert_eq!(std::fs::read_to_string(work.join("hello.txt"))?, "a line\n");
    let transcript = std::fs::read_to_string(work.join("other.html"))?;
    assert!(
        transcript.contains("allowed by operator") && !transcript.contains("Now remove it"),
        "{transcript}"
    );
    shell.press("exit\n")?;
    assert_eq!(shell.end().await?, 0, "{}", shell.shown());
    Ok(())
}

#[tokio::test]
async fn the_tour_works_as_documented_197() -> anyhow::Result<()> {
    walk("2.1.197").await
}

#[tokio::test]
async fn the_tour_works_as_documented_325() -> anyhow::Result<()> {
    walk("2.1.325").await
}
