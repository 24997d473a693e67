//! `audit.*`: the record of decisions and of acts of authority, and what a look over its chain of hashes finds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApprovalId, AskedOf, Decider, Object, Passed, Principal, Right, SessionId, SessionName, TokenName,
    UnixSeconds,
};

/// What sort of act was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// An approval came to its end.
    Decision,
    /// The gate allowed or denied a call by rule; nobody was asked.
    Gate,
    /// A token was handed out or taken back.
    Token,
    /// A rule was made or taken back.
    Policy,
    /// A session was made, stopped, deleted, given another mode or limits, or a token to ask with from elsewhere.
    Session,
}

/// One act, as it was recorded. What does not apply to it is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When it was done; of a decision, when it was decided.
    pub at: UnixSeconds,
    /// What sort of act it was.
    pub kind: AuditKind,
    /// What was done: the status an approval ended with, `allow` or `deny` of the gate, `made`, `revoked`, `deleted`, ….
    pub status: String,
    /// Who did it.
    pub by: Decider,
    /// By what right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    /// The session it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What that was called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<SessionName>,
    /// The approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// The agent's id for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Names tool, input and directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Where the tool would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the agent wanted to give the tool, whole. Written by the child: not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Object>,
    /// What the tool was given instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Object>,
    /// What was said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the gate had said to the call, and by which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Object>,
    /// Whom it was asked of in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_of: Option<AskedOf>,
    /// Who was asked before and passed it on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<UnixSeconds>,
    /// The token it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenName>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Object>,
}

impl AuditEntry {
    /// An act of which nothing else is known yet.
    pub fn new(at: UnixSeconds, kind: AuditKind, status: impl Into<String>, by: Decider) -> Self {
        Self {
            at,
            kind,
            status: status.into(),
            by,
            right: None,
            session_id: None,
            session_name: None,
            approval_id: None,
            tool_use_id: None,
            tool_name: None,
            digest: None,
            cwd: None,
            input: None,
            updated_input: None,
            message: None,
            gate: None,
            asked_of: None,
            passed: Vec::new(),
            asked_at: None,
            token: None,
            detail: None,
        }
    }

    /// The act of a caller, by the right that its kind has.
    pub fn of_caller(at: UnixSeconds, kind: AuditKind, status: &str, caller: &Principal) -> Self {
        let right = match caller {
            Principal::Operator => Right::Operator,
            Principal::Token { .. } => Right::Token,
            Principal::Parent { .. } | Principal::Session { .. } => Right::Ancestor,
        };
        Self { right: Some(right), ..Self::new(at, kind, status, Decider::from(caller)) }
    }
}

/// A row of the record: an entry and its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// SHA-256, in hex, over the hash of the row before, this number and the entry as it is stored.
    pub hash: String,
    /// What was done.
    pub entry: AuditEntry,
}

/// How far the record goes. Kept elsewhere, it shows later whether what stands before it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditHead {
    /// The number of the last row; 0 before the first.
    pub number: u64,
    /// Its hash.
    pub hash: String,
}

impl AuditHead {
    /// Where the chain begins.
    pub fn start() -> Self {
        Self { number: 0, hash: "0".repeat(64) }
    }
}

/// Parameters of `audit.list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Only what was done to this session.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only what was done at this time or later, in seconds since 1970.
    #[serde(default)]
    pub since: Option<UnixSeconds>,
    /// Only what was done before this time, in seconds since 1970.
    #[serde(default)]
    pub until: Option<UnixSeconds>,
    /// Only acts of this sort.
    #[serde(default)]
    pub kind: Option<AuditKind>,
    /// Only what this one did: `operator`, `hub`, `token:NAME`, `session:ID` or `parent:NAME`.
    #[serde(default)]
    pub by: Option<String>,
    /// Only what is about this tool.
    #[serde(default)]
    pub tool_name: Option<String>,
    /// Only rows after this number: the `next` of the page before.
    #[serde(default)]
    pub after: Option<u64>,
    /// From the newest row back, and not from the oldest on.
    #[serde(default)]
    pub newest_first: bool,
    /// Only rows before this number: the `next` of the page before, where the newest come first.
    #[serde(default)]
    pub before: Option<u64>,
    /// How many rows at most; 100 unless said, 1000 at most. Fewer come where they are large.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `audit.list`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// A page of the record.
    Ok {
        /// Oldest first, unless the newest were to come first.
        rows: Vec<AuditRow>,
        /// Give this as `after`, or as `before` where the newest come first, for the rows that follow; left out at the end.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}

/// Result of `audit.verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VerifyResult {
    /// Every row fits the one before.
    Ok {
        /// How many there are.
        rows: u64,
        /// The last of them.
        head: AuditHead,
    },
    /// The record is not what was written.
    Broken {
        /// The first row that does not fit.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}
