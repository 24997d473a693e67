//! What keeps an agent from going on: beside its status, so that a stuck one is not taken for a busy one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApprovalKind;

/// What keeps an agent from going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// It asks whether it may use a tool.
    Permission,
    /// It asks something.
    Question,
    /// It shows a plan.
    Plan,
    /// It, or one below it, has used up what it was given, and asks for more.
    Budget,
    /// The model's API wants it to wait.
    RateLimited,
    /// The model's API failed, and it tries again.
    ApiRetry,
    /// It has heard nothing from the model for some time.
    Stalled,
}

impl From<ApprovalKind> for Attention {
    fn from(kind: ApprovalKind) -> Self {
        match kind {
            ApprovalKind::Tool => Self::Permission,
            ApprovalKind::Budget => Self::Budget,
            ApprovalKind::Question => Self::Question,
            ApprovalKind::Plan => Self::Plan,
        }
    }
}
