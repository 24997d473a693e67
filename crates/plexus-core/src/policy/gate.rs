//! The gate: decides about each tool call before Claude Code applies its own permission rules.
//!
//! The gate sees every call of every child. The rules in force (`in_force`) decide first. If none matches, a
//! [`NamedPolicy`] decides, which is data: the first matching line of a list applies. If that has no opinion either,
//! Claude Code's permission rules decide (reads in the working directory run, other calls need approval). Every failure
//! here, including a panic, is a denial and never an error reply, because an error reply would let the tool run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use plexus_claude::{GateAnswer, PreToolUse};
use plexus_policy::{ToolClass, class_of};
use plexus_protocol::claudecode::{PermissionMode, PolicyName};
use plexus_store::Verdict;
use serde_json::Value;

use super::in_force::{Judge, Ruling};

/// The gate's decision about a call, ordered from most to least restrictive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GateDecision {
    /// The call does not run.
    Deny,
    /// The call needs approval.
    Ask,
    /// No opinion: Claude Code's permission rules decide.
    NoOpinion,
    /// The call runs.
    Allow,
}

/// The tools that a rule matches.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tools {
    /// Only these.
    These(&'static [&'static str]),
    /// The tools that only read, and these.
    ReadingAnd(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// One line of a named policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    tools: Tools,
    /// Applies only while the child is in this mode; `None` for every mode.
    mode: Option<PermissionMode>,
    decision: GateDecision,
}

/// A built-in policy, selected by name when a session is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedPolicy {
    pub(crate) name: PolicyName,
    /// The initial mode of a session with this policy, if none is given.
    pub(crate) starts_in: PermissionMode,
    rules: &'static [Rule],
}

/// Tools that only organise the agent's work, or only start work whose calls pass the gate themselves.
const ORGANISING: &[&str] = &["TodoWrite", "Task", "Agent", "TaskOutput", "ToolSearch"];
/// Tools for planning: they write the plan, ask about it, and present it.
const PLANNING: &[&str] = &["Write", "Edit", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode"];

const fn rule(tools: Tools, decision: GateDecision) -> Rule {
    Rule { tools, mode: None, decision }
}

static POLICIES: [NamedPolicy; 5] = [
    NamedPolicy { name: PolicyName::OwnCourse, starts_in: PermissionMode::Default, rules: &[] },
    NamedPolicy {
        name: PolicyName::AskAll,
        starts_in: PermissionMode::Default,
        rules: &[rule(Tools::AllBut(&[]), GateDecision::Ask)],
    },
    NamedPolicy {
        name: PolicyName::Approvals,
        starts_in: PermissionMode::Default,
        rules: &[
            rule(Tools::ReadingAnd(ORGANISING), GateDecision::Allow),
            rule(Tools::AllBut(&[]), GateDecision::Ask),
        ],
    },
    NamedPolicy {
        name: PolicyName::Plan,
        starts_in: PermissionMode::Plan,
        rules: &[
            rule(Tools::ReadingAnd(ORGANISING), GateDecision::Allow),
            // In plan mode, newer versions of Claude Code let a classifier decide about other tools.
            Rule {
                tools: Tools::AllBut(PLANNING),
                mode: Some(PermissionMode::Plan),
                decision: GateDecision::Ask,
            },
        ],
    },
    NamedPolicy {
        name: PolicyName::AllowAll,
        starts_in: PermissionMode::Default,
        rules: &[
            // A person answers these; they are not simply allowed.
            rule(Tools::These(&["AskUserQuestion", "ExitPlanMode"]), GateDecision::NoOpinion),
            rule(Tools::AllBut(&[]), GateDecision::Allow),
        ],
    },
];

impl NamedPolicy {
    /// The policy with this name.
    pub(crate) fn of(name: PolicyName) -> &'static Self {
        POLICIES.iter().find(|policy| policy.name == name).unwrap_or(&POLICIES[0])
    }

    pub(crate) fn decision(&self, tool: &str, mode: Option<&str>) -> GateDecision {
        let mode = mode.and_then(PermissionMode::named);
        let fits = |rule: &&Rule| {
            let named = match rule.tools {
                Tools::These(tools) => tools.contains(&tool),
                Tools::ReadingAnd(tools) => class_of(tool) == Some(ToolClass::Reads) || tools.contains(&tool),
                Tools::AllBut(tools) => !tools.contains(&tool),
            };
            named && rule.mode.is_none_or(|wanted| mode == Some(wanted))
        };
        self.rules.iter().find(fits).map_or(GateDecision::NoOpinion, |rule| rule.decision)
    }
}

