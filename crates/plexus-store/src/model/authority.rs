//! Authority: tokens, permission rules, and reads of the audit log.

use std::fmt;

use plexus_protocol::audit::{AuditHead, AuditKind};
use plexus_protocol::token::TokenRight;
use plexus_protocol::{Decider, SessionId, TokenName, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunKey;

/// A token that the operator created. The store has only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name.
    pub name: TokenName,
    /// Its right.
    pub right: TokenRight,
    /// When it was created.
    pub created_at: UnixSeconds,
    /// When it expires, if it does.
    pub expires_at: Option<UnixSeconds>,
}

/// Names a token that can be revoked or end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TokenKey {
    /// A token that the operator created.
    Token(TokenName),
    /// The token of a run.
    Run(RunKey),
}

impl fmt::Display for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Run(RunKey { session, run }) => write!(f, "run:{session}:{run}"),
        }
    }
}

/// The authority of a permission rule, which depends on its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAuthority {
    /// From the root of a tree: it applies in full.
    Root,
    /// From a session: it can only deny or ask.
    Narrows,
    /// From a session, in advance for the sessions below: it allows within the session's own scope.
    Within,
}

/// A permission rule to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRule {
    /// It applies to this session and all below; `None` for every session.
    pub session: Option<SessionId>,
    /// The rule with its effect and expiry, in the format of the policy.
    pub entry: Value,
    /// When it expires, if it does.
    pub expires_at: Option<UnixSeconds>,
    /// Its authority.
    pub authority: RuleAuthority,
    /// Its author.
    pub created_by: Decider,
}

/// A permission rule that is not revoked.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRow {
    /// Its number.
    pub number: u64,
    /// The rule.
    pub rule: NewRule,
    /// When it was created.
    pub created_at: UnixSeconds,
}

/// The permission rules that are not revoked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RulesInForce {
    /// How many rules were created and revoked so far. A hub that knows another number does not know the rules in force.
    pub version: u64,
    /// The rules, oldest first.
    pub rules: Vec<RuleRow>,
}

/// A change to the permission rules.
#[derive(Debug, Clone)]
pub enum RuleChange {
    /// A rule was created.
    Created(RuleRow),
    /// The rule with this number was revoked.
    Revoked(u64),
}

/// Selects audit entries; `None` matches all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Entries about this session.
    pub session: Option<SessionId>,
    /// Entries at or after this time.
    pub since: Option<UnixSeconds>,
    /// Entries before this time.
    pub until: Option<UnixSeconds>,
    /// Entries of this kind.
    pub kind: Option<AuditKind>,
    /// Acts of this actor ([`Decider::key`]).
    pub by: Option<String>,
    /// Entries about this tool.
    pub tool_name: Option<String>,
}

/// Where a read of the audit log starts, and in which direction it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFrom {
    /// After this number, oldest first.
    After(u64),
    /// Before this number, newest first.
    Before(u64),
}

/// The result of verifying a part of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCheck {
    /// All entries up to this head are valid. A lower number than requested is the end of the log.
    Fits(AuditHead),
    /// An entry was changed, removed or inserted.
    Broken {
        /// The number of the first wrong entry.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}
