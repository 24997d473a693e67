//! Risk marks: advice for the person or agent that decides about a call. A mark allows nothing and denies nothing, and a call
//! without marks is not necessarily safe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Decider, UnixSeconds};

/// The kind of a risk, most alarming first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskKind {
    /// A similar call was denied before.
    DeniedBefore,
    /// Part of the call cannot be analysed.
    Unclear,
    /// Runs code that the call downloads.
    RunsDownloadedCode,
    /// Overwrites or deletes a remote branch or tag.
    ForcePush,
    /// Deletes directories, or every file that it finds.
    RecursiveDelete,
    /// Reads or changes a file or variable that usually holds a secret.
    Credentials,
    /// Runs as another user, or changes users or their rights.
    Privilege,
    /// Changes disks, services, processes, software or settings of the machine.
    System,
    /// Publishes or deploys something for others.
    Publishes,
    /// Changes what another program runs or obeys later.
    RunsLater,
    /// Rewrites git history or discards uncommitted changes.
    HistoryRewrite,
    /// Makes files accessible to others, or changes the access of whole directories.
    Permissions,
    /// Names a file outside the project, or runs outside it.
    OutsideProject,
    /// Connects to another machine.
    Network,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

/// A risk of a call, with the reason. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RiskMark {
    /// The kind.
    pub kind: RiskKind,
    /// The reason, for people. It quotes the call, which the child wrote.
    pub reason: String,
    /// For `denied_before`: the earlier denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
}

impl RiskMark {
    /// A mark without an earlier denial.
    pub fn new(kind: RiskKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), denial: None }
    }
}

/// An earlier denial of a similar call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// When it was denied.
    pub at: UnixSeconds,
    /// Who denied it; the hub if a rule denied it.
    pub by: Decider,
    /// The message of the decider, or the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_mark_of_an_unknown_kind_is_still_read() {
        let mark: RiskMark =
            serde_json::from_value(json!({"kind": "from_the_future", "reason": "r"})).unwrap();
        assert_eq!(mark, RiskMark::new(RiskKind::Other, "r"));
        assert_eq!(json!(RiskKind::RunsDownloadedCode), "runs_downloaded_code");
    }
}
