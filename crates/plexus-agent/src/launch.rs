//! How a child is started: Claude Code's command line, and the file in which it reaches the keeper. It owns
//! the flags that close the gate against the working directory; what the child's environment holds, and
//! which conversation it goes on with, is decided by the hub.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run_dir::{RunDir, create_new};
use crate::sandbox::{Tracing, Sandbox};

/// Whom Claude Code asks for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTool {
    /// The hub, by `can_use_tool` on the child's own stdin and stdout.
    Stdio,
    /// The hub, by the MCP tool `loopback_permit` of the server `plexus`.
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

/// Which conversation the child goes on with, by Claude Code's own id (a UUID).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversation {
    /// A new one under this id; an id that was used before is refused by the CLI.
    New(String),
    /// The one with this id, whose transcript has to be there.
    Resume(String),
    /// A new one under an id of its own that begins with part of another one, whose transcript has to be there.
    Fork {
        /// The other one.
        from: String,
        /// The last entry of it that is taken over.
        at: String,
        /// The new one.
        id: String,
    },
}

/// What differs from one launch of Claude Code to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchLine {
    /// The `claude` program: an absolute path, or a name that is looked up in the child's `PATH`.
    pub program: PathBuf,
    /// Where the child works: an absolute path.
    pub working_dir: PathBuf,
    /// One of Claude Code's permission modes; always said, as its own default differs between versions.
    pub permission_mode: String,
    /// Whom it asks; nobody where the operator has switched the gate off.
    pub prompt_tool: Option<PromptTool>,
    /// The file with the child's MCP servers.
    pub mcp_config: PathBuf,
    /// The conversation it goes on with.
    pub conversation: Conversation,
    /// The model, unless Claude Code's own choice will do.
    pub model: Option<String>,
    /// The user's program that gives out the key to the model.
    pub api_key_helper: Option<String>,
    /// A system prompt in place of Claude Code's own.
    pub system_prompt: Option<String>,
    /// Whether token deltas are wanted.
    pub partial_messages: bool,
    /// What it may cost, in dollars: it ends a turn by itself that costs more.
    pub max_budget_usd: Option<String>,
}

impl LaunchLine {
    /// The arguments after the program's name.
    ///
    /// Text that somebody else chose is passed as `--flag=value`: in two words, one that starts with a dash
    /// would be read as a flag of its own.
    pub fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = Vec::with_capacity(32);
        let mut push = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));

        push(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        // Each prompt is acknowledged on stdout, so that one sent again after a crash is known by its uuid.
        push(&["--replay-user-messages"]);
        if self.partial_messages {
            push(&["--include-partial-messages"]);
        }
        push(&["--permission-mode", &self.permission_mode]);
        if let Some(tool) = self.prompt_tool {
            push(&["--permission-prompt-tool", tool.name()]);
        }
        // No settings, hooks, agents, commands or MCP servers of project or user: each of them was seen to
        // make tools run unasked. `disableAllHooks` leaves the hub's own callback alone.
        push(&["--setting-sources=", "--strict-mcp-config"]);
        push(&["--mcp-config", &self.mcp_config.to_string_lossy()]);
        // `crossSessionInbound`: newer versions listen on a socket where any process of the same user, a command of
        // the child too, could otherwise put words into the operator's mouth.
        let mut settings = serde_json::json!({"disableAllHooks": true, "crossSessionInbound": "refuse"});
        if let Some(helper) = &self.api_key_helper {
            settings["apiKeyHelper"] = helper.as_str().into();
        }
        push(&["--settings", &settings.to_string()]);
        // Brings back the project's CLAUDE.md and nothing else, with
        // CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 in the environment.
        push(&["--add-dir", &self.working_dir.to_string_lossy()]);
        // The shell lines of `/command` and of skills run without any question.
        push(&["--disable-slash-commands"]);
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
        args
    }
}

/// What the keeper is to start, as it stands in `launch.json`.
///
/// The environment is not in it: it holds secrets, and never touches the disk. The keeper is started with
/// the child's environment and hands it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program: an absolute path, or a name that is looked up in the child's `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What the first line of the outbox has to repeat before anything is started.
    pub nonce: String,
    /// What becomes of what it reads and writes.
    #[serde(default)]
    pub streams: Streams,
    /// How much of what it writes is taken.
    #[serde(default)]
    pub journal: JournalLimits,
    /// What it is not to see, if anything.
    #[serde(default)]
    #[serde(rename = "wall")]
    pub sandbox: Option<Sandbox>,
    /// Whether its processes may trace each other, where there is a sandbox.
    #[serde(default)]
    pub tracing: Tracing,
    /// How long a child without a turn is kept while there is no hub; `None` for good.
    #[serde(default)]
    pub idle_without_hub: Option<Duration>,
}

/// How much of what a child writes is taken. Beyond that it is not read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLimits {
    /// The size of the journal.
    pub most_bytes: u64,
    /// What the disk must have left.
    pub reserve_bytes: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self { most_bytes: u64::MAX, reserve_bytes: 0 }
    }
}

/// What becomes of what a child reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// It is spoken with, line by line: the outbox is its stdin, its stdout the journal.
    #[default]
    Lines,
    /// It is let run: it reads nothing, and the tail of all it writes is kept in the log.
    Log,
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
            program: "/opt/claude".into(),
            working_dir: "/home/a/project".into(),
            permission_mode: "default".to_owned(),
            prompt_tool: Some(PromptTool::Stdio),
            mcp_config: "/data/mcp.json".into(),
            conversation: Conversation::New("0b5c".to_owned()),
            model: None,
            api_key_helper: None,
            system_prompt: None,
            partial_messages: false,
            max_budget_usd: None,
        }
    }

    #[test]
    fn the_line_closes_the_gate_against_the_working_directory() {
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
    fn every_choice_has_its_flag() {
        let line = LaunchLine {
            prompt_tool: Some(PromptTool::Mcp),
            conversation: Conversation::Resume("0b5c".to_owned()),
            model: Some("opus".to_owned()),
            partial_messages: true,
            ..line()
        };
        let args = line.args();
        for flag in
            ["mcp__plexus__loopback_permit", "--resume=0b5c", "--model=opus", "--include-partial-messages"]
        {
            assert!(args.iter().any(|arg| arg == flag), "{flag} is missing in {args:?}");
        }
        assert!(!args.iter().any(|arg| arg.starts_with("--session-id")));
    }

    #[test]
    fn without_a_gate_nobody_is_asked() {
        let args = LaunchLine { prompt_tool: None, ..line() }.args();
        assert!(!args.iter().any(|arg| arg == "--permission-prompt-tool"));
    }

    #[test]
    fn foreign_text_never_becomes_a_flag() {
        let line = LaunchLine {
            system_prompt: Some("--dangerously-skip-permissions".to_owned()),
            model: Some("--help".to_owned()),
            ..line()
        };
        let args = line.args();
        assert!(!args.iter().any(|arg| arg == "--dangerously-skip-permissions" || arg == "--help"));
    }
}
