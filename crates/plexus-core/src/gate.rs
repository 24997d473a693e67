//! The gate's policy: what is said to a tool call before Claude Code takes its own course.
//!
//! The gate sees every call of every child. Its policy today mentions nothing, so each call takes Claude Code's own
//! course (reading in the working directory runs, the rest asks); what it does see to is that a call that cannot be
//! read is denied, and that whatever goes wrong here, a panic included, is a denial and never an error reply: an
//! error reply would let the tool run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plexus_claude::{GateAnswer, PreToolUse};
use serde_json::{Value, json};

/// Decides about calls at the gate.
pub trait Policy: Send + Sync + 'static {
    /// What is said to this call.
    fn decide(&self, call: &PreToolUse) -> GateAnswer;
}

/// The policy that mentions nothing.
#[derive(Debug, Default)]
pub struct OwnCourse;

impl Policy for OwnCourse {
    fn decide(&self, _call: &PreToolUse) -> GateAnswer {
        GateAnswer::NoOpinion
    }
}

/// The gate: a policy that cannot fail open.
#[derive(Clone)]
pub struct Gate {
    policy: Arc<dyn Policy>,
}

impl Gate {
    /// A gate with this policy.
    pub fn new(policy: Arc<dyn Policy>) -> Self {
        Self { policy }
    }

    /// What is said to this call, whatever the policy does.
    pub fn decide(&self, call: &PreToolUse) -> GateAnswer {
        catch_unwind(AssertUnwindSafe(|| self.policy.decide(call))).unwrap_or_else(|_| GateAnswer::Deny {
            reason: "Plexus could not judge this call, so it is denied.".to_owned(),
        })
    }
}

/// A gate's answer as it is kept with the call.
pub fn to_value(answer: &GateAnswer) -> Value {
    match answer {
        GateAnswer::NoOpinion => json!({"answer": "own_course"}),
        GateAnswer::Allow { reason } => json!({"answer": "allow", "reason": reason}),
        GateAnswer::Ask { reason } => json!({"answer": "ask", "reason": reason}),
        GateAnswer::Deny { reason } => json!({"answer": "deny", "reason": reason}),
    }
}

/// A kept answer, read again; what cannot be read is a denial.
pub fn from_value(value: &Value) -> GateAnswer {
    let reason =
        value["reason"].as_str().unwrap_or("Plexus could not read its own record of this call.").to_owned();
    match value["answer"].as_str() {
        Some("own_course") => GateAnswer::NoOpinion,
        Some("allow") => GateAnswer::Allow { reason },
        Some("ask") => GateAnswer::Ask { reason },
        _ => GateAnswer::Deny { reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Policy for Panics {
        fn decide(&self, _call: &PreToolUse) -> GateAnswer {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_policy_that_panics_denies() {
        let call = PreToolUse {
            tool_name: "Bash".to_owned(),
            tool_use_id: "t".to_owned(),
            input: serde_json::Map::new(),
            cwd: None,
            permission_mode: None,
            agent_id: None,
        };
        assert!(matches!(Gate::new(Arc::new(Panics)).decide(&call), GateAnswer::Deny { .. }));
        assert!(matches!(Gate::new(Arc::new(OwnCourse)).decide(&call), GateAnswer::NoOpinion));
    }

    #[test]
    fn a_kept_answer_that_cannot_be_read_denies() {
        for rubbish in [json!(null), json!({"answer": 7}), json!({})] {
            assert!(matches!(from_value(&rubbish), GateAnswer::Deny { .. }));
        }
        for answer in [GateAnswer::NoOpinion, GateAnswer::Ask { reason: "r".to_owned() }] {
            assert_eq!(to_value(&from_value(&to_value(&answer))), to_value(&answer));
        }
    }
}
