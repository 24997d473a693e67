//! Defines how a child is started: Claude Code's command line, and the file that passes it to the keeper. This module
//! owns the flags that prevent the working directory from bypassing the gate. The hub decides the child's environment
//! and which conversation it continues.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run_dir::{RunDir, create_new};
use crate::sandbox::{Sandbox, Tracing};

/// The channel through which Claude Code requests approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTool {
    /// `can_use_tool` requests to the hub on the child's own stdin and stdout.
    Stdio,
    /// The MCP tool `loopback_permit` of the hub's server `plexus`.
    Mcp,
}

impl PromptTool {
    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Mcp => "mcp__plexus__loopback_permit",
        }
    }
}

/// The conversation that the child continues, by Claude Code's id (a UUID).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversation {
    /// A new conversation with this id. The CLI rejects an id that was used before.
    New(String),
    /// The existing conversation with this id. Its transcript must exist.
    Resume(String),
    /// A new conversation with its own id that starts with part of another one, whose transcript must exist.
    Fork {
        /// The id of the conversation to fork.
        from: String,
        /// The last entry of that conversation to copy.
        at: String,
        /// The id of the new conversation.
        id: String,
    },
}

/// The slash commands, such as `/compact`, that Claude Code runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlashCommands {
    /// None, and no skills.
    #[default]
    Disabled,
    /// Only Claude Code's own. Without setting sources it loads no commands of the project or the user.
    BuiltIn,
}

/// The parameters of one launch of Claude Code, as arguments for its [`Launcher`](crate::Launcher).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchLine {
    /// The child's working directory: an absolute path.
    pub working_dir: PathBuf,
    /// One of Claude Code's permission modes. Always passed, because Claude Code's default differs between versions.
    pub permission_mode: String,
    /// The channel for approvals; `None` if the operator has disabled the gate.
    pub prompt_tool: Option<PromptTool>,
    /// The file that configures the child's MCP servers.
    pub mcp_config: PathBuf,
    /// The conversation that the child continues.
    pub conversation: Conversation,
    /// The model; `None` for Claude Code's default.
    pub model: Option<String>,
    /// The user's program that prints the API key.
    pub api_key_helper: Option<String>,
    /// A system prompt that replaces Claude Code's own.
    pub system_prompt: Option<String>,
    /// Text that follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the child sends token deltas.
    pub partial_messages: bool,
    /// The commands that it runs.
    pub slash_commands: SlashCommands,
    /// The budget in dollars. Claude Code ends a turn that exceeds it.
    pub max_budget_usd: Option<String>,
}

impl LaunchLine {
    /// The arguments of Claude Code.
    ///
    /// Text from other sources is passed as `--flag=value`. As a separate argument, a value that starts with a dash
    /// would be parsed as a flag.
    pub fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = Vec::with_capacity(32);
        let mut push = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));

        push(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        // Claude Code acknowledges each prompt on stdout. A prompt that is sent again after a crash is recognised by
        // its uuid.
        push(&["--replay-user-messages"]);
        if self.partial_messages {
            push(&["--include-partial-messages"]);
        }
        push(&["--permission-mode", &self.permission_mode]);
        if let Some(tool) = self.prompt_tool {
            push(&["--permission-prompt-tool", tool.name()]);
        }
        // Ignores settings, hooks, agents, commands and MCP servers of the project and the user: each of them has been
        // observed to run tools without approval. `disableAllHooks` does not affect the hub's own callback.
        push(&["--setting-sources=", "--strict-mcp-config"]);
        push(&["--mcp-config", &self.mcp_config.to_string_lossy()]);
        // `crossSessionInbound`: newer versions listen on a socket. Without this setting, any process of the same user,
        // including a command of the child, could send prompts in the operator's name.
        let mut settings = serde_json::json!({"disableAllHooks": true, "crossSessionInbound": "refuse"});
        if let Some(helper) = &self.api_key_helper {
            settings["apiKeyHelper"] = helper.as_str().into();
        }
        push(&["--settings", &settings.to_string()]);
        // Loads the project's CLAUDE.md again, and nothing else. This requires
        // CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 in the environment.
        push(&["--add-dir", &self.working_dir.to_string_lossy()]);
        // Shell lines in `/command` files and skills run without approval.
        if self.slash_commands == SlashCommands::Disabled {
            push(&["--disable-slash-commands"]);
        }
        match &self.conversation {
            Conversation::New(id) => push(&[&format!("--session-id={id}")]),
            Conversation::Resume(id) => push(&[&format!("--resume={id}")]),
            Conversation::Fork { from, at, id } => {
                push(&[&format!("--resume={from}"), "--fork-session", &format!("--session-id={id}")]);
                push(&[&format!("--resume-session-at={at}")]);
            }
        }
        if let Some(model) = &self.model {
            push(&[&format!("--model={model}")]);
        }
        if let Some(dollars) = &self.max_budget_usd {
            push(&["--max-budget-usd", dollars]);
        }
        if let Some(prompt) = &self.system_prompt {
            push(&[&format!("--system-prompt={prompt}")]);
        }
        if let Some(prompt) = &self.append_system_prompt {
            push(&[&format!("--append-system-prompt={prompt}")]);
        }
        args
    }
}