/// Decides about a call. Any failure is a denial.
pub(crate) fn decide(judge: &Judge, call: &PreToolUse, cwd: &str) -> GateAnswer {
    deny_on_panic(|| {
        let input = if judge.has_rules() { Value::Object(call.input.clone()) } else { Value::Null };
        let mode = call.permission_mode.as_deref();
        let Ruling { decision, why, rules } = judge.judge(&call.tool_name, &input, Path::new(cwd), mode);
        let reason = match rules.as_slice() {
            [] => why,
            numbers => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                format!("rule {}: {why}", numbers.join(", "))
            }
        };
        match decision {
            GateDecision::NoOpinion => GateAnswer::NoOpinion,
            GateDecision::Allow => GateAnswer::Allow { reason },
            GateDecision::Ask => GateAnswer::Ask { reason },
            GateDecision::Deny if rules.is_empty() => {
                GateAnswer::Deny { reason: format!("This call is denied: {reason}") }
            }
            GateDecision::Deny => GateAnswer::Deny { reason: format!("This call is denied by {reason}") },
        }
    })
}

fn deny_on_panic(judge: impl FnOnce() -> GateAnswer) -> GateAnswer {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| GateAnswer::Deny {
        reason: "Plexus could not evaluate this call, so it is denied.".to_owned(),
    })
}

/// Converts a gate answer to the verdict that is stored with the call.
pub fn to_verdict(answer: &GateAnswer) -> Verdict {
    match answer.clone() {
        GateAnswer::NoOpinion => Verdict::NoOpinion,
        GateAnswer::Allow { reason } => Verdict::Allow { reason },
        GateAnswer::Ask { reason } => Verdict::Ask { reason },
        GateAnswer::Deny { reason } => Verdict::Deny { reason },
    }
}

/// Converts a stored verdict to the gate answer. A held call has no answer yet, so it is denied.
pub fn from_verdict(verdict: &Verdict) -> GateAnswer {
    match verdict.clone() {
        Verdict::NoOpinion => GateAnswer::NoOpinion,
        Verdict::Allow { reason } => GateAnswer::Allow { reason },
        Verdict::Ask { reason } => GateAnswer::Ask { reason },
        Verdict::Deny { reason } => GateAnswer::Deny { reason },
        Verdict::Held { .. } => {
            GateAnswer::Deny { reason: "This call waits for a budget approval.".to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{ApprovalId, Object};

    use super::*;

    #[test]
    fn a_policy_that_panics_denies() {
        assert!(matches!(deny_on_panic(|| panic!("on purpose")), GateAnswer::Deny { .. }));
    }

    #[test]
    fn each_named_policy_decides_as_documented() {
        use PolicyName::{AllowAll, Approvals, AskAll, OwnCourse, Plan};
        for (policy, tool, mode, decision) in [
            (OwnCourse, "Bash", "default", GateDecision::NoOpinion),
            (AskAll, "Read", "default", GateDecision::Ask),
            (Approvals, "Read", "default", GateDecision::Allow),
            (Approvals, "Bash", "default", GateDecision::Ask),
            (Approvals, "mcp__any__tool", "default", GateDecision::Ask),
            (Plan, "Read", "plan", GateDecision::Allow),
            (Plan, "Bash", "plan", GateDecision::Ask),
            (Plan, "ExitPlanMode", "plan", GateDecision::NoOpinion),
            (Plan, "Edit", "acceptEdits", GateDecision::NoOpinion),
            (AllowAll, "Bash", "default", GateDecision::Allow),
            (AllowAll, "AskUserQuestion", "default", GateDecision::NoOpinion),
        ] {
            assert_eq!(
                NamedPolicy::of(policy).decision(tool, Some(mode)),
                decision,
                "{policy:?} {tool} {mode}"
            );
        }
    }

    #[test]
    fn a_stored_answer_is_restored_and_a_held_call_is_denied() {
        let reason = || "r".to_owned();
        for answer in [
            GateAnswer::NoOpinion,
            GateAnswer::Allow { reason: reason() },
            GateAnswer::Ask { reason: reason() },
            GateAnswer::Deny { reason: reason() },
        ] {
            assert_eq!(from_verdict(&to_verdict(&answer)), answer);
        }
        let held =
            Verdict::Held { approval: ApprovalId::random(), input: Object::new(), cwd: None, mode: None };
        assert!(matches!(from_verdict(&held), GateAnswer::Deny { .. }));
    }
}
