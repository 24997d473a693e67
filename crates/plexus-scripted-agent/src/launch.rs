//! The part of Claude Code's command line that the scripted agent uses.

use std::path::PathBuf;

/// Where permission for a tool call is requested.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptSurface {
    /// As `can_use_tool` on stdout.
    Stdio,
    /// With an MCP tool, which this agent cannot call.
    Mcp(String),
    /// Nowhere: the call is denied.
    Nowhere,
}

/// Whether prompts and answers are echoed on stdout.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Replay {
    On,
    Off,
}

#[derive(Debug)]
pub(crate) struct Launch {
    pub session_id: String,
    pub permission_mode: String,
    pub surface: PromptSurface,
    pub replay: Replay,
    pub cwd: PathBuf,
}

impl Launch {
    pub(crate) fn parse(args: Vec<String>) -> Self {
        let mut launch = Self {
            session_id: String::new(),
            permission_mode: "default".to_owned(),
            surface: PromptSurface::Nowhere,
            replay: Replay::Off,
            cwd: std::env::current_dir().unwrap_or_default(),
        };
        let mut resumed = None;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (flag, value) = match arg.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut value = || value.clone().or_else(|| args.next()).unwrap_or_default();
            match flag.as_str() {
                "--session-id" => launch.session_id = value(),
                "--resume" => resumed = Some(value()),
                "--permission-mode" => launch.permission_mode = value(),
                "--permission-prompt-tool" => {
                    launch.surface = match value() {
                        tool if tool == "stdio" => PromptSurface::Stdio,
                        tool => PromptSurface::Mcp(tool),
                    }
                }
                "--replay-user-messages" => launch.replay = Replay::On,
                _ => {}
            }
        }
        if launch.session_id.is_empty() {
            // A fork with a chosen id has both flags. The session then has the chosen id.
            launch.session_id = resumed.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        }
        launch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Launch {
        Launch::parse(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn the_hubs_command_line_is_parsed_and_unknown_flags_are_ignored() {
        let launch = parse(
            "-p --input-format stream-json --verbose --replay-user-messages --permission-mode plan \
             --permission-prompt-tool stdio --setting-sources= --settings {\"a\":1} --session-id=abc --new-flag x",
        );
        assert_eq!(launch.session_id, "abc");
        assert_eq!(launch.permission_mode, "plan");
        assert_eq!(launch.surface, PromptSurface::Stdio);
        assert_eq!(launch.replay, Replay::On);
    }

    #[test]
    fn a_resumed_session_keeps_its_id_and_a_fork_gets_its_own() {
        assert_eq!(parse("--resume=abc").session_id, "abc");
        assert_eq!(parse("--resume=abc --fork-session --session-id=def").session_id, "def");
        assert_eq!(parse("-p").surface, PromptSurface::Nowhere);
    }
}
