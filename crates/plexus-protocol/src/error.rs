//! The errors of methods, in words that a caller can act on.
//!
//! An error has a stable kind (`data.type` on the wire), a message for people, and details where they help.
//! Each door maps it to a JSON-RPC code or an HTTP status. For an object that the caller may not see, the
//! error is `…_not_found`, so that existence is not revealed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The stable name of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session does not exist, or the caller may not see it.
    SessionNotFound,
    /// The approval does not exist, or the caller may not see it.
    ApprovalNotFound,
    /// The session has no such turn.
    TurnNotFound,
    /// The session has no such run.
    RunNotFound,
    /// The turn has no such event.
    EventNotFound,
    /// The conversation tree does not exist, or the caller may not see it.
    TreeNotFound,
    /// The node does not exist, or the caller may not see it.
    NodeNotFound,
    /// An existing session uses the conversation tree.
    TreeInUse,
    /// The data was deleted because of its age.
    Gone,
    /// The method does not exist, or is not available to this caller.
    MethodNotFound,
    /// A session with this name already exists.
    NameTaken,
    /// No token with this name is in use.
    TokenNotFound,
    /// No template has this name.
    TemplateNotFound,
    /// A parameter is missing, has the wrong type or is out of range.
    InvalidParams,
    /// An unknown field.
    UnknownField,
    /// The field belongs to a feature that does not exist yet.
    NotSupportedYet,
    /// The working directory cannot be used.
    BadWorkingDir,
    /// The installed Claude Code is older than the oldest supported version.
    ClaudeTooOld,
    /// A file of the project to trust cannot be loaded.
    BadProject,
    /// The user's settings are invalid.
    BadUserSettings,
    /// The worktree could not be created or read.
    WorktreeFailed,
    /// The session has no worktree of its own.
    NoWorktree,
    /// The worktree or one of the branches changed since the caller reviewed it.
    ReviewOutdated,
    /// The state of the repository does not permit the commit or the merge; nothing was changed.
    RepositoryRefused,
    /// The setup command of a worktree failed or took too long.
    SetupFailed,
    /// A prompt or body is too large.
    TooLarge,
    /// A turn is running.
    TurnInProgress,
    /// No turn is running.
    NoTurn,
    /// The agent rejected the change.
    AgentRefused,
    /// The caller would wait for an approval that only it can answer.
    WouldWaitForItself,
    /// A question was allowed without answers.
    AnswersRequired,
    /// An approval with a truncated input was allowed without the digest of the whole input.
    InputNotSeen,
    /// No such rule is in force, or the caller may not revoke it.
    RuleNotFound,
    /// The caller may deny this call, but its scope does not cover it, so it cannot allow it.
    BeyondScope,
    /// The grant is larger than what is left.
    BudgetExceeded,
    /// The budget of the session is exhausted.
    BudgetExhausted,
    /// A rule denies the call.
    DeniedByRule,
    /// The caller is authenticated but may not do this.
    Forbidden,
    /// A limit is reached.
    LimitReached,
    /// The free space on the disk is reserved for decisions.
    DiskLow,
    /// An agent requires a sandbox that the system does not support.
    #[serde(rename = "no_wall")]
    NoSandbox,
    /// The store cannot be written now: nothing was changed, try again.
    StoreUnavailable,
    /// The host of the session does not answer.
    HostUnreachable,
    /// The hub is shutting down.
    ShuttingDown,
    /// A bug in Plexus.
    Internal,
}

impl ErrorKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::ApprovalNotFound => "approval_not_found",
            Self::TurnNotFound => "turn_not_found",
            Self::RunNotFound => "run_not_found",
            Self::EventNotFound => "event_not_found",
            Self::TreeNotFound => "tree_not_found",
            Self::NodeNotFound => "node_not_found",
            Self::TreeInUse => "tree_in_use",
            Self::Gone => "gone",
            Self::MethodNotFound => "method_not_found",
            Self::NameTaken => "name_taken",
            Self::TokenNotFound => "token_not_found",
            Self::TemplateNotFound => "template_not_found",
            Self::InvalidParams => "invalid_params",
            Self::UnknownField => "unknown_field",
            Self::NotSupportedYet => "not_supported_yet",
            Self::BadWorkingDir => "bad_working_dir",
            Self::ClaudeTooOld => "claude_too_old",
            Self::BadProject => "bad_project",
            Self::BadUserSettings => "bad_user_settings",
            Self::WorktreeFailed => "worktree_failed",
            Self::NoWorktree => "no_worktree",
            Self::ReviewOutdated => "review_outdated",
            Self::RepositoryRefused => "repository_refused",
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
            Self::NoSandbox => "no_wall",
            Self::StoreUnavailable => "store_unavailable",
            Self::HostUnreachable => "host_unreachable",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }
}

/// The error of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// The stable name.
    pub kind: ErrorKind,
    /// The message for people.
    pub message: String,
    /// Further details, by name.
    pub details: Map<String, Value>,
}

impl Error {
    /// An error of this kind with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Map::new() }
    }

    /// An invalid parameter, and why it is invalid.
    pub fn invalid(field: &str, why: impl fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidParams, format!("`{field}`: {why}")).with("field", field)
    }

    /// A field of a feature that does not exist yet.
    pub fn not_yet(field: &str) -> Self {
        let message = format!("`{field}` is not supported yet; omit it");
        Self::new(ErrorKind::NotSupportedYet, message).with("field", field)
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The error that [`Self::to_object`] has written; `None` for another object.
    pub fn from_object(mut object: Map<String, Value>) -> Option<Self> {
        let kind = serde_json::from_value(object.remove("type")?).ok()?;
        let Value::String(message) = object.remove("message")? else { return None };
        Some(Self { kind, message, details: object })
    }

    /// `{type, message, …}`, the `data` of a JSON-RPC error and the text of a failed MCP call.
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
