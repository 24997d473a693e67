//! Encodes decisions in Claude Code's format.
//!
//! The same decision is sent as a control reply and as the text of an MCP permission tool. Both use
//! [`PermissionResult::to_value`].

use serde_json::{Value, json};

use crate::Object;

/// The decision on a tool call that needs approval.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionResult {
    /// The call runs.
    Allow {
        /// The complete input to run with. Claude Code up to 2.1.206 rejects an answer without it.
        updated_input: Object,
        /// Rules to remember, in Claude Code's format.
        updated_permissions: Vec<Value>,
    },
    /// The call does not run.
    Deny {
        /// The message for the model.
        message: String,
        /// Whether the denial ends the turn.
        interrupt: bool,
    },
}

impl PermissionResult {
    /// The decision in Claude Code's format.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_always_contains_its_input_and_contains_rules_only_if_given() {
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
    fn a_deny_contains_interrupt_only_if_it_interrupts() {
        let deny = |interrupt| PermissionResult::Deny { message: "no".into(), interrupt }.to_value();
        assert_eq!(deny(false), json!({"behavior":"deny","message":"no"}));
        assert_eq!(deny(true), json!({"behavior":"deny","message":"no","interrupt":true}));
    }
}
