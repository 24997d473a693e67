//! What can go wrong, in words a caller can act on.
//!
//! A failure has a stable kind (`data.type` on the wire), a message for people, and details where they help. Which
//! JSON-RPC code or HTTP status it becomes is the business of each door. What a caller may not see is `…_not_found`
//! to it, so that nobody learns of strangers' sessions by asking.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The stable word for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such session, or none the caller may see.
    SessionNotFound,
    /// No such approval, or none the caller may see.
    ApprovalNotFound,
    /// No such turn of this session.
    TurnNotFound,
    /// No such event of this turn.
    EventNotFound,
    /// No such conversation tree, or none the caller may see.
    TreeNotFound,
    /// No such node of a conversation, or none the caller may see.
    NodeNotFound,
    /// A living session speaks in it.
    TreeInUse,
    /// It was there, and was removed because it had grown old.
    Gone,
    /// No such method, or none for this caller.
    MethodNotFound,
    /// A living session has this name.
    NameTaken,
    /// No such token in use.
    TokenNotFound,
    /// A parameter is missing, of the wrong type or out of range.
    InvalidParams,
    /// A field nobody knows.
    UnknownField,
    /// A field of work that is not built yet.
    NotSupportedYet,
    /// The working directory cannot be used.
    BadWorkingDir,
    /// A file of a project that was to be trusted cannot be taken up.
    BadProject,
    /// The user's own settings cannot be read.
    BadUserSettings,
    /// A worktree could not be made, or not be read.
    WorktreeFailed,
    /// The session has no worktree of its own.
    NoWorktree,
    /// The command that makes a worktree ready failed, or took too long.
    SetupFailed,
    /// A prompt or body over the limit.
    TooLarge,
    /// A turn is running.
    TurnInProgress,
    /// No turn is running.
    NoTurn,
    /// The agent itself would not do it.
    AgentRefused,
    /// The caller would wait for an answer only it can give.
    WouldWaitForItself,
    /// A question was allowed without answers.
    AnswersRequired,
    /// An approval whose input was shown cut was allowed without having been read.
    InputNotSeen,
    /// No such rule in force, or none the caller may revoke.
    RuleNotFound,
    /// The caller may deny this, but allowing it is beyond what it was given.
    BeyondScope,
    /// More was to be given than there is left.
    BudgetExceeded,
    /// What the session was given is used up.
    BudgetExhausted,
    /// A rule denies what was to be allowed.
    DeniedByRule,
    /// The caller is known but may not do this.
    Forbidden,
    /// There is as much of it as there may be.
    LimitReached,
    /// What room the disk has is kept for decisions.
    DiskLow,
    /// An agent may not be started without a wall around it, and there can be none.
    NoWall,
    /// The store cannot take writes now: nothing was done, try again.
    StoreUnavailable,
    /// The hub is going away.
    ShuttingDown,
    /// A fault of ours.
    Internal,
}

impl ErrorKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::ApprovalNotFound => "approval_not_found",
            Self::TurnNotFound => "turn_not_found",
            Self::EventNotFound => "event_not_found",
            Self::TreeNotFound => "tree_not_found",
            Self::NodeNotFound => "node_not_found",
            Self::TreeInUse => "tree_in_use",
            Self::Gone => "gone",
            Self::MethodNotFound => "method_not_found",
            Self::NameTaken => "name_taken",
            Self::TokenNotFound => "token_not_found",
            Self::InvalidParams => "invalid_params",
            Self::UnknownField => "unknown_field",
            Self::NotSupportedYet => "not_supported_yet",
            Self::BadWorkingDir => "bad_working_dir",
            Self::BadProject => "bad_project",
            Self::BadUserSettings => "bad_user_settings",
            Self::WorktreeFailed => "worktree_failed",
            Self::NoWorktree => "no_worktree",
            Self::SetupFailed => "setup_failed",
            Self::TooLarge => "too_large",
            Self::TurnInProgress => "turn_in_progress",
            Self::NoTurn => "no_turn",
            Self::AgentRefused => "agent_refused",
            Self::WouldWaitForItself => "would_wait_for_itself",
            Self::AnswersRequired => "answers_required",
            Self::InputNotSeen => "input_not_seen",
            Self::RuleNotFound => "rule_not_found",
            Self::BeyondScope => "beyond_scope",
            Self::BudgetExceeded => "budget_exceeded",
            Self::BudgetExhausted => "budget_exhausted",
            Self::DeniedByRule => "denied_by_rule",
            Self::Forbidden => "forbidden",
            Self::LimitReached => "limit_reached",
            Self::DiskLow => "disk_low",
            Self::NoWall => "no_wall",
            Self::StoreUnavailable => "store_unavailable",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }
}

/// A failure of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// The stable word.
    pub kind: ErrorKind,
    /// For people.
    pub message: String,
    /// More, by name.
    pub details: Map<String, Value>,
}

impl Error {
    /// A failure of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new() }
    }

    /// A parameter that cannot be used, and why.
    pub fn invalid(field: &str, why: impl fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidParams, format!("`{field}`: {why}")).with("field", field)
    }

    /// A field of work that is not built yet.
    pub fn not_yet(field: &str) -> Self {
        let message = format!("`{field}` is not supported yet; omit it");
        Self::new(ErrorKind::NotSupportedYet, message).with("field", field)
    }

    /// The same with one more detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// `{type, message, …}`, as `data` of a JSON-RPC error and as text of a failed MCP call.
    pub fn to_object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("type".to_owned(), self.kind.as_str().into());
        object.insert("message".to_owned(), self.message.clone().into());
        object.extend(self.details.clone());
        object
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind.as_str())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_lists_the_words_on_the_wire() {
        let schema = crate::schema::of::<ErrorKind>();
        let variants = schema["oneOf"].as_array().unwrap();
        for variant in variants {
            let kind: ErrorKind = serde_json::from_value(variant["const"].clone()).unwrap();
            assert_eq!(variant["const"], kind.as_str());
        }
        assert!(variants.len() > 30, "{schema:?}");
    }
}
