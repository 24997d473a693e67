//! By whom things may be done, and that they were: tokens, rules, and how the record is read.

use std::fmt;

use plexus_protocol::audit::{AuditHead, AuditKind};
use plexus_protocol::token::TokenRight;
use plexus_protocol::{Decider, SessionId, TokenName, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunKey;

/// A token that the operator handed out. Only its hash is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name.
    pub name: TokenName,
    /// What it is good for.
    pub right: TokenRight,
    /// When it was made.
    pub created_at: UnixSeconds,
    /// When it ends, if it does by itself.
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

/// How far a rule counts, by who gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAuthority {
    /// The root of a tree: in full.
    Root,
    /// A session: only what it denies or asks about.
    Narrows,
    /// A session, in advance for those below it: what it allows counts as far as it may allow it.
    Within,
}

/// A rule to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRule {
    /// The session it is for, and all below it; `None` for every session.
    pub session: Option<SessionId>,
    /// The rule with its effect and its end, as the policy reads it.
    pub entry: Value,
    /// When it ceases to count, if it does.
    pub expires_at: Option<UnixSeconds>,
    /// How far it counts.
    pub authority: RuleAuthority,
    /// Who made it.
    pub made_by: Decider,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRow {
    /// Its number.
    pub number: u64,
    /// What was made.
    pub rule: NewRule,
    /// When.
    pub created_at: UnixSeconds,
}

/// What became of a rule.
#[derive(Debug, Clone)]
pub enum RuleChange {
    /// It is in force.
    Made(RuleRow),
    /// It is not any more.
    Revoked(u64),
}

/// Which rows of the record are meant; what is left out lets all pass.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Those about this session.
    pub session: Option<SessionId>,
    /// Those of this time or later.
    pub since: Option<UnixSeconds>,
    /// Those before this time.
    pub until: Option<UnixSeconds>,
    /// Those of this sort.
    pub kind: Option<AuditKind>,
    /// What this one did ([`Decider::key`]).
    pub by: Option<String>,
    /// Those about this tool.
    pub tool_name: Option<String>,
}

/// From where, and in which direction, the record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFrom {
    /// The rows after this number, oldest first.
    After(u64),
    /// The rows before this number, newest first.
    Before(u64),
}

/// What a look over part of the record found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCheck {
    /// All of it fits, up to here; short of the number that was asked for, this is the end.
    Fits(AuditHead),
    /// It is not what was written.
    Broken {
        /// The first row that does not fit.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}
