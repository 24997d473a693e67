//! `policy.*`: rules for tool calls, in Claude Code's syntax.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalId, ApprovalStatus, Decider, Object, SessionId, UnixSeconds};

/// The effect of a rule on the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// They run without an approval.
    Allow,
    /// They do not run.
    Deny,
    /// They need approval each time.
    Ask,
}

/// A rule to add.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleGiven {
    /// Such as `Bash(npm run test:*)`, `Edit(src/**)`, `mcp__github__*`.
    pub rule: String,
    /// The effect.
    pub effect: Effect,
    /// When it expires; omitted if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
}

/// A rule to add with an answer; it allows or denies as the answer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Such as `Bash(npm run test:*)`.
    pub rule: String,
    /// The session that it applies to, with all below it; default: the requesting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// After how many seconds it expires; default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_secs: Option<u64>,
}

/// The authority of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Full: the root of the tree added it.
    Fully,
    /// A session added it: it can deny or require approval, but not allow.
    Narrowing,
    /// A session added it with an answer: it allows what that session may allow.
    WithinScope,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its number, for `policy.revoke`.
    pub number: u64,
    /// The rule, with an absolute path.
    pub rule: String,
    /// The effect.
    pub effect: Effect,
    /// The authority.
    pub counts: Counts,
    /// The session that it applies to, with all below it; omitted for every session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// When it expires; omitted if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
    /// Who added it.
    pub made_by: Decider,
    /// When it was added.
    pub created_at: UnixSeconds,
}

/// Parameters of `policy.add`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddParams {
    /// The session that the rules apply to, with all below it; the operator may omit it for every session.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The rules.
    pub rules: Vec<RuleGiven>,
}

/// Result of `policy.add`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AddResult {
    /// The rules are in force.
    Ok {
        /// The rules.
        rules: Vec<RuleView>,
        /// The open approvals that they resolved.
        settled: Vec<ApprovalId>,
    },
}

/// Parameters of `policy.list`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// The session whose rules to list, including inherited ones; the operator may omit it for all rules.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
}

/// Result of `policy.list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The rules in force.
    Ok {
        /// In the order in which they were added.
        rules: Vec<RuleView>,
    },
}

/// Parameters of `policy.revoke`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// The number of the rule.
    pub number: u64,
}

/// Result of `policy.revoke`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RevokeResult {
    /// The rule is no longer in force.
    Ok {
        /// The number of the rule.
        number: u64,
    },
}

/// Parameters of `policy.preview`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewParams {
    /// The open approval with whose answer the rule would be added.
    pub approval_id: ApprovalId,
    /// Such as `Bash(npm run test:*)`.
    pub rule: String,
    /// The effect of the answer and of the rule; default `allow`.
    #[serde(default)]
    pub effect: Option<AnswerEffect>,
    /// The session that it would apply to, with all below it; default: the requesting one.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// The effect of a rule that is added with an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEffect {
    /// Allow.
    #[default]
    Allow,
    /// Deny.
    Deny,
}

impl From<AnswerEffect> for Effect {
    fn from(effect: AnswerEffect) -> Self {
        match effect {
            AnswerEffect::Allow => Self::Allow,
            AnswerEffect::Deny => Self::Deny,
        }
    }
}

/// Result of `policy.preview`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PreviewResult {
    /// The effects that the rule would have. Nothing was changed.
    Ok {
        /// The rule, with an absolute path.
        rule: String,
        /// Whether it matches the requested call: such calls would not need approval again.
        covers: bool,
        /// The other open approvals that it would resolve.
        settles: Vec<ApprovalId>,
    },
    /// The approval was already resolved: no rule can be added with its answer.
    AlreadyResolved {
        /// The approval.
        approval_id: ApprovalId,
        /// The final status.
        status: ApprovalStatus,
    },
}

/// Parameters of `policy.test`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestParams {
    /// The session of the call.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The tool.
    pub tool_name: String,
    /// The input.
    pub input: Object,
    /// The working directory of the call; default: that of the session.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// What would happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It would run.
    Allow,
    /// It would not run.
    Deny,
    /// It would need approval.
    Ask,
    /// No rule matches: Claude Code's permission rules decide.
    OwnCourse,
}

/// Result of `policy.test`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TestResult {
    /// The expected outcome.
    Ok {
        /// The outcome.
        outcome: Outcome,
        /// The reason.
        why: String,
        /// The rules that decide; none if the session's named policy decides.
        rules: Vec<RuleView>,
    },
}
