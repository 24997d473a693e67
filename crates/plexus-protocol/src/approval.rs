//! Approvals: requests for a decision, which hold a child's call until they are resolved, and the decisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claudecode::PermissionMode;
use crate::{
    ApprovalId, HostName, Object, Principal, RiskMark, SessionId, SessionName, TokenName, UnixSeconds,
};

/// The kind of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A tool call needs permission.
    Tool,
    /// AskUserQuestion: the agent asks the user a question.
    Question,
    /// ExitPlanMode: the agent presents a plan.
    Plan,
    /// The session has used up its budget.
    Budget,
}

impl ApprovalKind {
    /// The kind of approval that a call of this tool needs.
    pub fn of_tool(tool_name: &str) -> Self {
        match tool_name {
            "AskUserQuestion" => Self::Question,
            "ExitPlanMode" => Self::Plan,
            _ => Self::Tool,
        }
    }
}

/// The status of an approval: `pending` until it is resolved; the others are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Open.
    Pending,
    /// A decider allowed it.
    Allowed,
    /// A decider denied it.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The child no longer waits for it.
    Withdrawn,
}

/// The decider that an approval is addressed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AskedOf {
    /// The operator.
    Operator,
    /// A supervised session, an ancestor of the requesting one.
    Session {
        /// Its id.
        id: SessionId,
    },
    /// An agent outside the hub.
    Parent {
        /// Its id.
        id: String,
    },
}

impl AskedOf {
    /// A stable key for indexes, equal to the [`Principal::key`] of this decider.
    pub fn key(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::Session { id } => format!("session:{id}"),
            Self::Parent { id } => format!("parent:{id}"),
        }
    }
}

/// Who resolved an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decider {
    /// The operator.
    Operator,
    /// The holder of a token that the operator created.
    Token {
        /// The name of the token.
        name: TokenName,
    },
    /// A supervised session.
    Session {
        /// Its id.
        id: SessionId,
    },
    /// An agent outside the hub.
    Parent {
        /// Its id.
        id: String,
    },
    /// The hub itself: the approval expired, was withdrawn, or could not be shown to anyone.
    Hub,
}

impl Decider {
    /// A stable key, equal to the [`Principal::key`] of this decider.
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

/// The right by which an approval was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// The operator may decide everything.
    Operator,
    /// The caller's token has the right to decide.
    Token,
    /// The caller is an ancestor of the session: its creator, or a session above that.
    Ancestor,
    /// A new rule matches the call.
    Rule,
    /// The approval expired.
    Expiry,
    /// The child stopped waiting.
    Withdrawal,
    /// The request could not be shown or matched, so it was denied.
    FailClosed,
}

/// The decision on an approval, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// true: allowed; false: denied.
    pub approve: bool,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The input that replaces the requested input of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Object>,
    /// The permission mode after an allowed plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Whether this denial also interrupts the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// The number of the rule that decided, if a rule did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u64>,
    /// Who decided.
    pub by: Decider,
    /// The right by which it was decided.
    pub right: Right,
}

impl Decision {
    /// A withdrawal: no process waits for the decision any more, for this reason.
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

/// Why an approval escalated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// The decider escalated it.
    #[default]
    Escalated,
    /// The decider did not answer in time.
    Unanswered,
    /// The decider was not connected.
    Absent,
}

/// An earlier decider of an approval, from which it escalated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EscalationStep {
    /// The earlier decider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AskedOf>,
    /// Why it escalated.
    #[serde(default)]
    pub why: EscalationReason,
    /// Who escalated it: that decider, an ancestor of it, or the hub.
    pub by: Decider,
    /// The opinion of the decider that escalated it. Trust it only as far as its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<String>,
    /// When it escalated.
    pub at: UnixSeconds,
}

/// A request for a decision. The child waits until it is resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id, for `loopback.respond`.
    pub id: ApprovalId,
    /// The requesting session.
    pub session_id: SessionId,
    /// The name of that session.
    pub session_name: SessionName,
    /// The path of that session as the caller sees it, such as `lead/worker`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_path: Option<String>,
    /// The host that runs the session, if several hosts share the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// The kind of the approval.
    pub kind: ApprovalKind,
    /// The tool that the agent wants to use.
    pub tool_name: String,
    /// Claude Code's id of the call.
    pub tool_use_id: String,
    /// The input of the call. Written by the child: do not trust it.
    pub input: Object,
    /// The status.
    pub status: ApprovalStatus,
    /// When it was requested.
    pub created_at: UnixSeconds,
    /// When it expires; omitted if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixSeconds>,
    /// The decider that it is addressed to.
    pub asked_of: AskedOf,
    /// The earlier deciders, and why it escalated from each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<EscalationStep>,
    /// When it escalates if nobody has answered by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes_on_at: Option<UnixSeconds>,
    /// Why Claude Code requests it. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last sentences that the agent wrote before the call. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The risks of the call, most alarming first. They decide nothing. Omitted if the call was not analysed, and in lists
    /// for agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<Vec<RiskMark>>,
    /// The rules that Claude Code suggests to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Object>>")]
    pub suggestions: Option<Value>,
    /// The sub-agent that requests it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The path that caused the request. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// Whether the tool requires an answer by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_user_interaction: Option<bool>,
    /// Whether a safety check of Claude Code, or an ask rule of the user, requires an answer. Rules of Plexus
    /// cannot resolve it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond_rules: bool,
    /// The directory in which the tool would run.
    pub cwd: String,
    /// The hash of tool, input and directory; omitted if the input is shown truncated, and in lists for agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the input is shown truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// When the decision was sent to the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<UnixSeconds>,
    /// When it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<UnixSeconds>,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

impl Approval {
    /// The requesting session for a person: its path, or its name if the path is unknown.
    pub fn session_label(&self) -> &str {
        self.session_path.as_deref().unwrap_or(self.session_name.as_str())
    }
}
