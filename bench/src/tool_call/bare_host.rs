//! Children without Plexus: ungated, and under a host that allows every call at once from memory. All start Claude Code with the
//! arguments that the hub uses, so that only the gate differs. The host stores nothing and starts no sandbox.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, ensure};
use plexus_agent::{Conversation, LaunchLine, PromptTool, SlashCommands};
use plexus_claude::{
    Gate, GateAnswer, Initialize, PermissionResult, ResumedSystemPrompt, reply_gate, reply_permission,
    user_message,
};
use plexus_testkit::clean_env;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::Work;
use super::call_model::prompt;

/// Which calls Claude Code asks the host about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// None: its own rules allow them.
    Nothing,
    /// Every call, in a callback of a hook, as it asks the hub.
    EveryCall,
    /// The calls that its own rules do not allow, with `can_use_tool`, as it asks the SDKs.
    Permission,
}

impl Asks {
    fn gate(self) -> Gate {
        if self == Self::EveryCall { Gate::Callback } else { Gate::Disabled }
    }
}

/// Runs all children, each in a thread of its own.
pub(super) async fn run(work: Work, asks: Asks) -> anyhow::Result<()> {
    let mut threads = JoinSet::new();
    for child in work.children.clone() {
        let work = work.clone();
        threads.spawn_blocking(move || run_one(&work, child, asks));
    }
    while let Some(ended) = threads.join_next().await {
        ended??;
    }
    Ok(())
}

/// A child that is killed when its host fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only for a child that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run_one(work: &Work, child: usize, asks: Asks) -> anyhow::Result<()> {
    let cwd = work.dir.join("work");
    let mcp_config = work.dir.join(format!("mcp-{child}.json"));
    std::fs::write(&mcp_config, r#"{"mcpServers":{}}"#)?;
    let mut claude = Command::new(&work.claude);
    claude.args(arguments(&cwd, &mcp_config, asks));
    claude.env_clear().envs(clean_env(&work.dir.join("home"), &work.model_url));
    claude.envs([
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
        ("MCP_CONNECTION_NONBLOCKING", "0"),
    ]);
    claude.current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Killed(claude.spawn().context("claude")?);
    let mut stdin = process.0.stdin.take().context("stdin")?;
    let stdout = process.0.stdout.take().context("stdout")?;
    let no_agents = Map::new();
    let initialize = Initialize {
        gate: asks.gate(),
        hooks: &[],
        agents: &no_agents,
        system_prompt: ResumedSystemPrompt::Recorded,
    };
    send(&mut stdin, &initialize.line("1"))?;
    let uuid = format!("00000000-0000-4000-8000-{child:012}");
    send(&mut stdin, &user_message(&uuid, &prompt(child), &[], None))?;
    for line in BufReader::new(stdout).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        match line["type"].as_str() {
            Some("control_request") => {
                let id = line["request_id"].as_str().context("a request has an id")?;
                send(&mut stdin, &allow(id, &line["request"])?)?;
            }
            Some("result") => {
                ensure!(line["subtype"] == "success", "the turn failed: {line}");
                return Ok(());
            }
            _ => {}
        }
    }
    anyhow::bail!("claude ended before its turn")
}

fn allow(id: &str, request: &Value) -> anyhow::Result<String> {
    Ok(match request["subtype"].as_str() {
        Some("hook_callback") => reply_gate(id, &GateAnswer::Allow { reason: "allowed".to_owned() }),
        Some("can_use_tool") => {
            let updated_input = request["input"].as_object().context("a call has an input")?.clone();
            reply_permission(id, &PermissionResult::Allow { updated_input, updated_permissions: Vec::new() })
        }
        _ => anyhow::bail!("unexpected request: {request}"),
    })
}

fn arguments(cwd: &Path, mcp_config: &Path, asks: Asks) -> Vec<String> {
    let line = LaunchLine {
        working_dir: cwd.to_owned(),
        permission_mode: "default".to_owned(),
        prompt_tool: (asks != Asks::Nothing).then_some(PromptTool::Stdio),
        mcp_config: mcp_config.to_owned(),
        conversation: Conversation::New(uuid::Uuid::new_v4().to_string()),
        model: None,
        api_key_helper: None,
        system_prompt: None,
        append_system_prompt: None,
        partial_messages: false,
        slash_commands: SlashCommands::Disabled,
        max_budget_usd: None,
    };
    let mut args = line.args();
    if asks == Asks::Nothing {
        args.push("--allowedTools=Bash".to_owned());
    }
    args
}

fn send(stdin: &mut ChildStdin, line: &str) -> anyhow::Result<()> {
    stdin.write_all(format!("{line}\n").as_bytes()).context("claude does not read")
}
