//! The reasons why an agent cannot continue. They complement its status, so that a blocked agent is not
//! mistaken for a busy one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApprovalKind;

/// A reason why an agent cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// It needs permission for a tool call.
    Permission,
    /// It asks the user a question.
    Question,
    /// It presents a plan.
    Plan,
    /// It, or a session below it, has used up its budget and requests more.
    Budget,
    /// The rate limit of the model's API is reached.
    RateLimited,
    /// The model's API failed, and the agent retries.
    ApiRetry,
    /// The model has not responded for some time.
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
