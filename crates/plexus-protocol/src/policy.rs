//! `policy.*`: rules for tool calls, in Claude Code's own syntax.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalId, ApprovalStatus, Decider, Object, SessionId, SessionName, UnixSeconds};

/// What a rule does to the calls it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// They run unasked.
    Allow,
    /// They do not run.
    Deny,
    /// Somebody is asked each time.
    Ask,
}

/// A rule to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleGiven {
    /// Such as `Bash(npm run test:*)`, `Edit(src/**)`, `mcp__github__*`.
    pub rule: String,
    /// What it does.
    pub effect: Effect,
    /// When it ceases to count, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
}

/// A rule that is to be made with an answer; it allows or denies as the answer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Such as `Bash(npm run test:*)`.
    pub rule: String,
    /// The session it is for, and all below it; left out, the one that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// After how many seconds it ceases to count; left out, it lasts until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_secs: Option<u64>,
}

/// How far a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// In full: it was given by the root of the tree.
    Fully,
    /// It was given by a session: what it allows does not count, what it denies or asks about does.
    Narrowing,
    /// A session gave it with an answer: what it allows counts as far as that session may allow it.
    WithinScope,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its number, for `policy.revoke`.
    pub number: u64,
    /// The rule, its path made absolute.
    pub rule: String,
    /// What it does.
    pub effect: Effect,
    /// How far it counts.
    pub counts: Counts,
    /// The session it is for, and all below it; left out, every session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// When it ceases to count, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
    /// Who made it.
    pub made_by: Decider,
    /// When.
    pub created_at: UnixSeconds,
}

/// Parameters of `policy.add`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddParams {
    /// The session the rules are for, and all below it; the operator may leave it out, for every session.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The same by its name.
    #[serde(default)]
    pub name: Option<SessionName>,
    /// The rules.
    pub rules: Vec<RuleGiven>,
}

/// Result of `policy.add`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AddResult {
    /// They are in force.
    Ok {
        /// The rules.
        rules: Vec<RuleView>,
        /// The open approvals that they have settled.
        settled: Vec<ApprovalId>,
    },
}

/// Parameters of `policy.list`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// The session whose rules are wanted, those it inherits included; the operator may leave it out, for all there are.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The same by its name.
    #[serde(default)]
    pub name: Option<SessionName>,
}

/// Result of `policy.list`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The rules in force.
    Ok {
        /// In the order in which they were made.
        rules: Vec<RuleView>,
    },
}

/// Parameters of `policy.revoke`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// Which.
    pub number: u64,
}

/// Result of `policy.revoke`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RevokeResult {
    /// It does not count any more.
    Ok {
        /// Which.
        number: u64,
    },
}

/// Parameters of `policy.preview`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewParams {
    /// The open approval that the rule would be made with the answer to.
    pub approval_id: ApprovalId,
    /// Such as `Bash(npm run test:*)`.
    pub rule: String,
    /// What the answer does, and the rule with it; `allow` unless said.
    #[serde(default)]
    pub effect: Option<AnswerEffect>,
    /// The session it would be for, and all below it; left out, the one that asks.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// What a rule that is made with an answer does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEffect {
    /// It allows.
    #[default]
    Allow,
    /// It denies.
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
    /// What would become of it. Nothing was made.
    Ok {
        /// The rule, its path made absolute.
        rule: String,
        /// Whether it means the call that is asked about: such a one would not be asked about again.
        covers: bool,
        /// The other open approvals that it would settle.
        settles: Vec<ApprovalId>,
    },
    /// The approval has come to its end already: no rule is made with an answer to it.
    AlreadyResolved {
        /// Which.
        approval_id: ApprovalId,
        /// How it ended.
        status: ApprovalStatus,
    },
}

/// Parameters of `policy.test`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestParams {
    /// The session that would make the call.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The same by its name.
    #[serde(default)]
    pub name: Option<SessionName>,
    /// The tool.
    pub tool_name: String,
    /// What it would be given.
    pub input: Object,
    /// The directory it would work in; left out, the session's.
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
    /// Somebody would be asked.
    Ask,
    /// Nothing is said about it: Claude Code takes its own course.
    OwnCourse,
}

/// Result of `policy.test`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TestResult {
    /// What would happen.
    Ok {
        /// To the call.
        outcome: Outcome,
        /// Why.
        why: String,
        /// The rules that say so; none where the session's named policy does.
        rules: Vec<RuleView>,
    },
}
