//! The shell of tool calls: the hub starts every child with bash, whatever shell the environment of the hub, the session or the
//! project sets.

use std::path::Path;

use plexus_e2e::{Channel, DoorKind, Setup, events};
use plexus_testkit::model::Step;
use plexus_testkit::{PINNED, skip};
use serde_json::json;

const ZSH: &str = "/bin/zsh";

/// Prints the shell that runs it.
const PRINT_SHELL: &str = r#"echo "shell=${BASH_VERSION:+bash}${ZSH_VERSION:+zsh} SHELL=$SHELL""#;

#[tokio::test]
async fn tool_calls_run_in_bash_even_if_zsh_is_configured() -> anyhow::Result<()> {
    let test = "shell::tool_calls_run_in_bash_even_if_zsh_is_configured";
    if !Path::new(ZSH).exists() {
        skip(test, "zsh");
        return Ok(());
    }
    for version in PINNED {
        let mut setup = Setup::cli(version, Channel::Control, DoorKind::Rpc);
        for name in ["SHELL", "CLAUDE_CODE_SHELL"] {
            setup.env.push((name.to_owned(), ZSH.to_owned()));
        }
        setup.env.push(("CLAUDE_CODE_SHELL_PREFIX".to_owned(), format!("{ZSH} -c")));
        let Some(world) = setup.world(test).await? else { return Ok(()) };
        std::fs::create_dir(world.work.join(".claude"))?;
        let settings = json!({"env": {"SHELL": ZSH, "CLAUDE_CODE_SHELL": ZSH}});
        std::fs::write(world.work.join(".claude/settings.json"), settings.to_string())?;
        let command = json!({"command": PRINT_SHELL, "description": "which shell"});
        world.model.script("WHICH", vec![Step::tool("Bash", command), Step::text("done")]);
        let given = json!({"rules": [{"rule": "Bash", "effect": "allow"}], "env": {"SHELL": ZSH}});
        let session = world.create("which", given).await?;
        world.chat(&session, "WHICH: go").await?;
        let ended = world.ended(&session).await?;
        let results = events(&ended, "tool_result");
        assert_eq!(results.len(), 1, "{version}: {ended}");
        let said = results[0].to_string();
        assert!(said.contains("shell=bash SHELL=/bin/bash"), "{version}: {said}");
    }
    Ok(())
}
