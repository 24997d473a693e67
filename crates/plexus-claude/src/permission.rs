//! Decisions and modes in Claude Code's own shape.
//!
//! The same decision goes out as a control reply and as the text of an MCP permission tool; both use
//! [`PermissionResult::to_value`].

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::Object;

/// The answer to a call that needs a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionResult {
    /// The call runs.
    Allow {
        /// What it runs with, in full: Claude Code up to 2.1.206 refuses an answer without it.
        updated_input: Object,
        /// Rules to remember, as Claude Code writes them.
        updated_permissions: Vec<Value>,
    },
    /// The call does not run.
    Deny {
        /// What the model is told.
        message: String,
        /// Whether the turn ends with it.
        interrupt: bool,
    },
}

impl PermissionResult {
    /// The decision as Claude Code reads it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Allow { updated_input, updated_permissions } => {
                let mut value = json!({"behavior": "allow", "updatedInput": updated_input});
                if !updated_permissions.is_empty() {
                    value["updatedPermissions"] = json!(updated_permissions);
                }
                value
            }
            Self::Deny { message, interrupt } => {
                let mut value = json!({"behavior": "deny", "message": message});
                if *interrupt {
                    value["interrupt"] = json!(true);
                }
                value
            }
        }
    }
}

/// The modes that a child may be put in. Those that let tools run unasked are not among them: "allow all" is a policy
/// at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PermissionMode {
    /// What is not allowed is asked.
    #[default]
    Default,
    /// Edits inside the working directory run.
    AcceptEdits,
    /// Nothing is written before a plan is approved.
    Plan,
}

impl PermissionMode {
    /// The name that Claude Code knows it by.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode that no child may be put in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown permission mode {0:?}: use default, acceptEdits or plan")]
pub struct UnknownPermissionMode(pub String);

impl FromStr for PermissionMode {
    type Err = UnknownPermissionMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Default, Self::AcceptEdits, Self::Plan]
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| UnknownPermissionMode(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_always_carries_its_input_and_only_the_rules_there_are() {
        let allow = |updated_permissions| {
            PermissionResult::Allow { updated_input: Object::new(), updated_permissions }.to_value()
        };
        assert_eq!(allow(vec![]), json!({"behavior":"allow","updatedInput":{}}));
        let rule = json!({"type":"setMode","mode":"plan","destination":"session"});
        assert_eq!(
            allow(vec![rule.clone()]),
            json!({"behavior":"allow","updatedInput":{},"updatedPermissions":[rule]})
        );
    }

    #[test]
    fn a_deny_says_interrupt_only_when_it_does() {
        let deny = |interrupt| PermissionResult::Deny { message: "no".into(), interrupt }.to_value();
        assert_eq!(deny(false), json!({"behavior":"deny","message":"no"}));
        assert_eq!(deny(true), json!({"behavior":"deny","message":"no","interrupt":true}));
    }

    #[test]
    fn modes_are_read_by_the_name_they_are_written_with_and_no_other() {
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for unsafe_mode in ["bypassPermissions", "auto", "dontAsk", "Default", ""] {
            assert!(unsafe_mode.parse::<PermissionMode>().is_err(), "{unsafe_mode}");
        }
    }
}
