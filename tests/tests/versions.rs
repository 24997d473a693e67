//! Differences between versions of Claude Code that a user would notice.

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, until};
use plexus_testkit::executable;
use plexus_testkit::model::Step;
use serde_json::json;

over!(versions: every_prompt_in_plan_mode_has_the_instructions_of_plan_mode);
over!(versions: the_result_of_an_edit_has_the_changed_lines_with_their_numbers);

async fn every_prompt_in_plan_mode_has_the_instructions_of_plan_mode(world: World) -> anyhow::Result<()> {
    world.model.script("PLANNED", vec![Step::text("I think."), Step::text("I think again.")]);
    let session = world.create("planner", json!({"permission_mode": "plan"})).await?;
    for prompt in ["PLANNED: first", "then @second"] {
        world.chat(&session, prompt).await?;
        let ended = world.ended(&session).await?;
        assert_eq!(ended["status"], "complete", "{ended:#}");
        let request = world.model.requests_for("PLANNED").pop().context("a model request")?;
        assert!(request["messages"].to_string().contains("Plan mode is active"), "{prompt}: {request:#}");
    }
    Ok(())
}

async fn the_result_of_an_edit_has_the_changed_lines_with_their_numbers(world: World) -> anyhow::Result<()> {
    let lines: Vec<String> = (1..=40).map(|number| format!("line {number}\n")).collect();
    world.plant("a.txt", &lines.concat())?;
    let file = world.file("a.txt");
    world.model.script(
        "EDITED",
        vec![
            Step::tool("Read", json!({"file_path": file})),
            Step::tool(
                "Edit",
                json!({"file_path": file, "old_string": "line 20\n", "new_string": "twenty\n"}),
            ),
            Step::text("Done."),
        ],
    );
    let session = world.create("editor", json!({"policy": "allow_all"})).await?;
    world.chat(&session, "EDITED").await?;
    let ended = world.ended(&session).await?;
    let patches: Vec<_> = events(&ended, "tool_result").iter().map(|event| event["patch"].clone()).collect();
    let lines =
        [" line 17", " line 18", " line 19", "-line 20", "+twenty", " line 21", " line 22", " line 23"];
    let patch = json!([{"old_start": 17, "new_start": 17, "lines": lines}]);
    assert_eq!(patches, [json!(null), patch], "{ended:#}");
    Ok(())
}

const TOO_OLD: &str = "Claude Code 2.0.75 is too old; 2.1.197 or later is required";

/// A program that logs each start, and prints this text for `--version`.
fn program(dir: &std::path::Path, version: &str) -> anyhow::Result<()> {
    let log = dir.join("asked");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || exit 1\necho \"$PWD $PLEXUS_SESSION_ID\" >> {}\n{version}\n",
        log.display()
    );
    Ok(executable::write(&dir.join("claude"), &script)?)
}

#[tokio::test]
async fn a_version_that_is_too_old_is_refused_before_anything_is_created() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    program(dir.path(), "echo '2.0.75 (Claude Code)'")?;
    let world = Setup::scripted().start(dir.path().join("claude")).await?;
    let params = json!({"name": "old", "working_dir": world.work});
    let refused = world.refused("claudecode.create", params.clone()).await?;
    assert_eq!(refused.kind.as_deref(), Some("claude_too_old"));
    assert!(refused.message.contains(TOO_OLD), "{refused:?}");
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    assert!(!world.hub.data_dir().join("version-checks").exists(), "a check leaves no files");

    // An update helps at once. The accepted version is remembered.
    program(dir.path(), "echo '2.1.325 (Claude Code)'")?;
    for name in ["new", "newer"] {
        world.create(name, json!({})).await?;
    }
    let asked = std::fs::read_to_string(dir.path().join("asked"))?;
    assert_eq!(asked.lines().count(), 2, "one refusal and one answer: {asked}");
    assert!(
        asked.lines().all(|line| line.starts_with("/ ") && line.len() > 10),
        "in a sandbox of its own: {asked}"
    );
    Ok(())
}

#[tokio::test]
async fn concurrent_creations_share_one_question_for_the_version() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let held = dir.path().join("held");
    std::fs::write(&held, "")?;
    let wait = format!("while [ -e {} ]; do sleep 0.02; done; echo '2.1.325 (Claude Code)'", held.display());
    program(dir.path(), &wait)?;
    let world = Setup::scripted().start(dir.path().join("claude")).await?;
    let asked = dir.path().join("asked");
    let release = async {
        until("the question", || asked.exists()).await?;
        anyhow::Ok(std::fs::remove_file(&held)?)
    };
    let (a, b, released) = tokio::join!(world.create("a", json!({})), world.create("b", json!({})), release);
    released?;
    assert_ne!(a?, b?);
    assert_eq!(std::fs::read_to_string(&asked)?.lines().count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_program_that_does_not_tell_its_version_is_not_refused() -> anyhow::Result<()> {
    for answer in ["exit 1", "echo 'another program'", "kill -9 $$", "head -c 100000 /dev/zero; exit 1"] {
        let dir = tempfile::tempdir()?;
        program(dir.path(), answer)?;
        let world = Setup::scripted().start(dir.path().join("claude")).await?;
        world.create("unknown", json!({})).await.with_context(|| answer.to_owned())?;
        assert!(dir.path().join("asked").exists(), "it was asked");
    }
    Ok(())
}

/// A program that answers `--version` with a newer version than it reports when it runs.
#[tokio::test]
async fn a_process_that_reports_an_old_version_is_stopped_before_its_first_call() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let agent = plexus_testkit::binaries::scripted_agent()?;
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo '2.1.325 (Claude Code)'\n\
         {} \"$@\" | sed -u 's/\"claude_code_version\":\"[^\"]*\"/\"claude_code_version\":\"2.0.75\"/'\n",
        agent.display()
    );
    let program = dir.path().join("claude");
    executable::write(&program, &script)?;
    let world = Setup::scripted().start(program).await?;
    let session = world.create("old", json!({"policy": "allow_all"})).await?;
    let steps = json!([{"tool": "Bash", "input": {"command": "touch ran"}}, {"say": "Done."}]);
    world.chat(&session, &plexus_e2e::script(&steps)).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    let ends = plexus_e2e::events(&ended, "error");
    assert_eq!(ends[0]["reason"], "claude_too_old", "{ended:#}");
    assert!(ends[0]["message"].to_string().contains(TOO_OLD), "{ended:#}");
    assert_eq!(world.ran(), Vec::<serde_json::Value>::new());
    Ok(())
}
