//! `audit.*`: entries of the audit log, and the result of verifying its hash chain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApprovalId, AskedOf, Decider, EscalationStep, Object, Principal, Right, SessionId, SessionName,
    TokenName, UnixSeconds,
};

/// The kind of an audit entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// An approval was resolved.
    Decision,
    /// A rule allowed or denied a call at the gate, without an approval.
    Gate,
    /// A token was created or revoked.
    Token,
    /// A rule was added or revoked.
    Policy,
    /// A session was created, stopped or deleted, got another mode or budget, or a token for approvals from
    /// outside the hub.
    Session,
    /// A template was saved or deleted.
    Template,
    /// A host was added or removed, got a new password, was drained or declared lost, rejoined, or continued after lost commits.
    Host,
}

/// One decision or act of authority. Fields that do not apply are omitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When it happened; for a decision, when it was decided.
    pub at: UnixSeconds,
    /// The kind.
    pub kind: AuditKind,
    /// What happened: the final status of an approval, `allow` or `deny` of the gate, `made`, `revoked`,
    /// `deleted`, ….
    pub status: String,
    /// Who did it.
    pub by: Decider,
    /// The right by which it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    /// The session that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The name of that session at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<SessionName>,
    /// The path of that session at the time, as the operator sees it, such as `lead/worker`. Older entries have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_path: Option<String>,
    /// The approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// Claude Code's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The hash of tool, input and directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The directory in which the tool would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The whole input of the call. Written by the child: do not trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Object>,
    /// The input that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Object>,
    /// The message of the decider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The answer of the gate to the call, and its rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Object>,
    /// The last decider that the approval was addressed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_of: Option<AskedOf>,
    /// The earlier deciders from which it escalated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<EscalationStep>,
    /// When the approval was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<UnixSeconds>,
    /// The token that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenName>,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Object>,
}

impl AuditEntry {
    /// An entry with only the required fields.
    pub fn new(at: UnixSeconds, kind: AuditKind, status: impl Into<String>, by: Decider) -> Self {
        Self {
            at,
            kind,
            status: status.into(),
            by,
            right: None,
            session_id: None,
            session_name: None,
            session_path: None,
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

    /// An entry for an act of a caller, with the right of its kind.
    pub fn of_caller(at: UnixSeconds, kind: AuditKind, status: &str, caller: &Principal) -> Self {
        let right = match caller {
            Principal::Operator => Right::Operator,
            Principal::Token { .. } => Right::Token,
            Principal::Parent { .. } | Principal::Session { .. } => Right::Ancestor,
        };
        Self { right: Some(right), ..Self::new(at, kind, status, Decider::from(caller)) }
    }
}

/// An entry and its place in the hash chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// SHA-256, in hexadecimal, of the hash of the previous entry, this number and the entry as stored.
    pub hash: String,
    /// The entry.
    pub entry: AuditEntry,
}

/// The end of the audit log. A copy kept elsewhere shows later whether the log up to there is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditHead {
    /// The number of the last entry; 0 if there is none.
    pub number: u64,
    /// Its hash.
    pub hash: String,
}

impl AuditHead {
    /// The start of the chain.
    pub fn start() -> Self {
        Self { number: 0, hash: "0".repeat(64) }
    }
}

/// Parameters of `audit.list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Only entries about this session.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only entries at or after this time, in seconds since 1970.
    #[serde(default)]
    pub since: Option<UnixSeconds>,
    /// Only entries before this time, in seconds since 1970.
    #[serde(default)]
    pub until: Option<UnixSeconds>,
    /// Only entries of this kind.
    #[serde(default)]
    pub kind: Option<AuditKind>,
    /// Only entries by this principal: `operator`, `hub`, `token:NAME`, `session:ID` or `parent:NAME`.
    #[serde(default)]
    pub by: Option<String>,
    /// Only entries about this tool.
    #[serde(default)]
    pub tool_name: Option<String>,
    /// Only entries after this number: the `next` of the previous page.
    #[serde(default)]
    pub after: Option<u64>,
    /// Lists the newest entries first.
    #[serde(default)]
    pub newest_first: bool,
    /// With `newest_first`: only entries before this number, the `next` of the previous page.
    #[serde(default)]
    pub before: Option<u64>,
    /// Maximum number of entries, up to 1000; default 100. A page of large entries is shorter.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Result of `audit.list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// A page of the audit log.
    Ok {
        /// Oldest first, or newest first if requested.
        rows: Vec<AuditRow>,
        /// Pass this as `after`, or as `before` with `newest_first`, for the next page; omitted on the last
        /// page.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    },
}

/// Parameters of `audit.series`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesParams {
    /// The start of the period, in seconds since 1970.
    pub from: UnixSeconds,
    /// The end of the period; default: now.
    #[serde(default)]
    pub to: Option<UnixSeconds>,
    /// Into how many parts it is divided, up to 1000; default 60.
    #[serde(default)]
    pub buckets: Option<u64>,
    /// Only this session and all below it.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// Result of `audit.series`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SeriesResult {
    /// The parts of the period.
    Ok {
        /// The start of the period.
        from: UnixSeconds,
        /// Its end.
        to: UnixSeconds,
        /// The length of a part.
        bucket_secs: u64,
        /// The parts, in order. There are fewer than requested if the period has fewer seconds.
        buckets: Vec<SeriesBucket>,
    },
}

/// What happened in one part of a period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesBucket {
    /// Its start.
    pub at: UnixSeconds,
    /// The cost of the turns that ended in it. The whole cost of a turn counts at its end.
    pub cost_usd: f64,
    /// The number of turns that ended in it.
    pub turns: u64,
    /// The number of tool calls that reached the gate and are still stored.
    pub calls: u64,
    /// The number of calls that a rule answered, at the gate or by resolving an approval.
    pub by_rule: u64,
    /// The number of approvals that a person resolved.
    pub by_person: u64,
    /// The number of approvals that an agent resolved.
    pub by_agent: u64,
    /// The number of calls and approvals that were allowed.
    pub allowed: u64,
    /// The number of calls and approvals that were denied.
    pub denied: u64,
    /// The number of approvals that expired.
    pub expired: u64,
    /// The number of approvals that were withdrawn.
    pub withdrawn: u64,
    /// For how many seconds approvals waited for a person. Two approvals at the same time count twice.
    pub waited_for_person_secs: u64,
    /// For how many seconds approvals waited for an agent.
    pub waited_for_agent_secs: u64,
}

/// Result of `audit.verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VerifyResult {
    /// Every entry matches its hash and the previous entry.
    Ok {
        /// The number of entries.
        rows: u64,
        /// The last entry.
        head: AuditHead,
    },
    /// The audit log was changed.
    Broken {
        /// The first invalid entry.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}
