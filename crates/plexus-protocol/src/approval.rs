//! Approvals: one question that stops a child until it is answered, and the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claudecode::PermissionMode;
use crate::{ApprovalId, Object, Principal, SessionId, SessionName, TokenName, UnixSeconds};

/// What sort of question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// May this tool run?
    Tool,
    /// AskUserQuestion: the agent wants answers.
    Question,
    /// ExitPlanMode: the agent shows a plan.
    Plan,
    /// The session has used up what it was given.
    Budget,
}

impl ApprovalKind {
    /// The kind of question a call of this tool is.
    pub fn of_tool(tool_name: &str) -> Self {
        match tool_name {
            "AskUserQuestion" => Self::Question,
            "ExitPlanMode" => Self::Plan,
            _ => Self::Tool,
        }
    }
}

/// Where an approval stands: `pending`, then one of the others, once and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Open.
    Pending,
    /// Someone allowed it.
    Allowed,
    /// Someone denied it.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The child no longer waits for it.
    Withdrawn,
}

/// Whom an approval is asked of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AskedOf {
    /// The operator.
    Operator,
    /// A supervised session that made the asking one.
    Session {
        /// Which.
        id: SessionId,
    },
    /// An agent outside the hub.
    Parent {
        /// Which.
        id: String,
    },
}

impl AskedOf {
    /// A stable key for indexes: the same as the [`Principal::key`] of whoever is meant.
    pub fn key(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Session { id } => format!("session:{id}"),
            Self::Parent { id } => format!("parent:{id}"),
        }
    }
}

/// Who brought an approval to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decider {
    /// The operator.
    Operator,
    /// The holder of a token that the operator handed out.
    Token {
        /// Which.
        name: TokenName,
    },
    /// A supervised session.
    Session {
        /// Which.
        id: SessionId,
    },
    /// An agent outside the hub.
    Parent {
        /// Which.
        id: String,
    },
    /// The hub itself: expiry, withdrawal, or a question it could not show to anyone.
    Hub,
}

impl Decider {
    /// A stable key: the same as the [`Principal::key`] of whoever is meant.
    pub fn key(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Token { name } => format!("token:{name}"),
            Self::Session { id } => format!("session:{id}"),
            Self::Parent { id } => format!("parent:{id}"),
            Self::Hub => "hub".to_owned(),
        }
    }
}

impl From<&AskedOf> for Decider {
    fn from(asked: &AskedOf) -> Self {
        match asked {
            AskedOf::Operator => Self::Operator,
            AskedOf::Session { id } => Self::Session { id: *id },
            AskedOf::Parent { id } => Self::Parent { id: id.clone() },
        }
    }
}

impl From<&Principal> for Decider {
    fn from(principal: &Principal) -> Self {
        match principal {
            Principal::Operator => Self::Operator,
            Principal::Token { name, .. } => Self::Token { name: name.clone() },
            Principal::Parent { id } => Self::Parent { id: id.clone() },
            Principal::Session { id, .. } => Self::Session { id: *id },
        }
    }
}

/// By what right an approval was brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// The operator may decide everything.
    Operator,
    /// The operator handed out a token that may decide.
    Token,
    /// Whoever made a session, or one above it, answers for it.
    Ancestor,
    /// A rule was made that means it.
    Rule,
    /// Its time was over.
    Expiry,
    /// The child stopped waiting.
    Withdrawal,
    /// It could not be shown or matched, so it was denied.
    FailClosed,
}

/// The answer to an approval, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Allow or deny.
    pub approve: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The input the tool ran with instead of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Object>,
    /// The mode that follows an approved plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Whether the turn ends with this denial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// The rule that decided it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
    /// Who decided.
    pub by: Decider,
    /// By what right.
    pub right: Right,
}

impl Decision {
    /// Nobody waits for an answer any more, for this reason.
    pub fn withdrawal(why: impl Into<String>) -> Self {
        Self {
            approve: false,
            message: Some(why.into()),
            updated_input: None,
            mode: None,
            interrupt: false,
            rule: None,
            by: Decider::Hub,
            right: Right::Withdrawal,
        }
    }
}

/// Why a question went on to the next above.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WentOn {
    /// Whoever was asked passed it on.
    #[default]
    Escalated,
    /// Whoever was asked did not answer in time.
    Unanswered,
    /// Whoever would have been asked was not there.
    Absent,
}

/// Somebody who was asked, and whom the question went on from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    /// Who had been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AskedOf>,
    /// Why it went on.
    #[serde(default)]
    pub why: WentOn,
    /// Who passed it on: they themselves, somebody above them, or the hub.
    pub by: Decider,
    /// What they think of it. Written by whoever passed it on: not to be trusted more than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<String>,
    /// When.
    pub at: UnixSeconds,
}

/// One question that stops a child until it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id, for `loopback.respond`.
    pub id: ApprovalId,
    /// The session that asks.
    pub session_id: SessionId,
    /// That session's name.
    pub session_name: SessionName,
    /// What sort of question it is.
    pub kind: ApprovalKind,
    /// The tool the agent wants to use.
    pub tool_name: String,
    /// The agent's own id for this call.
    pub tool_use_id: String,
    /// What the agent wants to give the tool. Written by the child: not to be trusted.
    pub input: Object,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// When it was asked.
    pub created_at: UnixSeconds,
    /// When it expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
    /// Whom it is asked of.
    pub asked_of: AskedOf,
    /// Who was asked before, and why it went on from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    /// When it goes on to the next above, if nobody has answered it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes_on_at: Option<UnixSeconds>,
    /// Why Claude Code asks. Written by the child: not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What Claude Code would suggest to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Object>>")]
    pub suggestions: Option<Value>,
    /// The sub-agent that asks, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The path that made Claude Code ask. Written by the child: not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// Whether the tool says that only a person can answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_user_interaction: Option<bool>,
    /// Whether Claude Code's safety check, or an ask rule of the user's, wants an answer: no rule of ours stands in for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond_rules: bool,
    /// Where the tool would run.
    pub cwd: String,
    /// Names tool, input and directory; left out where the input is shown cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the input is shown cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// When the answer was passed on to the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<UnixSeconds>,
    /// When it was brought to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<UnixSeconds>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}