/// The contents of `launch.json`: what the keeper starts.
///
/// The environment is not part of it. It holds secrets, so it is never written to disk. The hub starts the keeper with
/// the child's environment, and the keeper passes it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program: an absolute path, or a name to look up in the child's `PATH`.
    pub program: PathBuf,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The child's working directory.
    pub cwd: PathBuf,
    /// The nonce that the first line of the outbox must repeat before the keeper starts the child.
    pub nonce: String,
    /// How the child's standard streams are connected.
    #[serde(default)]
    pub streams: Streams,
    /// The limits on the child's output.
    #[serde(default)]
    pub journal: JournalLimits,
    /// The sandbox; `None` to start the child without one.
    #[serde(default)]
    #[serde(rename = "wall")]
    pub sandbox: Option<Sandbox>,
    /// Whether the child's processes may trace each other. Applies only inside a sandbox.
    #[serde(default)]
    pub tracing: Tracing,
    /// How long the keeper keeps a child without a turn while no hub is connected; `None` for no limit.
    #[serde(default)]
    pub idle_without_hub: Option<Duration>,
}

/// The limits on a child's output. Once a limit is reached, the keeper stops reading from the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLimits {
    /// The maximum size of the journal.
    pub most_bytes: u64,
    /// The free disk space to leave.
    pub reserve_bytes: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self { most_bytes: u64::MAX, reserve_bytes: 0 }
    }
}

/// How a child's standard streams are connected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// Line by line: the outbox feeds stdin, and stdout goes to the journal.
    #[default]
    Lines,
    /// The child reads nothing. The log keeps the tail of its output.
    Log,
    /// The child reads a copy of a file. Its stdout goes to the journal, and the log keeps the tail of its stderr.
    Captured {
        /// The file.
        input: PathBuf,
    },
}

impl Launch {
    pub(crate) fn write(&self, dir: &RunDir) -> io::Result<()> {
        create_new(&dir.launch())?.write_all(&serde_json::to_vec(self)?)
    }

    pub(crate) fn read(dir: &RunDir) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(dir.launch())?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> LaunchLine {
        LaunchLine {
            working_dir: "/home/a/project".into(),
            permission_mode: "default".to_owned(),
            prompt_tool: Some(PromptTool::Stdio),
            mcp_config: "/data/mcp.json".into(),
            conversation: Conversation::New("0b5c".to_owned()),
            model: None,
            api_key_helper: None,
            system_prompt: None,
            append_system_prompt: None,
            partial_messages: false,
            slash_commands: SlashCommands::Disabled,
            max_budget_usd: None,
        }
    }

    #[test]
    fn the_command_line_disables_settings_of_the_working_directory() {
        assert_eq!(
            line().args().join(" "),
            "-p --input-format stream-json --output-format stream-json --verbose --replay-user-messages \
             --permission-mode default --permission-prompt-tool stdio --setting-sources= --strict-mcp-config \
             --mcp-config /data/mcp.json \
             --settings {\"disableAllHooks\":true,\"crossSessionInbound\":\"refuse\"} \
             --add-dir /home/a/project --disable-slash-commands --session-id=0b5c"
        );
    }

    #[test]
    fn every_option_has_its_flag() {
        let line = LaunchLine {
            prompt_tool: Some(PromptTool::Mcp),
            conversation: Conversation::Resume("0b5c".to_owned()),
            model: Some("opus".to_owned()),
            system_prompt: Some("Be brief.".to_owned()),
            append_system_prompt: Some("Answer in German.".to_owned()),
            partial_messages: true,
            ..line()
        };
        let args = line.args();
        for flag in [
            "mcp__plexus__loopback_permit",
            "--resume=0b5c",
            "--model=opus",
            "--system-prompt=Be brief.",
            "--append-system-prompt=Answer in German.",
            "--include-partial-messages",
        ] {
            assert!(args.iter().any(|arg| arg == flag), "{flag} is missing in {args:?}");
        }
        assert!(!args.iter().any(|arg| arg.starts_with("--session-id")));
    }

    #[test]
    fn only_a_process_for_a_command_has_commands_and_it_ignores_the_same_settings() {
        let with_commands = LaunchLine { slash_commands: SlashCommands::BuiltIn, ..line() }.args();
        let mut without = line().args();
        without.retain(|arg| arg != "--disable-slash-commands");
        assert_eq!(with_commands, without);
    }

    #[test]
    fn without_a_gate_no_approval_is_requested() {
        let args = LaunchLine { prompt_tool: None, ..line() }.args();
        assert!(!args.iter().any(|arg| arg == "--permission-prompt-tool"));
    }

    #[test]
    fn untrusted_text_never_becomes_a_flag() {
        let line = LaunchLine {
            system_prompt: Some("--dangerously-skip-permissions".to_owned()),
            append_system_prompt: Some("--dangerously-skip-permissions".to_owned()),
            model: Some("--help".to_owned()),
            ..line()
        };
        let args = line.args();
        assert!(!args.iter().any(|arg| arg == "--dangerously-skip-permissions" || arg == "--help"));
    }
}
