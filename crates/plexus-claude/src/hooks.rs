//! The callbacks of the user's hooks: their events and ids, and the answers to them. The hub registers at most one callback per
//! event, beside the gate's. Claude Code calls all callbacks of an event and takes the strictest answer, so an answer here can deny
//! a call that the gate allows, and cannot allow one. For that reason [`HookDecision`] has no "allow".

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::outgoing::reply;

/// An event for which Claude Code calls the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookEvent {
    /// Before a tool call.
    PreToolUse,
    /// After a tool call that succeeded.
    PostToolUse,
    /// Before the model reads a prompt.
    UserPromptSubmit,
    /// Before a turn ends.
    Stop,
    /// Before a sub-agent ends.
    SubagentStop,
}

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The call or the prompt is denied.
    Deny,
    /// Nothing is decided.
    Ignore,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 5] =
        [Self::PreToolUse, Self::PostToolUse, Self::UserPromptSubmit, Self::Stop, Self::SubagentStop];

    /// Its name in Claude Code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
        }
    }

    /// The event with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// The id of its callback.
    pub fn callback(self) -> &'static str {
        match self {
            Self::PreToolUse => "plexus_hook_PreToolUse",
            Self::PostToolUse => "plexus_hook_PostToolUse",
            Self::UserPromptSubmit => "plexus_hook_UserPromptSubmit",
            Self::Stop => "plexus_hook_Stop",
            Self::SubagentStop => "plexus_hook_SubagentStop",
        }
    }

    /// The event of the callback with this id.
    pub fn of_callback(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.callback() == id)
    }

    /// What the failure of a hook for this event means. Only something that has not happened yet can be denied.
    pub fn on_failure(self) -> OnFailure {
        match self {
            Self::PreToolUse | Self::UserPromptSubmit => OnFailure::Deny,
            Self::PostToolUse | Self::Stop | Self::SubagentStop => OnFailure::Ignore,
        }
    }
}

/// The answer of the user's hooks to a callback.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// The decision, if there is one.
    pub decision: Option<HookDecision>,
    /// Text that the model reads in addition.
    pub context: Option<String>,
}

/// A decision of the user's hooks. Each of them restricts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// The call needs approval. Only for [`HookEvent::PreToolUse`].
    Ask {
        /// The reason.
        reason: String,
    },
    /// Before a call or a prompt: it is denied. After a call: the model reads the objection. At the end of a turn: the agent
    /// continues.
    Block {
        /// The reason, which the model receives.
        reason: String,
    },
    /// The turn ends. A call that has not run is denied.
    Stop {
        /// The reason.
        reason: String,
    },
}

impl HookAnswer {
    /// The answer if a hook fails.
    pub fn of_failure(event: HookEvent, reason: String) -> Self {
        let decision = match event.on_failure() {
            OnFailure::Deny => Some(HookDecision::Block { reason }),
            OnFailure::Ignore => None,
        };
        Self { decision, context: None }
    }
}

/// Answers a callback of the user's hooks, always with success and in a form that Claude Code accepts for its event.
pub fn reply_hook(request_id: &str, event: HookEvent, answer: &HookAnswer) -> String {
    let (mut body, mut output) = (Map::new(), Map::new());
    let is_call = event == HookEvent::PreToolUse;
    let mut decide = |decision: &str, reason: &str| {
        output.insert("permissionDecision".to_owned(), json!(decision));
        output.insert("permissionDecisionReason".to_owned(), json!(reason));
    };
    match &answer.decision {
        None => {}
        // With `continue: false` alone, Claude Code would run the call and then end the turn. The hub interrupts the turn.
        Some(HookDecision::Block { reason } | HookDecision::Stop { reason }) if is_call => {
            decide("deny", reason)
        }
        Some(HookDecision::Ask { reason }) if is_call => decide("ask", reason),
        Some(HookDecision::Ask { .. }) => {}
        Some(HookDecision::Block { reason }) => {
            body.insert("decision".to_owned(), json!("block"));
            body.insert("reason".to_owned(), json!(reason));
        }
        Some(HookDecision::Stop { reason }) => {
            body.insert("continue".to_owned(), json!(false));
            body.insert("stopReason".to_owned(), json!(reason));
        }
    }
    if let Some(context) = &answer.context {
        output.insert("additionalContext".to_owned(), json!(context));
    }
    if !output.is_empty() {
        output.insert("hookEventName".to_owned(), json!(event.as_str()));
        body.insert("hookSpecificOutput".to_owned(), Value::Object(output));
    }
    reply(request_id, Value::Object(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(event: HookEvent, answer: &HookAnswer) -> Value {
        let line: Value = serde_json::from_str(&reply_hook("r", event, answer)).unwrap();
        assert_eq!(line["response"]["subtype"], "success");
        assert_eq!(line["response"]["request_id"], "r");
        line["response"]["response"].clone()
    }

    fn decided(decision: HookDecision) -> HookAnswer {
        HookAnswer { decision: Some(decision), context: None }
    }

    #[test]
    fn an_event_is_found_by_its_name_and_by_its_callback() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::named(event.as_str()), Some(event));
            assert_eq!(HookEvent::of_callback(event.callback()), Some(event));
            assert!(event.callback().ends_with(event.as_str()));
        }
        assert_eq!(HookEvent::of_callback(crate::GATE_CALLBACK), None);
        assert_eq!(HookEvent::named("PermissionRequest"), None);
    }

    #[test]
    fn no_answer_allows_a_call() {
        let reason = || "because".to_owned();
        let stop = HookDecision::Stop { reason: reason() };
        for (decision, expected) in [
            (HookDecision::Ask { reason: reason() }, "ask"),
            (HookDecision::Block { reason: reason() }, "deny"),
            (stop, "deny"),
        ] {
            let body = answered(HookEvent::PreToolUse, &decided(decision));
            assert_eq!(body["hookSpecificOutput"]["permissionDecision"], expected);
            assert_eq!(body["hookSpecificOutput"]["hookEventName"], "PreToolUse");
            assert_eq!(body.get("continue"), None);
        }
        assert_eq!(answered(HookEvent::PreToolUse, &HookAnswer::default()), json!({}));
    }

    #[test]
    fn the_other_events_have_a_form_of_their_own() {
        let block = decided(HookDecision::Block { reason: "r".to_owned() });
        assert_eq!(answered(HookEvent::Stop, &block), json!({"decision": "block", "reason": "r"}));
        let stop = decided(HookDecision::Stop { reason: "r".to_owned() });
        assert_eq!(answered(HookEvent::PostToolUse, &stop), json!({"continue": false, "stopReason": "r"}));
        let context = HookAnswer { decision: None, context: Some("c".to_owned()) };
        let output = json!({"additionalContext": "c", "hookEventName": "UserPromptSubmit"});
        assert_eq!(answered(HookEvent::UserPromptSubmit, &context), json!({"hookSpecificOutput": output}));
    }

    #[test]
    fn a_failure_denies_only_what_has_not_happened() {
        for event in HookEvent::ALL {
            let denies = matches!(event, HookEvent::PreToolUse | HookEvent::UserPromptSubmit);
            assert_eq!(HookAnswer::of_failure(event, "r".to_owned()).decision.is_some(), denies);
        }
    }
}
