//! The hooks of a session: commands of the user, in the format of Claude Code's settings. The hub checks the events and the
//! matchers when a session is created.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Commands by event, as in Claude Code's settings:
/// `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}]}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hooks(pub BTreeMap<String, Vec<HookGroup>>);

/// Commands that run for the same tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookGroup {
    /// The tools: a name, a list such as `Edit|Write`, or a regular expression. Without it, all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The commands. They run at the same time.
    pub hooks: Vec<HookCommand>,
}

/// A command that runs for an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookCommand {
    /// The type of the hook.
    #[serde(rename = "type")]
    pub kind: HookKind,
    /// The command line for `sh`.
    pub command: String,
    /// The time limit in seconds; default 60, at most 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// The type of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// A shell command.
    Command,
}

impl Hooks {
    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.0.values().flatten().all(|group| group.hooks.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_have_the_format_of_claude_codes_settings() {
        let text = r#"{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"./check.sh","timeout":5}]}]}"#;
        let hooks: Hooks = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&hooks).unwrap(), text);
        assert!(!hooks.is_empty());
    }

    #[test]
    fn an_unsupported_type_or_field_is_an_error_that_names_it() {
        for (hook, named) in [
            (r#"{"type":"http","url":"x"}"#, "http"),
            (r#"{"type":"command","command":"x","async":true}"#, "async"),
        ] {
            let text = format!(r#"{{"Stop":[{{"hooks":[{hook}]}}]}}"#);
            let error = serde_json::from_str::<Hooks>(&text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
