//! `claudecode.update`: its parameters and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PermissionMode;
use crate::{SessionId, SessionName};

/// Parameters of `claudecode.update`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The new name.
    #[serde(default)]
    pub new_name: Option<SessionName>,
    /// The new model.
    #[serde(default)]
    pub model: Option<String>,
    /// The new mode.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// The new title, on one line (operator only).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub title: Option<String>,
    /// true: hides the session and all below it from `list`, until one of them works again. false: shows them
    /// (operator only).
    #[serde(default)]
    #[schemars(extend("x-plexus-operator" = true))]
    pub archived: Option<bool>,
}

/// Result of `claudecode.update`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UpdateResult {
    /// Success.
    Ok {
        /// The session.
        session_id: SessionId,
        /// The fields that were changed.
        updated: Vec<Updated>,
    },
}

/// A field that `claudecode.update` has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Updated {
    /// The name.
    NewName,
    /// The mode.
    PermissionMode,
    /// The model.
    Model,
    /// The title.
    Title,
    /// Whether it is archived.
    Archived,
}

impl Updated {
    /// The field on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewName => "new_name",
            Self::PermissionMode => "permission_mode",
            Self::Model => "model",
            Self::Title => "title",
            Self::Archived => "archived",
        }
    }
}
